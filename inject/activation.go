package inject

import (
	"slices"
	"sync"
)

// DefaultMaxActive is how many tools a session keeps active (SPEC I5).
const DefaultMaxActive = 20

// An Activation is the set of tools whose full definitions one session is
// shown, beside what the mode shows. It keeps the most recently used; what it
// drops stays in the index. The zero Activation is empty and keeps
// DefaultMaxActive tools. It is safe for concurrent use.
type Activation struct {
	Max int // set before first use

	mu     sync.Mutex
	tick   int
	tools  []active // in the order of activation, which is the order of listing
	pinned []string
}

type active struct {
	name string
	used int
}

// Pin makes a tool active for good: it is never dropped and does not count.
func (a *Activation) Pin(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range names {
		if !slices.Contains(a.pinned, n) {
			a.pinned = append(a.pinned, n)
			a.tools = slices.DeleteFunc(a.tools, func(t active) bool { return t.name == n })
		}
	}
}

// Use makes a tool active, or notes that it was used. It returns the name of
// the tool that was dropped for it, if one was.
func (a *Activation) Use(name string) (dropped string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tick++
	if slices.Contains(a.pinned, name) {
		return ""
	}
	for i := range a.tools {
		if a.tools[i].name == name {
			a.tools[i].used = a.tick
			return ""
		}
	}
	most := a.Max
	if most == 0 {
		most = DefaultMaxActive
	}
	if len(a.tools) >= most {
		oldest := 0
		for i := range a.tools {
			if a.tools[i].used < a.tools[oldest].used {
				oldest = i
			}
		}
		dropped = a.tools[oldest].name
		a.tools = slices.Delete(a.tools, oldest, oldest+1)
	}
	a.tools = append(a.tools, active{name, a.tick})
	return dropped
}

// Names returns the active tools: the pinned ones, then the others in the
// order in which they became active.
func (a *Activation) Names() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := slices.Clone(a.pinned)
	for _, t := range a.tools {
		names = append(names, t.name)
	}
	return names
}
