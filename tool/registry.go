package tool

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/helve-ai/helve/schema"
)

// A Registry holds the tools now on offer, each under the owner that offered it.
// The zero Registry is empty and ready to use. It is safe for concurrent use.
type Registry struct {
	mu  sync.Mutex // serialises writers; readers take no lock
	set atomic.Pointer[Set]
}

// Add offers tools that nobody owns, beside those already there.
// Either all are added, or none and an error says why.
func (r *Registry) Add(tools ...*Tool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.Set()
	var all []*Tool
	for _, e := range old.entries {
		if e.owner == "" {
			all = append(all, e.tool)
		}
	}
	return r.replace(old, "", append(all, tools...))
}

// Replace puts tools in place of all that owner offered before.
// Either every change happens, or none and an error says why.
//
// A tool that owner offered before with the same pointer keeps its identity,
// so that what is built upon it (an index, a cache) can be kept too.
func (r *Registry) Replace(owner string, tools ...*Tool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replace(r.Set(), owner, tools)
}

func (r *Registry) replace(old *Set, owner string, tools []*Tool) error {
	next := &Set{entries: maps.Clone(old.entries), stale: make(chan struct{})}
	if next.entries == nil {
		next.entries = make(map[string]entry, len(tools))
	}
	kept := make([]string, 0, len(old.names))
	for _, name := range old.names {
		if old.entries[name].owner == owner {
			delete(next.entries, name)
		} else {
			kept = append(kept, name)
		}
	}
	added := make([]string, 0, len(tools))
	for _, t := range tools {
		if err := Check(t); err != nil {
			return err
		}
		if have, dup := next.entries[t.Name]; dup {
			return fmt.Errorf("tool %s: already offered by %s", t.Name, orElse(have.owner, "the same owner"))
		}
		next.entries[t.Name] = entry{owner, t}
		added = append(added, t.Name)
	}
	slices.Sort(added)
	next.names = mergeSorted(kept, added)
	r.set.Store(next)
	close(old.stale)
	return nil
}

// mergeSorted returns the elements of two sorted lists in order.
func mergeSorted(a, b []string) []string {
	out := make([]string, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// Set returns the tools now on offer.
func (r *Registry) Set() *Set {
	if s := r.set.Load(); s != nil {
		return s
	}
	r.set.CompareAndSwap(nil, &Set{stale: make(chan struct{})})
	return r.set.Load()
}

// Check returns an error if t cannot be offered: a name or description is
// missing, the input is not an object, or a tool that touches the file system
// does not say which of its arguments are paths (SPEC T3).
func Check(t *Tool) error {
	if err := checkName(t.Name); err != nil {
		return err
	}
	switch {
	case t.Summary() == "":
		return fmt.Errorf("tool %s: no description", t.Name)
	case t.Handle == nil:
		return fmt.Errorf("tool %s: no handler", t.Name)
	case t.Input == nil:
		return fmt.Errorf("tool %s: no input schema", t.Name)
	case t.Needs.Has(NeedsFilesystem) && !hasPath(t.Input):
		return fmt.Errorf("tool %s: needs the file system, but no argument has a path role", t.Name)
	}
	return nil
}

func hasPath(s *schema.Schema) bool {
	return slices.ContainsFunc(s.Roles(), schema.Role.IsPath)
}
