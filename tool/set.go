package tool

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/helve-ai/helve/schema"
)

// A Set is a set of tools that never changes. It is safe for concurrent use.
// The zero Set is empty.
type Set struct {
	entries map[string]entry
	names   []string // sorted
	stale   chan struct{}

	once  sync.Once
	forms *forms // made on first use: most calls name their tool exactly
}

type entry struct {
	owner string
	tool  *Tool
}

// forms are the ways, other than its name, in which a tool may be called.
type forms struct {
	wire    map[string]string   // wire form -> name
	wireOf  map[string]string   // name -> wire form, where it differs from Wire(name)
	aliases map[string][]string // alias -> names
	short   map[string][]string // last part of the name -> names
	folded  map[string][]string // lower-case form of a name or wire form -> names
}

// Len reports how many tools there are.
func (s *Set) Len() int { return len(s.names) }

// All yields the tools in the order of their names.
func (s *Set) All() iter.Seq[*Tool] {
	return func(yield func(*Tool) bool) {
		for _, n := range s.names {
			if !yield(s.entries[n].tool) {
				return
			}
		}
	}
}

// Lookup returns the tool of exactly this name.
func (s *Set) Lookup(name string) (*Tool, bool) {
	e, ok := s.entries[name]
	return e.tool, ok
}

// Owner returns who offered the named tool.
func (s *Set) Owner(name string) string { return s.entries[name].owner }

// Superseded returns a channel that is closed when a newer set replaces s.
func (s *Set) Superseded() <-chan struct{} { return s.stale }

// Wire returns the form of the name under which model APIs may call the tool.
// No two tools of the set have the same.
func (s *Set) Wire(name string) string {
	if w, ok := s.index().wireOf[name]; ok {
		return w
	}
	return Wire(name)
}

// Resolve returns the tool that name means: the exact name, the wire form, an
// alias, a short name that only one tool has, or any of the names in another
// case, in that order (SPEC T4). Only a full name, exact or in wire form,
// reaches a tool that visible rejects, and only if it means no visible one: so
// both say the same of it. Nil visible accepts all.
//
// An ambiguous or unknown name is an *Error that lists the candidates or up to
// five near names, none of them invisible.
func (s *Set) Resolve(name string, visible func(*Tool) bool) (*Tool, error) {
	if t, ok := s.Lookup(name); ok {
		return t, nil
	}
	f := s.index()
	if full, ok := f.wire[name]; ok && s.sees(visible, full) {
		return s.entries[full].tool, nil
	}
	for _, m := range []map[string][]string{f.aliases, f.short} {
		if t, err := s.pick(name, m[name], visible); t != nil || err != nil {
			return t, err
		}
	}
	lower := strings.ToLower(name)
	if t, err := s.pick(name, f.folded[lower], visible); t != nil || err != nil {
		return t, err
	}
	if full, ok := f.wire[name]; ok {
		return s.entries[full].tool, nil
	}
	return nil, s.notFound(name, visible)
}

// pick returns the one visible tool among names, nil if there is none, and an
// error that lists them if there are several.
func (s *Set) pick(name string, names []string, visible func(*Tool) bool) (*Tool, error) {
	var seen []string
	for _, n := range names {
		if s.sees(visible, n) && !slices.Contains(seen, n) {
			seen = append(seen, n)
		}
	}
	switch len(seen) {
	case 0:
		return nil, nil
	case 1:
		return s.entries[seen[0]].tool, nil
	}
	slices.Sort(seen)
	const most = 10
	shown := strings.Join(seen[:min(len(seen), most)], ", ")
	if len(seen) > most {
		shown += fmt.Sprintf(" and %d more", len(seen)-most)
	}
	return nil, Errorf(CodeNotFound, "%q is ambiguous: it may mean %s; call one of them by its full name", name, shown).
		With(map[string][]string{"candidates": seen[:min(len(seen), most)]})
}

func (s *Set) sees(visible func(*Tool) bool, name string) bool {
	e, ok := s.entries[name]
	return ok && (visible == nil || visible(e.tool))
}

func (s *Set) notFound(name string, visible func(*Tool) bool) *Error {
	near := s.Near(name, 5, visible)
	if len(near) == 0 {
		return Errorf(CodeNotFound, "no tool is named %q; search_tools finds tools by what they do", name)
	}
	return Errorf(CodeNotFound, "no tool is named %q; did you mean %s?", name, strings.Join(near, ", ")).
		With(map[string][]string{"suggestions": near})
}

// Near returns up to n names of visible tools that differ little from name, nearest first.
func (s *Set) Near(name string, n int, visible func(*Tool) bool) []string {
	var names, keys []string
	for _, full := range s.names {
		if s.sees(visible, full) {
			names = append(names, full)
			keys = append(keys, full)
			if short := shortName(s.entries[full].tool); short != full {
				names = append(names, full)
				keys = append(keys, short)
			}
		}
	}
	var out []string
	for _, i := range schema.ClosestIndexes(strings.ReplaceAll(name, "__", "."), keys, 2*n) {
		if len(out) < n && !slices.Contains(out, names[i]) {
			out = append(out, names[i])
		}
	}
	return out
}

func shortName(t *Tool) string {
	if a := t.Action(); a != "" && a != t.Name {
		return a
	}
	return t.Name[strings.LastIndexByte(t.Name, '.')+1:]
}

func (s *Set) index() *forms {
	s.once.Do(func() { s.forms = s.makeForms() })
	return s.forms
}

func (s *Set) makeForms() *forms {
	f := &forms{
		wire: make(map[string]string, len(s.names)), wireOf: map[string]string{},
		aliases: map[string][]string{}, short: make(map[string][]string, len(s.names)), folded: make(map[string][]string, len(s.names)),
	}
	var hashed []string
	for _, n := range s.names { // plain forms first: nothing made from a hash may displace one
		if w := Wire(n); reversible(n) && len(w) <= MaxWire && w == strings.ReplaceAll(n, ".", "__") {
			f.wire[w] = n
		} else {
			hashed = append(hashed, n)
		}
	}
	for _, n := range hashed {
		w := Wire(n)
		for digits := 16; f.wire[w] != ""; digits += 8 {
			w = hashedWire(n, digits)
			f.wireOf[n] = w
		}
		f.wire[w] = n
	}
	for _, n := range s.names {
		f.addNames(s.entries[n].tool)
	}
	return f
}

func (f *forms) addNames(t *Tool) {
	add := func(m map[string][]string, key string) { m[key] = append(m[key], t.Name) }
	for _, a := range t.Aliases {
		if callable(a) {
			add(f.aliases, a)
			add(f.folded, strings.ToLower(a))
		}
	}
	short := shortName(t)
	add(f.short, short)
	add(f.folded, strings.ToLower(t.Name))
	add(f.folded, strings.ToLower(Wire(t.Name)))
	add(f.folded, strings.ToLower(short))
}
