// Package inject chooses which tools a model sees, and how.
package inject

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// A Mode is a way of presenting tools (SPEC I1 to I4).
type Mode string

// The modes.
const (
	Direct    Mode = "direct"         // full schemas
	Compact   Mode = "compact_direct" // name and one line each; schemas on demand
	Discovery Mode = "discovery"      // a few meta-tools, with which the rest is found and called
)

// ParseMode returns the named mode; "full" and "compact" are other names of
// the first two. The empty string and "auto" mean that it is to be decided.
func ParseMode(s string) (Mode, error) {
	switch s {
	case "", "auto":
		return "", nil
	case "direct", "full":
		return Direct, nil
	case "compact_direct", "compact":
		return Compact, nil
	case "discovery":
		return Discovery, nil
	}
	return "", fmt.Errorf("mode %q: want direct (or full), compact_direct (or compact), discovery or auto", s)
}

// Figures of the decision (SPEC I1).
const (
	DefaultWindow  = 128_000 // tokens of context, where the model's is not known
	budgetShare    = 5       // tools may take a fifth of the window
	compactTokens  = 30      // of one tool in a compact listing
	UnknownTokens  = 200     // of a tool whose schema is not at hand
	bytesPerToken  = 4
	maxSummary     = 120 // characters of a one-line description
	openParameters = `{"type":"object","additionalProperties":true}`
)

// A Decision is a mode and the numbers behind it, in tokens.
type Decision struct {
	Mode            Mode `json:"mode"`
	Forced          bool `json:"forced"` // by configuration
	Window          int  `json:"window"`
	Budget          int  `json:"budget"`
	Tools           int  `json:"tools"`
	DirectTokens    int  `json:"direct_tokens"`
	CompactTokens   int  `json:"compact_direct_tokens"` // the estimate by which it was decided
	DiscoveryTokens int  `json:"discovery_tokens"`
}

// Decide returns the mode for a window of that many tokens (zero:
// DefaultWindow), a number of tools, and what their full schemas cost.
func Decide(window, tools, directTokens int) Decision {
	if window == 0 {
		window = DefaultWindow
	}
	d := Decision{Window: window, Budget: window / budgetShare, Tools: tools,
		DirectTokens: directTokens, CompactTokens: tools * compactTokens}
	switch {
	case d.DirectTokens <= d.Budget:
		d.Mode = Direct
	case d.CompactTokens <= d.Budget:
		d.Mode = Compact
	default:
		d.Mode = Discovery
	}
	return d
}

// Options say what a presentation may show.
type Options struct {
	Window  int                   // tokens; zero: DefaultWindow
	Force   Mode                  // "": decided
	Visible func(*tool.Tool) bool // nil: every tool
	Modules []string              // modules whose tools are shown in every mode
	Active  []string              // names of activated tools, in the order of their activation
}

// An Item is a tool as it is shown.
type Item struct {
	Name        string          // in wire form
	Description string          // as the mode has it
	Input       json.RawMessage // the schema, or an open object
	Output      json.RawMessage // nil: none, or not shown
	Full        bool            // nothing was left out
	Tool        *tool.Tool
}

// A View is what a model sees. It is the same for the same tools and options.
type View struct {
	Decision
	Items []Item
}

// Present decides and makes the view of the tools in set.
func Present(set *tool.Set, o Options) View {
	var tools []*tool.Tool
	for t := range set.All() {
		if o.Visible == nil || o.Visible(t) {
			tools = append(tools, t)
		}
	}
	direct := make([]Item, len(tools))
	cost := 0
	for i, t := range tools {
		direct[i] = full(set, t)
		cost += direct[i].Tokens()
	}
	found := discovery(tools, direct, o)
	d := Decide(o.Window, len(tools), cost)
	for _, it := range found {
		d.DiscoveryTokens += it.Tokens()
	}
	if o.Force != "" {
		d.Mode, d.Forced = o.Force, true
	}
	switch d.Mode {
	case Direct:
		return View{d, deferTools(direct)}
	case Compact:
		return View{d, compact(set, direct)}
	}
	return View{d, found}
}

func full(set *tool.Set, t *tool.Tool) Item {
	it := Item{Name: set.Wire(t.Name), Description: describe(t), Input: t.Input.Raw(), Full: true, Tool: t}
	if t.Output != nil {
		it.Output = t.Output.Raw()
	}
	return it
}

// describe returns the description with an example, where the tool has one.
func describe(t *tool.Tool) string {
	if len(t.Examples) == 0 {
		return t.Description
	}
	return t.Description + "\nExample: " + string(t.Examples[0])
}

// deferTools shows deferred tools by their names alone (SPEC I6).
func deferTools(items []Item) []Item {
	for i, it := range items {
		if it.Tool.Deferred {
			items[i] = Item{Name: it.Name, Description: "(deferred: get_tool shows its parameters)", Input: json.RawMessage(openParameters), Tool: it.Tool}
		}
	}
	return items
}

func compact(set *tool.Set, direct []Item) []Item {
	out := make([]Item, len(direct))
	for i, it := range direct {
		if it.Tool.Meta {
			out[i] = it
			continue
		}
		out[i] = Item{Name: it.Name, Description: Summary(it.Tool), Input: json.RawMessage(openParameters), Tool: it.Tool}
	}
	return out
}

// discovery keeps the meta-tools, the tools of direct modules, and at the end
// the activated ones, so that what stood before an activation stays where it was.
func discovery(tools []*tool.Tool, direct []Item, o Options) []Item {
	shown := make(map[string]bool)
	var out []Item
	show := func(i int) {
		if !shown[tools[i].Name] {
			shown[tools[i].Name] = true
			out = append(out, direct[i])
		}
	}
	at := make(map[string]int, len(o.Active))
	for i, t := range tools {
		if t.Meta || isOneOf(t.ModuleName(), o.Modules) {
			show(i)
		}
		at[t.Name] = i
	}
	for _, name := range o.Active {
		if i, ok := at[name]; ok {
			show(i)
		}
	}
	return out
}

func isOneOf(module string, modules []string) bool {
	for _, m := range modules {
		if module == m || strings.HasPrefix(module, m+".") {
			return true
		}
	}
	return false
}

// Summary returns the tool's description on one line of at most 120 characters.
func Summary(t *tool.Tool) string {
	text := strings.Join(strings.Fields(t.Summary()), " ")
	if len(text) <= maxSummary {
		return text
	}
	if s := []rune(text); len(s) > maxSummary {
		return strings.TrimSpace(string(s[:maxSummary-1])) + "…"
	}
	return text
}

// Tokens returns what the item costs: the bytes of its JSON divided by four.
func (it Item) Tokens() int {
	const frame = len(`{"name":,"description":,"inputSchema":}`)
	return (frame + len(it.Name) + 2 + jsonLen(it.Description) + len(it.Input)) / bytesPerToken
}

// jsonLen returns the length of s as a JSON string.
func jsonLen(s string) int {
	n := 2 + len(s)
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			n++
		}
	}
	return n
}

// Tokens returns what the whole view costs.
func (v View) Tokens() int {
	n := 0
	for _, it := range v.Items {
		n += it.Tokens()
	}
	return n
}
