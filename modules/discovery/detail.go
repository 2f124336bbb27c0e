package discovery

import (
	"context"
	"slices"
	"strings"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// A detail says how much is told of each tool of an answer.
type detail string

const (
	byName    detail = "name"
	bySummary detail = "summary" // name, what it does, parameters; the default
	bySchema  detail = "schema"  // and the parameters in full, of as many as fit
)

// What an answer may cost, in estimated tokens.
const (
	answerBudget = 900   // ten search hits stay under 1,000 (SPEC I8)
	schemaBudget = 4_000 // of the parameters in full, beside
)

// maxListing bounds the characters of a listing, which keeps to its budget by
// itself: half a listing is of no use.
const maxListing = 60_000

// A listed tool, as search and browsing show it.
type listed struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Params      string         `json:"params,omitempty"`
	Parameters  *schema.Schema `json:"parameters,omitempty"` // in place of Params
	Before      []string       `json:"before,omitempty"`     // tools that give what this one needs
	After       []string       `json:"after,omitempty"`      // tools that need what this one gives
}

// list lists tools within the budget: the more there are, the less is said of
// each; none is left out. With sees it names the tools before and after the
// first ones, among those that are seen.
func (d *discovery) list(ctx context.Context, tools []*tool.Tool, by detail, sees func(*tool.Tool) bool, more map[string]any) (*tool.Result, error) {
	if by == byName {
		names := make([]string, len(tools))
		for i, t := range tools {
			names[i] = t.Name
		}
		more["tools"] = names
		return jsonResult(more)
	}
	each := answerBudget / max(len(tools), 10)
	out := make([]listed, len(tools))
	for i, t := range tools {
		out[i] = d.brief(t, each)
	}
	if d.cfg.Hints && sees != nil {
		d.hint(ctx, out, tools, sees)
	}
	if by == bySchema && !showSchemas(out, tools) {
		more["hint"] = "get_tool shows the parameters that are only listed here"
	}
	more["tools"] = out
	return jsonResult(more)
}

// showSchemas shows parameters in full, those of the first tools first, as far
// as the budget goes. It reports whether it went all the way.
func showSchemas(out []listed, tools []*tool.Tool) bool {
	left, all := schemaBudget, true
	for i, t := range tools {
		text, err := tool.Encode(t.Input)
		cost := inject.Estimate(string(text))
		if err != nil || cost > left {
			all = false
			continue
		}
		left -= cost
		out[i].Params, out[i].Parameters = "", t.Input
	}
	return all
}

// brief describes a tool in at most that many estimated tokens beyond its name.
func (d *discovery) brief(t *tool.Tool, tokens int) listed {
	l := listed{Name: t.Name}
	left := tokens - inject.Estimate(t.Name) - 12 // the frame: keys, quotes, braces
	a := d.abstract(t)
	l.Params = inject.Clip(a.signature, left/2)
	left -= inject.Estimate(l.Params)
	l.Description = inject.Clip(a.summary, left)
	return l
}

// An abstract is what lists tell of a tool.
type abstract struct{ signature, summary string }

// abstract returns the tool's abstract, which is made once for each set of tools.
func (d *discovery) abstract(t *tool.Tool) abstract {
	set := d.host.Tools()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.set != set {
		d.set, d.abstracts = set, map[*tool.Tool]abstract{}
	}
	a, ok := d.abstracts[t]
	if !ok {
		a = abstract{inject.Clip(signature(t.Input), answerBudget), inject.Summary(t)}
		d.abstracts[t] = a
	}
	return a
}

// signature lists parameters as in "path: string, limit?: integer", required ones first.
func signature(s *schema.Schema) string {
	params := s.Parameters()
	slices.SortStableFunc(params, func(a, b schema.Parameter) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	var b strings.Builder
	for i, p := range params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name)
		if !p.Required {
			b.WriteByte('?')
		}
		if p.Type != "string" && p.Type != "any" && len(p.Type) <= 40 {
			b.WriteString(": " + p.Type)
		}
	}
	return b.String()
}
