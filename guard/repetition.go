package guard

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// Repeats says when a call is a repetition (SPEC X8). The zero Repeats hold
// SPEC's numbers, for agents.
type Repeats struct {
	Callers    Callers
	Window     int     // how many of the session's last calls count; zero: 15
	Limit      int     // the so manieth call alike is refused; zero: 3
	Similarity float64 // of queries that count as the same, when exceeded; zero: 0.5
}

func (r Repeats) withDefaults() Repeats {
	if r.Window <= 0 {
		r.Window = 15
	}
	if r.Limit <= 0 {
		r.Limit = 3
	}
	if r.Similarity <= 0 {
		r.Similarity = 0.5
	}
	return r
}

// A pastCall is what is remembered of a call.
type pastCall struct {
	serial  uint64
	print   uint64   // of the tool and its arguments
	others  uint64   // of the tool and its arguments without the query
	words   []uint64 // of the query, sorted; nil: it is no search
	result  uint64
	done    bool
	first   bool // nothing in the window was like it when it was made
	changed bool // it changed something, as far as is known
}

// Repetition returns the stage that refuses a call that the session made
// again and again: the same tool with the same arguments for the third time
// among its last 15 calls, or a search for nearly the same words.
//
// Calls do not count whose results differ from the one before (polling), nor
// those that lie before a new change that the session made (a test that is run
// after each edit). Calls that make calls (execute_tool, run_parallel) and
// those that ask for a state are let pass; the targets of the former are
// judged as they are called. A nil s watches nobody.
func Repetition(s *Sessions, r Repeats) pipeline.Stage {
	const name = "repetition"
	r = r.withDefaults()
	return pipeline.Stage{
		Name: name, Doc: "refuse calls that are made again and again",
		Wrap: func(next tool.Handler) tool.Handler {
			if s == nil || r.Callers == NoCallers {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if !r.Callers.include(c.From.Kind) || c.Tool.Targets != nil || asksForState(c.Tool) {
					return next(ctx, c)
				}
				p := pastCallOf(c)
				if alike := s.begin(&c.From, &p, r); alike > 0 {
					return nil, c.Trail.Deny(name, repeated(c, r, alike))
				}
				res, err := next(ctx, c)
				s.end(&c.From, p, res, !c.Tool.IsRead())
				return res, err
			}
		},
	}
}

func pastCallOf(c *tool.Call) pastCall {
	named := maphash.String(printSeed, c.Tool.Name)
	p := pastCall{print: mix(named, fingerprint(c.Args))}
	if c.Tool.SearchLike {
		p.words, p.others = queryOf(c.Args)
		p.others = mix(named, p.others)
	}
	return p
}

// begin notes that a call begins, and returns 0; or notes nothing and returns
// how many calls like it there were.
func (s *Sessions) begin(from *tool.Origin, p *pastCall, r Repeats) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(from)
	same, alike := m.count(p, r.Similarity)
	if same+alike >= r.Limit-1 {
		return max(same+alike, 1)
	}
	p.first = !slices.ContainsFunc(m.calls, func(q pastCall) bool { return q.print == p.print })
	p.serial = m.serial
	m.serial++
	if len(m.calls) >= r.Window {
		m.calls = m.calls[:copy(m.calls, m.calls[len(m.calls)-r.Window+1:])]
	}
	m.calls = append(m.calls, *p)
	return 0
}

// count returns how many calls were the same, up to where the result was
// another, and how many other searches were alike.
func (m *session) count(p *pastCall, similarity float64) (same, alike int) {
	var last *pastCall
	over := false
	for i := len(m.calls) - 1; i >= 0; i-- {
		q := &m.calls[i]
		switch {
		case q.print == p.print:
			if last != nil && last.done && q.done && last.result != q.result {
				over = true
			}
			if !over {
				same++
			}
			last = q
		case q.changed:
			return same, alike
		case p.words != nil && q.words != nil && p.others == q.others && overlap(p.words, q.words) > similarity:
			alike++
		}
	}
	return same, alike
}

// end notes what came of a call, if it is still remembered.
func (s *Sessions) end(from *tool.Origin, p pastCall, res *tool.Result, writes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(from)
	for i := len(m.calls) - 1; i >= 0; i-- {
		if q := &m.calls[i]; q.serial == p.serial && q.print == p.print {
			q.done, q.result = true, resultPrint(res)
			q.changed = writes && p.first && res != nil && res.Err == nil
			return
		}
	}
}

// resultPrint returns a hash of all that a result tells.
func resultPrint(res *tool.Result) uint64 {
	if res == nil {
		return 0
	}
	h := uint64(1)
	for i := range res.Content {
		c := &res.Content[i]
		h = mix(h, maphash.String(printSeed, c.Text))
		if len(c.Data) > 0 || c.URI != "" {
			h = mix(mix(h, maphash.Bytes(printSeed, c.Data)), maphash.String(printSeed, c.URI))
		}
	}
	h = mix(h, maphash.Bytes(printSeed, res.Structured))
	if res.Err != nil {
		h = mix(mix(h, maphash.String(printSeed, string(res.Err.Code))), maphash.String(printSeed, res.Err.Message))
	}
	return h
}

func repeated(c *tool.Call, r Repeats, alike int) *tool.Error {
	advice := "Use the result that you have, change the arguments, or try another tool."
	what := "with the same arguments, and its result did not change"
	if c.Tool.SearchLike {
		advice = "Work with what was found, or search with quite different words, or look where else it may be (browse, list, another tool)."
		what = "with nearly the same query"
	}
	return tool.Errorf(tool.CodeRepetition, "%s was called %d times among the last %d calls %s; once more will not help. %s",
		c.Name, alike, r.Window, what, advice).
		With(map[string]int{"alike": alike, "window": r.Window, "limit": r.Limit})
}

// stateWords are the words in the names of tools that tell how something is
// getting on: asking them again is what they are for.
var stateWords = []string{"status", "wait", "poll", "progress", "ping", "health", "heartbeat"}

// asksForState reports whether a tool reads how something is getting on.
func asksForState(t *tool.Tool) bool {
	if !t.IsRead() {
		return false
	}
	action := t.Action()
	for _, w := range stateWords {
		if at := strings.Index(action, w); at >= 0 && bounded(action, at, at+len(w)) {
			return true
		}
	}
	return false
}

// bounded reports whether no letter of the same word stands beside s[from:to].
func bounded(s string, from, to int) bool {
	isLower := func(i int) bool { return i >= 0 && i < len(s) && 'a' <= s[i] && s[i] <= 'z' }
	return !isLower(from-1) && !isLower(to)
}

// queryNames are the usual names of what is searched for, the likeliest first.
var queryNames = []string{"query", "q", "search", "search_query", "pattern", "text", "keywords", "terms", "term", "question", "prompt", "name"}

// queryOf returns the words of a search's query, sorted, and the hash of its
// other arguments. Without a query there are no words.
func queryOf(args []byte) (words []uint64, others uint64) {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return nil, 0
	}
	query := ""
	for _, n := range queryNames {
		if v := all[n]; len(v) > 0 && (v[0] == '"' || v[0] == '[') {
			query = n
			break
		}
	}
	for k, v := range all {
		if k != query {
			others += mix(maphash.String(printSeed, k), fingerprint(v))
		}
	}
	if query == "" {
		return nil, others
	}
	return wordsOf(all[query]), others
}

// maxWords bounds how much of a query is compared.
const maxWords = 64

// wordsOf returns the hashes of the words of a JSON string or list of strings.
func wordsOf(raw json.RawMessage) []uint64 {
	var text string
	if raw[0] == '[' {
		var list []string
		if json.Unmarshal(raw, &list) != nil {
			return nil
		}
		text = strings.Join(list, " ")
	} else if json.Unmarshal(raw, &text) != nil {
		return nil
	}
	var words []uint64
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if len(words) == maxWords {
			break
		}
		words = append(words, maphash.String(printSeed, w))
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// overlap is the Jaccard index of two sorted sets.
func overlap(a, b []uint64) float64 {
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			both++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	if both == 0 {
		return 0
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
