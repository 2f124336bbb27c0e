// Package discovery is the module of meta-tools with which a model finds, reads and calls the tools that it is not shown.
package discovery

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// Module is the discovery module. It is open in every app.
var Module = always(module.New("discovery", "Find, read and call tools that are not shown in full.", Config{MaxHits: 10, Hints: true}, open))

func always(m *module.Module) *module.Module { m.Always = true; return m }

// Config configures the module.
type Config struct {
	MaxHits int  `json:"max_hits" min:"1" max:"50" jsonschema:"how many tools a search returns when the call does not say"`
	Hints   bool `json:"hints" jsonschema:"name, with the first hits, tools that give what they need or need what they give"`
}

type discovery struct {
	host *module.Host
	cfg  Config

	mu        sync.Mutex
	set       *tool.Set // of which abstracts are kept
	abstracts map[*tool.Tool]abstract
	flowOf    *tool.Set // whose flow is kept
	flow      *flow
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
	Query  string `json:"query" jsonschema:"what you want to do, in any language"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"50"`
	Detail detail `json:"detail,omitempty" enum:"name,summary,schema"`
}

func (d *discovery) searchTools() *tool.Tool {
	def := meta("search_tools", "Find tools by what they do.", "ToolSearch", "find_tool", "tool_search", "retrieve_tools", "find_tools")
	def.SearchLike, def.MaxResult = true, maxListing
	return tool.NewFor(def, func(ctx context.Context, c *tool.Call, in searchInput) (*tool.Result, error) {
		if in.Limit == 0 {
			in.Limit = d.cfg.MaxHits
		}
		hits, err := d.host.Search(ctx, search.Query{Text: in.Query, Limit: in.Limit, Accept: d.sees(c.From), From: c.From})
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
		return d.list(ctx, tools, in.Detail, d.sees(c.From), map[string]any{"hint": hint + d.unanswered(c.From)})
	})
}

// unanswered says whose tools cannot be found yet; "": none.
func (d *discovery) unanswered(from tool.Origin) string {
	if d.host.Unanswered == nil {
		return ""
	}
	names := d.host.Unanswered(from)
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > maxUnanswered {
		names, more = names[:maxUnanswered], ", …"
	}
	return "; not known yet, since they have not answered: the tools of the MCP servers " + strings.Join(names, ", ") + more
}

// maxUnanswered is how many servers a search names whose tools are not known.
const maxUnanswered = 5

func (d *discovery) sees(from tool.Origin) func(*tool.Tool) bool {
	return func(t *tool.Tool) bool { return !t.Meta && d.host.Visible(from, t) }
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

// maxCategories is how many modules list_categories lists at a time.
const maxCategories = 60

type categoriesInput struct {
	Offset int `json:"offset,omitempty" min:"0"`
}

func (d *discovery) listCategories() *tool.Tool {
	def := meta("list_categories", "List the tool categories.", "list_modules", "list_domains")
	return tool.NewFor(def, func(_ context.Context, c *tool.Call, in categoriesInput) (*tool.Result, error) {
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
		from := min(in.Offset, len(names))
		to := min(from+maxCategories, len(names))
		if len(names) > maxCategories {
			out["total"] = len(names)
		}
		if to < len(names) {
			out["next_offset"] = to
		}
		names = names[from:to]
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
	Detail   detail `json:"detail,omitempty" enum:"name,summary,schema"`
}

// pageSize is how many tools browse_category lists at a time.
const pageSize = 20

func (d *discovery) browseCategory() *tool.Tool {
	def := meta("browse_category", "List a category's tools.", "list_tools", "browse_module")
	def.MaxResult = maxListing
	return tool.NewFor(def, func(ctx context.Context, c *tool.Call, in browseInput) (*tool.Result, error) {
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
		from := min(in.Offset, len(tools))
		to := min(from+pageSize, len(tools))
		more := map[string]any{"total": len(tools)}
		if to < len(tools) {
			more["next_offset"] = to
		}
		return d.list(ctx, tools[from:to], in.Detail, nil, more)
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
