package parse

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Tools are the tools that a model was offered. They are safe for concurrent use.
type Tools struct {
	names   []string
	byName  map[string]*offer
	resolve func(name string) *offer // of other forms of a name; nil: there are none
}

// An Offer is one tool that a model was offered.
type Offer struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema; nil: nothing is known
}

type offer struct {
	Offer
	once   sync.Once
	params *params
}

// NewTools returns the tools of these names. Of two with one name the first counts.
func NewTools(offers ...Offer) *Tools {
	t := &Tools{byName: make(map[string]*offer, len(offers))}
	for _, o := range offers {
		if t.byName[o.Name] == nil {
			t.names = append(t.names, o.Name)
			t.byName[o.Name] = &offer{Offer: o}
		}
	}
	t.resolve = t.wire
	return t
}

// wire finds the tool whose name has this form towards model APIs.
func (t *Tools) wire(name string) *offer { return t.byName[strings.ReplaceAll(name, "__", ".")] }

// FromSet returns the tools of a set that visible accepts, under every name by
// which the set resolves them. Nil visible accepts all.
func FromSet(set *tool.Set, visible func(*tool.Tool) bool) *Tools {
	t := &Tools{byName: make(map[string]*offer, set.Len())}
	for d := range set.All() {
		if visible == nil || visible(d) {
			t.names = append(t.names, d.Name)
			t.byName[d.Name] = &offer{Offer: offerOf(d)}
		}
	}
	t.resolve = func(name string) *offer {
		d, err := set.Resolve(name, visible)
		if err != nil {
			return nil
		}
		return t.byName[d.Name]
	}
	return t
}

func offerOf(d *tool.Tool) Offer {
	o := Offer{Name: d.Name, Description: d.Summary()}
	if d.Input != nil {
		o.Parameters = d.Input.Raw()
	}
	return o
}

func (t *Tools) lookup(name string) *offer {
	if o := t.byName[name]; o != nil || t.resolve == nil || name == "" {
		return o
	}
	return t.resolve(name)
}

// unknown says that a tool was not offered, and which may have been meant.
func (t *Tools) unknown(name string) string {
	if name == "" {
		return "a call names no tool: it was left as text"
	}
	if t == nil {
		return fmt.Sprintf("%q cannot be the name of a tool: the call was left as text", name)
	}
	near := schema.Closest(name, t.names, 3)
	if len(near) == 0 {
		return fmt.Sprintf("no tool named %q was offered: the call was left as text", name)
	}
	return fmt.Sprintf("no tool named %q was offered: the call was left as text; did you mean %s?", name, strings.Join(near, ", "))
}

// paramsOf returns what is known of a tool's parameters, or nil.
func (e *env) paramsOf(name string) *params {
	full, ok := e.offered(name)
	if !ok || e.tools == nil {
		return nil
	}
	o := e.tools.lookup(full)
	o.once.Do(func() { o.params = readParams(o.Parameters) })
	return o.params
}
