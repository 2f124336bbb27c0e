package inject_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// catalogue makes n varied tools of common size.
func catalogue(n int) []*tool.Tool {
	services := []string{"calendar", "mail", "issues", "billing", "storage", "deploy", "metrics", "chat", "docs", "crm"}
	verbs := []string{"create", "list", "get", "update", "delete", "search", "export", "share", "archive", "count"}
	objects := []string{"event", "message", "ticket", "invoice", "file", "release", "dashboard", "channel", "page", "contact"}
	var tools []*tool.Tool
	for i := range n {
		s, v, o := services[i%10], verbs[i/10%10], objects[i/100%10]
		tools = append(tools, made(fmt.Sprintf("mcp.%s_%d.%s_%s", s, i/1000, v, o), func(d *tool.Definition) {
			d.Description = fmt.Sprintf("%s one %s of the %s service, or several by filter. Results are paginated; pass the cursor to continue.", v, o, s)
			d.Input = schema.Must(`{"type":"object","properties":{"id":{"type":"string","description":"Unique identifier of the ` + o + `"},"title":{"type":"string","description":"Short human readable title","maxLength":256},"filter":{"type":"object","properties":{"owner":{"type":"string"},"since":{"type":"string","format":"date-time"}}},"limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"cursor":{"type":"string","description":"Where to continue"}},"required":["id"]}`)
		}))
	}
	return tools
}

// BenchmarkTokens reports what each mode's listing costs by a real tokeniser
// (cl100k), and what the decision estimates it to cost (SPEC I8).
func BenchmarkTokens(b *testing.B) {
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		b.Fatal(err)
	}
	metas := []*tool.Tool{made("search_tools", meta), made("get_tool", meta), made("execute_tool", meta), made("run_parallel", meta), made("list_categories", meta), made("browse_category", meta)}
	for _, n := range []int{10, 100, 1000, 5000} {
		s := set(b, append(catalogue(n), metas...)...)
		for _, mode := range []inject.Mode{inject.Direct, inject.Compact, inject.Discovery} {
			b.Run(fmt.Sprintf("%d/%s", n, mode), func(b *testing.B) {
				var v inject.View
				for b.Loop() {
					v = inject.Present(s, inject.Options{Force: mode})
				}
				real := 0
				for _, it := range v.Items {
					line, _ := json.Marshal(map[string]any{"name": it.Name, "description": it.Description, "inputSchema": it.Input})
					ids, _, err := codec.Encode(string(line))
					if err != nil {
						b.Fatal(err)
					}
					real += len(ids)
				}
				b.ReportMetric(float64(real), "tokens")
				b.ReportMetric(float64(v.Tokens()), "estimate")
			})
		}
	}
}
