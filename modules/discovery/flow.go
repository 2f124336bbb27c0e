package discovery

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Bounds of what an answer says of the tools that come before and after its hits.
const (
	flowBudget  = 60    // estimated tokens of an answer
	flowHits    = 5     // of how many hits
	flowEach    = 2     // tools before a hit, and after it
	flowTakers  = 5     // what more tools need is no hint
	flowModule  = 1_000 // tools of a module; of larger ones nothing is said
	flowKey     = 6     // estimated tokens of a key and its brackets
	flowElement = 2     // of an element's quotes and comma
)

// givers are the first words in names of tools that find or make a thing.
var givers = []string{"search", "find", "lookup", "list", "query", "create", "add"}

// An ends says of which things a tool needs an id, and of which it gives one.
type ends struct{ needs, gives []string }

// A flow is what is known of how the tools of one set follow on each other.
type flow struct {
	modules map[string][]*tool.Tool
	ends    map[*tool.Tool]ends
}

func newFlow(set *tool.Set) *flow {
	f := &flow{modules: map[string][]*tool.Tool{}, ends: map[*tool.Tool]ends{}}
	for t := range set.All() {
		if !t.Meta {
			f.modules[t.ModuleName()] = append(f.modules[t.ModuleName()], t)
		}
	}
	return f
}

func (f *flow) of(t *tool.Tool) ends {
	e, ok := f.ends[t]
	if !ok {
		e = endsOf(t)
		f.ends[t] = e
	}
	return e
}

// around returns the tools of the same module that give what t needs, and
// those that need what t gives, among those that are seen.
func (f *flow) around(t *tool.Tool, sees func(*tool.Tool) bool) (before, after []string) {
	siblings, own := f.modules[t.ModuleName()], f.of(t)
	if len(siblings) > flowModule || len(own.needs)+len(own.gives) == 0 {
		return nil, nil
	}
	for _, s := range siblings {
		e := f.of(s)
		if s == t || !meet(own.needs, e.gives) && !meet(own.gives, e.needs) || !sees(s) {
			continue
		}
		if meet(own.needs, e.gives) {
			before = append(before, s.Name)
		} else {
			after = append(after, s.Name)
		}
	}
	if len(after) > flowTakers {
		after = nil
	}
	slices.SortStableFunc(before, func(a, b string) int { return giverRank(a) - giverRank(b) })
	return before[:min(flowEach, len(before))], after[:min(flowEach, len(after))]
}

// giverRank puts tools that find a thing before those that make one.
func giverRank(name string) int {
	words := wordsOf(name[strings.LastIndexByte(name, '.')+1:])
	if i := slices.Index(givers, words[0]); i >= 0 {
		return i
	}
	return len(givers)
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// endsOf reads a tool's required parameters, its output and its name.
func endsOf(t *tool.Tool) ends {
	var e ends
	for _, p := range t.Input.Parameters() {
		if noun := idOf(p.Name); noun != "" && p.Required {
			e.needs = append(e.needs, noun)
		}
	}
	words := wordsOf(t.Action())
	if len(words) > 1 && slices.Contains(givers, words[0]) {
		e.gives = append(e.gives, singular(strings.Join(words[1:], "")))
	}
	e.gives = append(e.gives, givenBy(t.Output)...)
	// what a tool is given and gives back is no news
	e.gives = slices.DeleteFunc(e.gives, func(noun string) bool { return slices.Contains(e.needs, noun) })
	return e
}

// givenBy returns the things of which an output has ids.
func givenBy(s *schema.Schema) []string {
	if s == nil {
		return nil
	}
	var top any
	if json.Unmarshal(s.Raw(), &top) != nil {
		return nil
	}
	var out []string
	gather(top, "", &out)
	return out
}

// gather appends the things of which a schema describes ids; of is the property
// under which it stands. The syntax is bounded in depth already.
func gather(v any, of string, out *[]string) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	props, _ := m["properties"].(map[string]any)
	for key, sub := range props {
		noun := idOf(key)
		if noun == "" && strings.EqualFold(key, "id") {
			noun = singular(strings.ToLower(of))
		}
		if noun != "" && !slices.Contains(*out, noun) {
			*out = append(*out, noun)
		}
		gather(sub, strings.Join(wordsOf(key), ""), out)
	}
	gather(m["items"], of, out)
}

// idOf returns the thing of which a property of that name is the id, as in
// movie_id, movieId and movie_ids; "" if it is none.
func idOf(name string) string {
	words := wordsOf(name)
	last := len(words) - 1
	if last < 1 || words[last] != "id" && words[last] != "ids" {
		return ""
	}
	return singular(strings.Join(words[:last], ""))
}

// singular returns one form for a noun and its plural, if not always a word:
// movies and movie are movy, companies and company are company.
func singular(noun string) string {
	if len(noun) > 3 && strings.HasSuffix(noun, "s") && !strings.HasSuffix(noun, "ss") {
		noun = noun[:len(noun)-1]
	}
	if stem, ok := strings.CutSuffix(noun, "ie"); ok && len(stem) > 1 {
		return stem + "y"
	}
	return noun
}

// wordsOf cuts a name at its separators and capitals, one word at least.
func wordsOf(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && lower:
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	if words := strings.Fields(b.String()); len(words) > 0 {
		return words
	}
	return []string{""}
}

// hint names, with the first hits, the tools that give what they need, and then
// those that need what they give, as far as the budget goes.
func (d *discovery) hint(ctx context.Context, out []listed, tools []*tool.Tool, sees func(*tool.Tool) bool) {
	n := min(flowHits, len(tools))
	before, after := make([][]string, n), make([][]string, n)
	set := d.host.Tools()
	d.mu.Lock()
	if d.flowOf != set {
		d.flowOf, d.flow = set, newFlow(set)
	}
	for i := range n {
		before[i], after[i] = d.flow.around(tools[i], sees)
	}
	d.mu.Unlock()
	for i := range n {
		if d.host.Around == nil {
			break
		}
		earlier, later := d.host.Around(ctx, tools[i].Name)
		before[i], after[i] = d.join(before[i], earlier, sees), d.join(after[i], later, sees)
	}
	left := flowBudget
	for i := range n {
		out[i].Before = fitting(before[i], &left)
	}
	for i := range n {
		out[i].After = fitting(after[i], &left)
	}
}

// join adds the tools to names that usage knows of, those that are seen.
func (d *discovery) join(names, used []string, sees func(*tool.Tool) bool) []string {
	for _, name := range used {
		t, ok := d.host.Tools().Lookup(name)
		if ok && len(names) < flowEach && sees(t) && !slices.Contains(names, name) {
			names = append(names[:len(names):len(names)], name)
		}
	}
	return names
}

// fitting returns as many names as the budget allows, and takes them off it.
func fitting(names []string, left *int) []string {
	var out []string
	for _, name := range names {
		cost := inject.Estimate(name) + flowElement
		if len(out) == 0 {
			cost += flowKey
		}
		if cost > *left {
			break
		}
		*left -= cost
		out = append(out, name)
	}
	return out
}
