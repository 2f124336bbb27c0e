// Package gen makes the reference files that are generated from the tool table, the table of formats and the Go types.
package gen

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/tool"
)

// Files returns the generated files by their paths from the root of the module.
func Files(ctx context.Context) (map[string][]byte, error) {
	modules := app.Known(std.Modules())
	slices.SortFunc(modules, func(a, b *module.Module) int { return strings.Compare(a.Name, b.Name) })
	tools, err := toolReference(ctx, modules)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"docs/tools.md":        tools,
		"docs/dialects.md":     dialects(),
		"docs/app.schema.json": append(app.JSONSchema(modules), '\n'),
	}, nil
}

// toolReference describes every built-in tool (SPEC T6).
func toolReference(ctx context.Context, modules []*module.Module) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# The built-in tools\n\nGenerated from the tool table. To change it, change the tools and run `go test ./internal/gen -update`.\n")
	for _, m := range modules {
		tools, err := m.Describe(ctx)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(tools, func(a, b *tool.Tool) int { return strings.Compare(a.Name, b.Name) })
		fmt.Fprintf(&b, "\n## %s\n\n%s%s\n", m.Name, m.Doc, openNote(m))
		config(&b, m)
		for _, t := range tools {
			describe(&b, t)
		}
	}
	return b.Bytes(), nil
}

func openNote(m *module.Module) string {
	if m.Always {
		return " It is open in every app."
	}
	return ""
}

func config(b *bytes.Buffer, m *module.Module) {
	params := m.Config.Parameters()
	if len(params) == 0 {
		return
	}
	b.WriteString("\n| configuration | type | meaning | default |\n|---|---|---|---|\n")
	for _, p := range params {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, code(p.Type), cell(p.Description), code(string(p.Default)))
	}
}

func describe(b *bytes.Buffer, t *tool.Tool) {
	fmt.Fprintf(b, "\n### `%s`\n\n%s\n", t.Name, t.Description)
	if t.Help != "" {
		fmt.Fprintf(b, "\n%s\n", t.Help)
	}
	fmt.Fprintf(b, "\n%s\n", strings.Join(facts(t), " · "))
	if params := t.Input.Parameters(); len(params) > 0 {
		b.WriteString("\n| parameter | type | | meaning | role |\n|---|---|---|---|---|\n")
		for _, p := range params {
			need := "optional"
			if p.Required {
				need = "required"
			} else if len(p.Default) > 0 {
				need = "default " + code(string(p.Default))
			}
			fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", p.Name, code(p.Type), need, cell(p.Description), p.Role)
		}
	}
	for _, e := range t.Examples {
		fmt.Fprintf(b, "\n```json\n%s\n```\n", e)
	}
	if len(t.SideEffects) > 0 {
		fmt.Fprintf(b, "\nSide effects: %s\n", strings.Join(t.SideEffects, "; "))
	}
}

func facts(t *tool.Tool) []string {
	out := []string{"effect " + t.Effect.String(), "risk " + t.RiskLevel().String(), "group " + string(t.GroupName())}
	if t.Category != "" {
		out = append(out, "category "+string(t.Category))
	}
	switch {
	case t.Meta:
		out = append(out, "shown in every mode")
	case t.Deferred:
		out = append(out, "deferred")
	}
	if t.ParallelSafe {
		out = append(out, "parallel-safe")
	}
	if s := t.Needs.String(); s != "" {
		out = append(out, "needs "+s)
	}
	var callable []string
	for _, a := range t.Aliases {
		if !strings.Contains(a, " ") {
			callable = append(callable, "`"+a+"`")
		}
	}
	if len(callable) > 0 {
		out = append(out, "also called "+strings.Join(callable, ", "))
	}
	return out
}

// cell makes a text fit a table's cell.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "|", "\\|") + "`"
}
