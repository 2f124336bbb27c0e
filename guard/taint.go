package guard

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// A TaintMode says what follows from content that came from outside (SPEC A6).
type TaintMode string

// The modes. The zero TaintMode is TaintOff.
const (
	TaintOff     TaintMode = "off"
	TaintWarn    TaintMode = "warn"    // results of calls that could be another's doing say so
	TaintEnforce TaintMode = "enforce" // such calls need an approval, even where they are granted
)

// The bounds of what is remembered. A session of which more came in is judged
// as if every value might be another's.
const (
	maxTainted      = 256 << 10 // bytes of outside content of one session
	maxTaintedTotal = 64 << 20  // of all; those that called longest ago lose theirs
)

// Taint remembers which sessions have met content from outside, and what it
// said. It lives in the process: a session that goes on in another, or after a
// restart, is new to it. It is safe for concurrent use. A nil Taint does nothing.
type Taint struct {
	mode TaintMode
	*taintMemory
}

// A taintMemory is what sessions met. The zero taintMemory is empty.
type taintMemory struct {
	mu    sync.Mutex
	byKey map[callerKey]*list.Element
	order list.List // of *tainted, the latest first
	total int
}

// tainted is what is known of one session.
type tainted struct {
	key    callerKey
	by     string // the tool whose result was the first, and its call
	text   string // what came from outside, folded
	over   bool   // there was more than is kept
	words  map[string]bool
	spoken bool            // the user's words are known
	own    map[string]bool // short values that the session's own writes returned first
}

// NewTaint returns a Taint of that mode, whose memory is part of that of the
// sessions; nil: it has one of its own.
func NewTaint(mode TaintMode, s *Sessions) *Taint {
	if s == nil {
		s = new(Sessions)
	}
	return &Taint{mode, &s.taint}
}

// of returns what is known of the session of a call: whoever calls in it. The
// lock is held. Without make, nil stands for nothing.
func (t *taintMemory) of(from *tool.Origin, make bool) *tainted {
	key := callerKey{from.App, "", from.User, from.Session}
	if e, ok := t.byKey[key]; ok {
		t.order.MoveToFront(e)
		return e.Value.(*tainted)
	}
	if !make {
		return nil
	}
	if t.order.Len() >= maxSessions {
		t.forget(t.order.Back())
	}
	if t.byKey == nil {
		t.byKey = map[callerKey]*list.Element{}
	}
	s := &tainted{key: key, words: map[string]bool{}, own: map[string]bool{}}
	t.byKey[key] = t.order.PushFront(s)
	return s
}

func (t *taintMemory) forget(e *list.Element) {
	s := t.order.Remove(e).(*tainted)
	t.total -= len(s.text)
	delete(t.byKey, s.key)
}

// Said notes what the user said in a session: values that stand in it are not
// another's. Who runs the conversation calls it; MCP clients do not tell.
func (t *Taint) Said(from tool.Origin, text string) {
	if t == nil || t.mode == TaintOff {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(&from, true)
	s.spoken = true
	for _, w := range saidWords(text) {
		if len(s.words) < 10_000 {
			s.words[w] = true
		}
	}
}

// Judge is the Policy that asks about calls that write or send outside in a
// session that has met outside content, when the mode is TaintEnforce. If the
// user's words are known, those calls pass whose values are all the user's own.
func (t *Taint) Judge(_ context.Context, c *tool.Call) (tool.Verdict, string) {
	if t == nil || t.mode != TaintEnforce {
		return tool.Silent, ""
	}
	if why := t.suspicion(c); why != "" {
		return tool.Ask, why
	}
	return tool.Silent, ""
}

// suspicion says why a call may be another's doing; "": it is not.
func (t *Taint) suspicion(c *tool.Call) string {
	if c.From.Kind.Daemon() || c.Tool.Targets != nil || !acts(c) {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(&c.From, false)
	if s == nil || s.by == "" {
		return ""
	}
	if !s.spoken {
		return fmt.Sprintf("the session holds content from outside (%s), which may have led to this call", s.by)
	}
	if v := s.foreign(c.Args); v != "" {
		return fmt.Sprintf("%.80q is not in what the user said, and the session holds content from outside (%s)", v, s.by)
	}
	return ""
}

// acts reports whether a call writes, or sends something to an address.
func acts(c *tool.Call) bool {
	if !c.Tool.IsRead() {
		return true
	}
	for _, v := range c.Trail.Values {
		if v.Role == schema.URL {
			return true
		}
	}
	return false
}

// outside reports whether the results of a tool come from outside.
func outside(t *tool.Tool) bool {
	return t.Needs&tool.NeedsNetwork != 0 && !t.Trusted && t.Targets == nil
}

// LabelOutside returns the stage that labels what came from outside, and the
// session that got it.
func LabelOutside(t *Taint) pipeline.Stage {
	return pipeline.Stage{
		Name: "taint", Doc: "remember what came from outside",
		Wrap: func(next tool.Handler) tool.Handler {
			if t == nil || t.mode == TaintOff {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				res, err := next(ctx, c)
				if err != nil || c.Tool == nil || c.Trail.Decision == tool.Deny {
					return res, err
				}
				if t.mode == TaintWarn {
					if why := t.suspicion(c); why != "" {
						r := *res
						r.Notes = append(r.Notes[:len(r.Notes):len(r.Notes)], "careful: "+why)
						res = &r
						c.Trail.Reason = strings.TrimPrefix(c.Trail.Reason+"; "+why, "; ")
					}
				}
				c.Trail.Outside = c.Trail.Outside || outside(c.Tool)
				if c.Trail.Outside {
					t.learn(c, res)
				}
				return res, nil
			}
		},
	}
}

// learn notes that a session got a result from outside.
func (t *Taint) learn(c *tool.Call, res *tool.Result) {
	text := res.JoinText()
	if res.Err != nil {
		text += "\n" + res.Err.Message
	}
	text = foldSpace(unescape(text + "\n" + string(res.Structured)))
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(&c.From, true)
	if s.by == "" {
		s.by = c.Name + ", call " + c.ID
	}
	if !c.Tool.IsRead() { // what a write returns first is the name of what it made
		for _, v := range shortValues(text) {
			if !hasWord(s.text, v) && len(s.own) < 1000 {
				s.own[v] = true
			}
		}
	}
	if room := maxTainted - len(s.text); len(text) > room {
		text, s.over = text[:room], true
	}
	s.text += " " + text
	t.total += len(text) + 1
	for t.total > maxTaintedTotal {
		oldest := t.order.Back().Value.(*tainted)
		t.total -= len(oldest.text)
		oldest.text, oldest.over = "", true
		t.order.MoveToFront(t.order.Back())
	}
}

var escape = regexp.MustCompile(`\\(?:u[0-9a-fA-F]{4}|[nrt"/\\])`)

// unescape returns text with what is escaped as in JSON spelt out, so that
// values can be found in it.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return escape.ReplaceAllStringFunc(text, func(e string) string {
		if out, err := strconv.Unquote(`"` + e + `"`); err == nil {
			return out
		}
		return strings.TrimPrefix(e, `\`)
	})
}

var (
	datesAndTimes = regexp.MustCompile(`^\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d)?z?)?$|^\d\d:\d\d$`)
	addresses     = regexp.MustCompile(`[\w.+-]+@[\w-]+\.[\w.-]+|(?:https?://|www\.)[^\s"'<>)]+|\b[a-z]{2}\d{10,30}\b`)
	flags         = regexp.MustCompile(`^[a-z]{1,2}$`) // r, rw
	digits        = regexp.MustCompile(`^\d+$`)        // an id; the user may have said the same of something else
	shortValue    = regexp.MustCompile(`[\w@.:/+-]{1,64}`)
)

// foreign returns a value of the arguments that may be another's: one that is
// not the user's own and stands in outside content, or that looks like an
// address or a name and stands nowhere; "": there is none. Dates and times,
// truth values, words of two letters, and numbers that are no ids are nobody's.
// Long texts and those of several lines are what is written, not where to: only the addresses in them count.
func (s *tainted) foreign(args json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return string(args)
	}
	var found string
	eachText("", tree, func(v string) bool {
		content := len(v) > longText || strings.Contains(strings.TrimSpace(v), "\n")
		v = foldSpace(v)
		parts := saidWords(v)
		if len(parts) == 0 || flags.MatchString(v) || datesAndTimes.MatchString(v) || s.own[v] || s.owns(parts) && !(digits.MatchString(v) && hasWord(s.text, v)) {
			return true
		}
		if len(parts) <= 3 || !strings.Contains(v, " ") || !content && (s.over || strings.Contains(s.text, v)) {
			found = v
			return false
		}
		for _, a := range addresses.FindAllString(v, 100) { // in a text that the model wrote
			if !s.owns(saidWords(a)) {
				found = a
				return false
			}
		}
		return true
	})
	return found
}

func (s *tainted) owns(words []string) bool {
	for _, w := range words {
		if !s.words[w] {
			return false
		}
	}
	return true
}

// eachText calls visit for every text and id in a JSON value, which stands
// under key, until it returns false.
func eachText(key string, v any, visit func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return visit(v)
	case json.Number:
		return !isID.MatchString(key) || visit(v.String())
	case []any:
		for _, x := range v {
			if !eachText(key, x, visit) {
				return false
			}
		}
	case map[string]any:
		for key, x := range v {
			if !eachText(key, x, visit) {
				return false
			}
		}
	}
	return true
}

// longText is beyond how many bytes a text is what is written, not where to.
const longText = 80

var isID = regexp.MustCompile(`(?i)^(?:id|ids|number|no|key|ref)$|[_-](?:id|ids|number|no|key|ref)$|[a-z](?-i:Id|ID|Ids|IDs|Number|Key|Ref)$`)

// hasWord reports whether word stands in text, not as part of another, or of a date.
func hasWord(text, word string) bool {
	inner := func(c byte) bool {
		return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
	}
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		if (i == 0 || !inner(text[i-1])) && (end == len(text) || !inner(text[end])) {
			return true
		}
		from = i + 1
	}
}

func shortValues(text string) []string { return shortValue.FindAllString(text, 1000) }

func foldSpace(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

func saidWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
}
