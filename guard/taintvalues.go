package guard

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/helve-ai/helve/tool"
)

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
	webAddress    = regexp.MustCompile(`(?i)^\s*(?:[a-z][a-z0-9+.-]*://|www\.)\S*\s*$`)
	flags         = regexp.MustCompile(`^[a-z]{1,2}$`) // r, rw
	digits        = regexp.MustCompile(`^\d+$`)        // an id; the user may have said the same of something else
	shortValue    = regexp.MustCompile(`[\w@.:/+-]{1,64}`)
)

// foreign returns a value of the arguments that may be another's: one that is
// not the user's own and stands in outside content, or that looks like an
// address or a name and stands nowhere; "": there is none. Dates and times,
// truth values, words of two letters, and numbers that are no ids are nobody's.
// An address that is only read may stand in outside content. Long texts and
// those of several lines are what is written, not where to: only the addresses
// in them count. Where something that a tool must be told is the user's, so may
// be plain words that stand nowhere, and what it need not be told in several
// words, unless they have an address in them or stand in a text that speaks to
// models.
func (s *tainted) foreign(c *tool.Call) string {
	must, oneOf := map[string]bool{}, map[string]bool{}
	for _, p := range c.Tool.Input.Parameters() {
		must[p.Name], oneOf[p.Name] = p.Required, len(p.Enum) > 0
	}
	var first, found string
	users := false
	ok := eachTop(c.Args, func(top string) func(key, v string) bool {
		return func(key, v string) bool {
			what := s.stranger(v)
			switch {
			case what == "" || s.agreed[agreedKey(c, key, v)] || c.Tool.IsRead() && s.follows(v) || isID.MatchString(key) && s.names(c, v):
				users = users || must[top] && s.users(v)
			case oneOf[top] || !s.coined(v) && (must[top] || !s.refines(v)):
				found = what
			case first == "":
				first = what // unless something else is the user's
			}
			return found == ""
		}
	})
	switch {
	case !ok:
		return string(c.Args)
	case found != "" || users:
		return found
	}
	return first
}

// users reports whether the user has said each word of a value that means something.
func (s *tainted) users(v string) bool { return len(v) > 2 && s.owns(saidWords(v)) }

// refines reports whether a value says how, and not what or where to.
func (s *tainted) refines(v string) bool {
	v = foldSpace(v)
	return !s.over && strings.Contains(v, " ") && !addresses.MatchString(v) && !strings.Contains(s.alarms, v)
}

// coined reports whether a value is of plain words of which none stands in
// outside content.
func (s *tainted) coined(v string) bool {
	v = foldSpace(v)
	if s.over || v == "" || strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsLetter(r) && r != ' ' }) {
		return false
	}
	for w := range strings.FieldsSeq(v) {
		if s.says(strings.Contains, w) {
			return false
		}
	}
	return true
}

// follows reports whether a value is nothing that is sent to an address, or an
// address as it stands in outside content, outside texts that speak to models:
// nothing else can be told by reading it.
func (s *tainted) follows(v string) bool {
	v = foldSpace(v)
	return !webAddress.MatchString(v) || !s.over && s.says(standsAlone, v) && !strings.Contains(s.alarms, v)
}

// standsAlone reports whether an address stands in text as a whole.
func standsAlone(text, address string) bool {
	for rest := text; ; {
		i := strings.Index(rest, address)
		if i < 0 {
			return false
		}
		end := i + len(address)
		before := i == 0 || strings.ContainsRune(" \"'<>()[]{},;", rune(rest[i-1]))
		after := strings.TrimLeft(rest[end:], ".,;:!?")
		if before && (after == "" || strings.ContainsRune(" \"'<>()[]{}\\", rune(after[0])) || len(after) < len(rest)-end && after[0] == ' ') {
			return true
		}
		rest = rest[end:]
	}
}

// stranger returns what of one value may be another's.
func (s *tainted) stranger(v string) string {
	content := len(v) > longText || strings.Contains(strings.TrimSpace(v), "\n")
	v = foldSpace(v)
	parts := saidWords(v)
	if len(parts) == 0 || flags.MatchString(v) || datesAndTimes.MatchString(v) || s.owned(v) || s.owns(parts) && !(digits.MatchString(v) && s.says(hasWord, v)) {
		return ""
	}
	if len(parts) <= 3 || !strings.Contains(v, " ") || !content && (s.over || s.says(strings.Contains, v)) {
		return v
	}
	for _, a := range addresses.FindAllString(v, 100) { // in a text that the model wrote
		if !s.owns(saidWords(a)) {
			return a
		}
	}
	return ""
}

func (s *tainted) owns(words []string) bool {
	for _, w := range words {
		if !s.words[w] {
			return false
		}
	}
	return true
}

// eachArgument calls visit for every text and id of a call's arguments, with
// the name of what holds it, until it returns false. It reports whether they
// could be read.
func eachArgument(args json.RawMessage, visit func(key, v string) bool) bool {
	return eachTop(args, func(string) func(string, string) bool { return visit })
}

// eachTop is eachArgument with a visit for each argument.
func eachTop(args json.RawMessage, visit func(top string) func(key, v string) bool) bool {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var tree map[string]any
	if d.Decode(&tree) != nil {
		return false
	}
	for _, top := range slices.Sorted(maps.Keys(tree)) {
		if !eachText(top, tree[top], visit(top)) {
			break
		}
	}
	return true
}

// eachText calls visit for every text and id in a JSON value, which stands
// under key, until it returns false.
func eachText(key string, v any, visit func(key, v string) bool) bool {
	switch v := v.(type) {
	case string:
		return visit(key, v)
	case json.Number:
		return !isID.MatchString(key) || visit(key, v.String())
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

var isID = regexp.MustCompile(`(?i)^(?:id|ids|number|no|key|ref)_?$|[_-](?:id|ids|number|no|key|ref)_?$|[a-z](?-i:Id|ID|Ids|IDs|Number|Key|Ref)$`)

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
