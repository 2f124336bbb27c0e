// Package discovery is the module of meta-tools with which a model finds, reads and calls the tools that it is not shown.
package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// Module is the discovery module. It is open in every app.
var Module = always(module.New("discovery", "Find, read and call tools that are not shown in full.", Config{MaxHits: 10}, open))

func always(m *module.Module) *module.Module { m.Always = true; return m }

// Config configures the module.
type Config struct {
	MaxHits int `json:"max_hits" min:"1" max:"50" jsonschema:"how many tools a search returns when the call does not say"`
}

// answerBudget is what one listing may cost, in estimated tokens: ten search
// hits stay under 1,000 (SPEC I8).
const answerBudget = 900

type discovery struct {
	host *module.Host
	cfg  Config

	mu         sync.Mutex
	set        *tool.Set // of which signatures are kept
	signatures map[*tool.Tool]string
}

func open(_ context.Context, h *module.Host, c Config) (*module.Toolset, error) {
	d := &discovery{host: h, cfg: c}
	return &module.Toolset{Tools: []*tool.Tool{d.searchTools(), d.getTool(), d.executeTool(), d.listCategories(), d.browseCategory()}}, nil
}

// meta returns what the definitions of meta-tools have in common.
func meta(name, description string, aliases ...string) tool.Definition {
	return tool.Definition{Name: name, Description: description, Effect: tool.Reads, Category: tool.Search,
		Group: tool.GroupAgent, Aliases: aliases, Meta: true, ParallelSafe: true}
}

type searchInput struct {
	Query string `json:"query" jsonschema:"what you want to do, in any language"`
	Limit int    `json:"limit,omitempty" min:"1" max:"50"`
}

func (d *discovery) searchTools() *tool.Tool {
	def := meta("search_tools", "Find tools by what they do.", "ToolSearch", "find_tool", "tool_search", "retrieve_tools", "find_tools")
	def.SearchLike = true
	return tool.NewFor(def, func(ctx context.Context, c *tool.Call, in searchInput) (*tool.Result, error) {
		if in.Limit == 0 {
			in.Limit = d.cfg.MaxHits
		}
		hits, err := d.host.Search(ctx, search.Query{Text: in.Query, Limit: in.Limit, Accept: d.sees(c.From)})
		if err != nil {
			return nil, err
		}
		tools := make([]*tool.Tool, len(hits))
		for i, h := range hits {
			tools[i] = h.Tool
		}
		hint := "run one with execute_tool"
		if len(tools) == 0 {
			hint = "nothing matches; try other words, or list_categories"
		}
		return d.compactList(tools, map[string]any{"hint": hint})
	})
}

func (d *discovery) sees(from tool.Origin) func(*tool.Tool) bool {
	return func(t *tool.Tool) bool { return !t.Meta && d.host.Visible(from, t) }
}

// A listed tool, as search and browsing show it.
type listed struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Params      string `json:"params,omitempty"`
}

// compactList lists tools within the budget: the more there are, the less is
// said of each; none is left out.
func (d *discovery) compactList(tools []*tool.Tool, more map[string]any) (*tool.Result, error) {
	each := answerBudget / max(len(tools), 10)
	out := make([]listed, len(tools))
	for i, t := range tools {
		out[i] = d.brief(t, each)
	}
	more["tools"] = out
	return jsonResult(more)
}

// brief describes a tool in at most that many estimated tokens beyond its name.
func (d *discovery) brief(t *tool.Tool, tokens int) listed {
	l := listed{Name: t.Name}
	left := tokens - inject.Estimate(t.Name) - 12 // the frame: keys, quotes, braces
	l.Params = inject.Clip(d.signature(t), left/2)
	left -= inject.Estimate(l.Params)
	l.Description = inject.Clip(inject.Summary(t), left)
	return l
}

// signature returns the tool's signature, which is read from its schema once
// for each set of tools.
func (d *discovery) signature(t *tool.Tool) string {
	set := d.host.Tools()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.set != set {
		d.set, d.signatures = set, map[*tool.Tool]string{}
	}
	s, ok := d.signatures[t]
	if !ok {
		s = inject.Clip(signature(t.Input), answerBudget)
		d.signatures[t] = s
	}
	return s
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

type nameInput struct {
	Name string `json:"name"`
}

// A description is all that is known of a tool.
type description struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Help        string            `json:"help,omitempty"`
	Parameters  *schema.Schema    `json:"parameters"`
	Output      *schema.Schema    `json:"output,omitempty"`
	Module      string            `json:"module"`
	Category    tool.Category     `json:"category,omitempty"`
	Effect      string            `json:"effect"`
	Risk        string            `json:"risk"`
	Group       tool.Group        `json:"group"`
	Examples    []json.RawMessage `json:"examples,omitempty"`
	SideEffects []string          `json:"side_effects,omitempty"`
	Tags        []string          `json:"tags,omitempty"`
	Aliases     []string          `json:"aliases,omitempty"`
}

func (d *discovery) getTool() *tool.Tool {
	def := meta("get_tool", "Show a tool's full parameters and examples.", "describe_tool", "tool_info")
	def.MaxResult = 200_000 // a schema that is cut is of no use
	return tool.NewFor(def, func(_ context.Context, c *tool.Call, in nameInput) (*tool.Result, error) {
		t, err := d.find(c.From, in.Name)
		if err != nil {
			return nil, err
		}
		return jsonResult(Describe(t))
	})
}

// find resolves a name to a tool that the caller may know of.
func (d *discovery) find(from tool.Origin, name string) (*tool.Tool, error) {
	sees := func(t *tool.Tool) bool { return d.host.Visible(from, t) }
	t, err := d.host.Tools().Resolve(name, sees)
	switch {
	case err != nil:
		return nil, err
	case !sees(t):
		return nil, tool.Errorf(tool.CodeNotVisible, "the tool %q is not available to this caller", name)
	}
	return t, nil
}

// Describe returns all that is known of a tool, to be encoded as JSON.
func Describe(t *tool.Tool) any {
	return description{
		Name: t.Name, Description: t.Description, Help: t.Help, Parameters: t.Input, Output: t.Output,
		Module: t.ModuleName(), Category: t.Category, Effect: t.Effect.String(), Risk: t.RiskLevel().String(), Group: t.GroupName(),
		Examples: t.Examples, SideEffects: t.SideEffects, Tags: t.Tags, Aliases: t.Aliases,
	}
}

func (d *discovery) executeTool() *tool.Tool {
	def := meta("execute_tool", "Run a tool.", "call_tool", "run_tool", "use_tool", "use_mcp_tool")
	def.Input = schema.Must(`{"type":"object","properties":{"name":{"type":"string"},"params":{"type":"object"}},"required":["name"],"additionalProperties":false}`)
	def.Timeout = 24 * time.Hour // the target's own timeout counts
	def.MaxResult = 250_000      // the target's own limit counts
	def.ParallelSafe = false     // as safe as its target, which is judged instead
	return &tool.Tool{
		Definition: def,
		Targets: func(args json.RawMessage) []tool.Target {
			var in tool.Target
			if json.Unmarshal(args, &in) != nil {
				return nil
			}
			return []tool.Target{in}
		},
		Handle: func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			var in tool.Target
			if err := json.Unmarshal(c.Args, &in); err != nil {
				return nil, tool.Errorf(tool.CodeValidation, "arguments: %v", err)
			}
			return d.host.Call(ctx, c.Child("", in.Name, in.Args))
		},
	}
}

// A category is a module, as list_categories shows it.
type category struct {
	Name  string `json:"name"`
	Tools int    `json:"tools"`
}

// maxCategories is how many modules are listed one by one.
const maxCategories = 60

func (d *discovery) listCategories() *tool.Tool {
	def := meta("list_categories", "List the tool categories.", "list_modules", "list_domains")
	return tool.NewFor(def, func(_ context.Context, c *tool.Call, _ struct{}) (*tool.Result, error) {
		counts := map[string]int{}
		var names []string
		for t := range d.host.Tools().All() {
			if !d.sees(c.From)(t) {
				continue
			}
			m := t.ModuleName()
			if counts[m] == 0 {
				names = append(names, m)
			}
			counts[m]++
		}
		out := map[string]any{}
		if len(names) > maxCategories {
			out["more"] = fmt.Sprintf("%d more; search_tools finds their tools", len(names)-maxCategories)
			names = names[:maxCategories]
		}
		list := make([]category, len(names))
		for i, n := range names {
			list[i] = category{n, counts[n]}
		}
		out["categories"] = list
		return jsonResult(out)
	})
}

type browseInput struct {
	Category string `json:"category"`
	Offset   int    `json:"offset,omitempty" min:"0"`
}

// pageSize is how many tools browse_category lists at a time.
const pageSize = 20

func (d *discovery) browseCategory() *tool.Tool {
	def := meta("browse_category", "List a category's tools.", "list_tools", "browse_module")
	return tool.NewFor(def, func(_ context.Context, c *tool.Call, in browseInput) (*tool.Result, error) {
		var tools []*tool.Tool
		var modules []string
		for t := range d.host.Tools().All() {
			if !d.sees(c.From)(t) {
				continue
			}
			if m := t.ModuleName(); !slices.Contains(modules, m) {
				modules = append(modules, m)
			}
			if in.Category == t.ModuleName() || in.Category == string(t.Category) || strings.HasPrefix(t.ModuleName(), in.Category+".") {
				tools = append(tools, t)
			}
		}
		if len(tools) == 0 {
			return nil, noCategory(in.Category, modules)
		}
		page := tools[min(in.Offset, len(tools)):min(in.Offset+pageSize, len(tools))]
		more := map[string]any{"total": len(tools)}
		if next := in.Offset + pageSize; next < len(tools) {
			more["next_offset"] = next
		}
		return d.compactList(page, more)
	})
}

func noCategory(name string, modules []string) error {
	near := schema.Closest(name, modules, 5)
	if len(near) == 0 {
		near = modules[:min(5, len(modules))]
	}
	return tool.Errorf(tool.CodeNotFound, "no category is named %q; there are for example %s (list_categories lists them)", name, strings.Join(near, ", ")).
		With(map[string][]string{"suggestions": near})
}

func jsonResult(v any) (*tool.Result, error) {
	data, err := tool.Encode(v)
	if err != nil {
		return nil, err
	}
	return tool.Text(string(data)), nil
}
