package guard

import (
	"cmp"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/poison"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// The bounds of what is remembered. A session of which more came in is judged
// as if every value might be another's.
const (
	maxTainted      = 256 << 10 // bytes of outside content of one session
	maxTaintedTotal = 64 << 20  // of all; those that called longest ago lose theirs
	maxTaintValues  = 10_000    // of one session, of each sort
)

// A taintMemory is what sessions met. The zero taintMemory is empty.
type taintMemory struct {
	mu    sync.Mutex
	byKey map[callerKey]*list.Element
	order list.List // of *tainted, the latest first
	total int
}

// tainted is what is known of one session.
type tainted struct {
	key     callerKey
	by      string          // the tool whose result was the first, and its call
	kept    bool            // the store knows it
	looked  bool            // it was looked for in the store
	clean   strings.Builder // what came from outside, folded: results that do not speak to models
	dirty   strings.Builder // and those that do
	counted int             // of both, in the sum of all
	alarms  string          // of dirty, the texts that speak to models
	over    bool            // there was more than is kept
	words   map[string]bool
	spoken  bool            // the user's words are known
	said    vocabulary      // and what they are about
	heard   heard           // what texts from outside say, if the user's words are known
	own     map[string]seen // short values that the session's own writes returned, see owned
	ids     map[string]bool // of records that came from outside
	agreed  map[string]bool // values that were approved, with the tool and the argument; and tools
	orders  *orders         // nil: no result gave orders to models
	house   strings.Builder // what results said that are not from outside, folded
	read    map[string]bool // what was read of the outside since the last write
	records records
}

// of returns what is known of the session of a call: whoever calls in it. The
// lock is held. Without make, nil stands for nothing.
func (t *taintMemory) of(from *tool.Origin, make bool) *tainted {
	first := from.Outermost() // what one agent met may have led another, in another app, too
	key := callerKey{first.App, "", from.User, first.Session}
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
	s := &tainted{key: key, words: map[string]bool{}, own: map[string]seen{}, ids: map[string]bool{}, agreed: map[string]bool{}, read: map[string]bool{}}
	t.byKey[key] = t.order.PushFront(s)
	return s
}

func (t *taintMemory) forget(e *list.Element) {
	s := t.order.Remove(e).(*tainted)
	t.total -= s.counted
	delete(t.byKey, s.key)
}

// note adds a value to a set that is bounded.
func note(set map[string]bool, v string) {
	if len(set) < maxTaintValues {
		set[v] = true
	}
}

// A TaintLabel is what is kept of a session that met content from outside.
type TaintLabel struct {
	By     string    // the tool whose result it was, and its call
	Time   time.Time // when that was
	Orders bool      // a result gave orders to models
}

// Tainted holds the labels of sessions, by their keys: for processes that come
// after, and for those that serve the same session at the same time.
const Tainted = store.Bucket[TaintLabel]("tainted")

// taintAge is how long the label of a session is kept.
const taintAge = 90 * 24 * time.Hour

// keep writes down that a session is tainted, before anybody sees why.
func (t *Taint) keep(ctx context.Context, from tool.Origin, by string, orders bool) error {
	if t.store == nil {
		return nil
	}
	now, key := t.now(), sessionKey(from.Outermost().App, from.User, from.Outermost().Session)
	return t.store.Update(context.WithoutCancel(ctx), func(w store.Writer) error {
		looked := 0
		for other, l := range Tainted.Scan(w, key[:2]) { // in the end all of them, a few at a time
			if looked++; looked > 200 {
				break
			}
			if now.Sub(l.Time) > taintAge {
				if err := Tainted.Delete(w, other); err != nil {
					return err
				}
			}
		}
		return Tainted.Put(w, key, TaintLabel{by, now, orders})
	})
}

// recall returns what other processes have noted of a session; nothing by whom:
// nothing. If that cannot be told, the session counts as tainted.
func (t *Taint) recall(ctx context.Context, from tool.Origin) TaintLabel {
	if t.store == nil {
		return TaintLabel{}
	}
	var l TaintLabel
	err := t.store.View(ctx, func(r store.Reader) (err error) {
		l, err = Tainted.Get(r, sessionKey(from.Outermost().App, from.User, from.Outermost().Session))
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return TaintLabel{}
	case err != nil:
		return TaintLabel{By: "it cannot be read what the session has met: " + err.Error(), Orders: true}
	case l.By == "":
		l.By = "a result that is not named"
	default:
		l.By += ", before"
	}
	return l
}

// Forget deletes what is known of the session of that origin, which has ended.
func (t *Taint) Forget(ctx context.Context, from tool.Origin) error {
	if t == nil || t.mode == TaintOff {
		return nil
	}
	t.mu.Lock()
	if e, ok := t.byKey[callerKey{from.App, "", from.User, from.Session}]; ok {
		t.forget(e)
	}
	t.mu.Unlock()
	if t.store == nil {
		return nil
	}
	return t.store.Update(ctx, func(w store.Writer) error {
		return Tainted.Delete(w, sessionKey(from.Outermost().App, from.User, from.Outermost().Session))
	})
}

// learn notes that a session got a result from outside. It returns a passage
// of the result that speaks to models, "": none does. An error means that the
// label could not be kept.
func (t *Taint) learn(ctx context.Context, c *tool.Call, res *tool.Result) (alarm string, _ error) {
	raw := res.JoinText()
	if res.Err != nil {
		raw += "\n" + res.Err.Message
	}
	doc := readOutside(raw, res.Structured)
	alarms, alarm := alarming(doc.leaves)
	folded := ""
	for _, a := range alarms {
		folded += " " + foldSpace(a)
	}
	text := foldSpace(unescape(raw + "\n" + string(res.Structured)))
	var tells told
	if t.isSpoken(&c.From) {
		tells = tellOf(doc.leaves)
	}
	t.mu.Lock()
	s := t.of(&c.From, true)
	s.heard.add(tells)
	if s.by == "" {
		s.by = c.Name + ", call " + c.ID
	}
	first := alarm != "" && s.orders == nil
	if alarm != "" {
		s.order(c, alarms)
	}
	s.take(c, text, folded, alarm != "", &doc)
	t.trim(s)
	by, kept := s.by, s.kept && !first || c.From.Kind == tool.KindCLI // whose processes have one call each, and one session for all
	ordered := s.orders != nil
	t.mu.Unlock()
	if kept {
		return alarm, nil
	}
	if err := t.keep(ctx, c.From, by, ordered); err != nil {
		return alarm, err
	}
	t.mu.Lock()
	s.kept = true
	t.mu.Unlock()
	return alarm, nil
}

// isSpoken reports whether the user's words are known.
func (t *Taint) isSpoken(from *tool.Origin) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(from, false)
	return s != nil && s.spoken
}

// alarming returns those texts that are meant for models, and what the first of
// them says in words; "": none does in words.
func alarming(leaves []string) (alarms []string, alarm string) {
	for _, leaf := range leaves {
		spelt := unescape(leaf)
		found := poison.Text("result", spelt)
		if len(found) == 0 {
			continue
		}
		if i := slices.IndexFunc(found, speaks); i >= 0 {
			if parts := yamlTexts(leaf); len(parts) > 1 {
				if a, what := alarming(parts); what != "" {
					alarms, alarm = append(alarms, a...), cmp.Or(alarm, what)
					continue
				}
			}
			alarm = cmp.Or(alarm, found[i].What)
		}
		alarms = append(alarms, spelt)
	}
	return alarms, alarm
}

// speaks reports whether something was found in words, and not only in how
// they are written: results have escapes and blanks for many reasons.
func speaks(f poison.Finding) bool {
	return f.Kind != poison.Hidden && f.Kind != poison.Control && f.Kind != poison.Lookalike
}

// take notes what a result says. The lock is held.
func (s *tainted) take(c *tool.Call, text, alarms string, orders bool, doc *document) {
	if c.Tool.IsRead() {
		note(s.read, readKey(c))
	} else { // what a write returns first is the name of what it made
		for _, v := range shortValues(text) {
			if _, known := s.own[v]; !known && len(s.own) < maxTaintValues && !hasWord(alarms, v) {
				s.own[v] = seen{s.clean.Len(), s.dirty.Len()}
			}
		}
		asked := foldSpace(string(c.Args))
		for _, id := range doc.made {
			if !s.over && !s.ids[id] && !hasWord(s.alarms, id) && !hasWord(asked, id) {
				s.make(id)
			}
		}
		clear(s.read)
	}
	for _, id := range doc.ids {
		if len(s.ids) >= maxTaintValues {
			s.over = true
			break
		}
		s.ids[id] = true
	}
	s.records.add(c.Name, doc.records)
	room := maxTainted - s.clean.Len() - s.dirty.Len()
	if len(text) > room {
		text, s.over = text[:max(room, 0)], true
	}
	to := &s.clean
	if orders {
		to = &s.dirty
	}
	to.WriteByte(' ')
	to.WriteString(text)
	s.alarms += alarms[:min(len(alarms), max(maxTainted-len(s.alarms), 0))]
}

// A seen is how much of a session's clean and dirty content there was.
type seen struct{ clean, dirty int }

// make notes the id of what the session made.
func (s *tainted) make(id string) {
	if _, known := s.own[id]; known || len(s.own) < maxTaintValues {
		s.own[id] = seen{}
	}
}

// owned reports whether a value was returned by a write of the session before
// anything from outside said it. Few values are asked about, and many returned:
// what was said before is looked through here.
func (s *tainted) owned(v string) bool {
	at, ok := s.own[v]
	return ok && at.clean <= s.clean.Len() && at.dirty <= s.dirty.Len() &&
		!hasWord(s.clean.String()[:at.clean], v) && !hasWord(s.dirty.String()[:at.dirty], v)
}

// says reports whether what came from outside has a value, by that measure.
func (s *tainted) says(has func(text, v string) bool, v string) bool {
	return has(s.clean.String(), v) || has(s.dirty.String(), v)
}

// trim keeps the memory of all sessions within its bound; s was just added to.
// The lock is held.
func (t *taintMemory) trim(s *tainted) {
	have := s.clean.Len() + s.dirty.Len() + s.house.Len() + s.heard.size
	t.total += have - s.counted
	s.counted = have
	for t.total > maxTaintedTotal {
		oldest := t.order.Back().Value.(*tainted)
		t.total -= oldest.counted
		oldest.clean.Reset()
		oldest.dirty.Reset()
		oldest.house.Reset()
		oldest.heard = heard{about: vocabulary{full: oldest.spoken}}
		oldest.alarms, oldest.counted, oldest.over = "", 0, true
		if oldest.orders != nil {
			oldest.orders.lost = true
		}
		t.order.MoveToFront(t.order.Back())
	}
}

// maxLeaves bounds how many texts of a result are looked at one by one.
const maxLeaves = 5000

// A document is what a result consists of.
type document struct {
	leaves  []string // its texts, one by one where it is JSON
	ids     []string // of the records in it
	made    []string // of what it is about as a whole
	records []record
}

// readOutside takes a result apart.
func readOutside(raw string, structured json.RawMessage) (doc document) {
	whole := true
	for i, text := range []string{raw, string(structured)} {
		var tree any
		if text == "" || json.Unmarshal([]byte(text), &tree) != nil {
			if i == 0 && text != "" {
				doc.leaves = append(doc.leaves, text)
			}
			continue
		}
		w := &walk{document: doc}
		w.value("", tree, 0)
		doc = w.document
		whole = whole && !w.cut
	}
	if !whole { // what is too much to be read one by one is one text
		doc.leaves = []string{raw}
	}
	return doc
}

// A walk goes through a JSON value.
type walk struct {
	document
	cut bool
}

func (w *walk) value(key string, v any, depth int) {
	if len(w.leaves) > maxLeaves || depth > 64 {
		w.cut = true
		return
	}
	switch v := v.(type) {
	case string:
		w.leaves = append(w.leaves, v)
	case []any:
		for _, x := range v {
			w.value(key, x, depth+2) // one of several is not what the result is about
		}
		return
	case map[string]any:
		for k, x := range v {
			w.leaves = append(w.leaves, k)
			w.value(k, x, depth+1)
		}
		w.records = append(w.records, recordsOf(v)...)
		return
	}
	if id := foldSpace(fmt.Sprint(v)); v != nil && isID.MatchString(key) && len(id) <= 64 {
		w.ids = append(w.ids, id)
		if depth <= 2 {
			w.made = append(w.made, id)
		}
	}
}
