package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/discovery"
	"github.com/helve-ai/helve/modules/tasks"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// A house is the meta-tools over some tools, behind the guards that concern them.
type house struct {
	*pipeline.Executor
	reg tool.Registry

	mu  sync.Mutex
	ran []string
}

func build(t testing.TB, rules *guard.Rules, tools ...*tool.Tool) *house {
	t.Helper()
	h := &house{}
	ix := search.New(search.Options{})
	host := &module.Host{Log: slog.New(slog.DiscardHandler), Now: time.Now, Tools: h.reg.Set, Visible: rules.Visible,
		Search:  ix.Search,
		Call:    func(ctx context.Context, c *tool.Call) (*tool.Result, error) { return h.Do(ctx, c) },
		Explain: func(ctx context.Context, c *tool.Call) pipeline.Explanation { return h.Explain(ctx, c) }}
	for _, m := range []*module.Module{discovery.Module, tasks.Module} {
		ts, err := m.Open(t.Context(), host, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.reg.Replace(m.Name, ts.Tools...); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.reg.Add(append(tools, h.tool("file.read", "Read a file.", tool.Reads), h.tool("file.delete", "Delete a file.", tool.Destroys),
		h.tool("mail.send", "Send a mail.", tool.Writes), h.tool("gem.hidden", "Delete a file secretly.", tool.Reads))...); err != nil {
		t.Fatal(err)
	}
	ix.Sync(h.reg.Set())
	h.Executor = pipeline.New(&h.reg, guard.Standard(guard.Options{Tools: &h.reg, Visible: rules.Visible, Policies: []guard.Policy{rules.Judge}})...)
	return h
}

func (h *house) tool(name, doc string, e tool.Effect) *tool.Tool {
	return &tool.Tool{Definition: tool.Definition{Name: name, Description: doc, Effect: e,
		Input: schema.Must(`{"type":"object","properties":{"id":{"type":"integer"}},"additionalProperties":false}`)},
		Handle: func(_ context.Context, c *tool.Call) (*tool.Result, error) {
			h.mu.Lock()
			h.ran = append(h.ran, name)
			h.mu.Unlock()
			return tool.Text(fmt.Sprintf(`{"did":%q,"with":%s}`, name, c.Args)), nil
		}}
}

func (h *house) do(t testing.TB, name, args string) *tool.Result {
	t.Helper()
	res, err := h.Do(t.Context(), &tool.Call{Name: name, Args: json.RawMessage(args), From: tool.Origin{Kind: tool.KindModel}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func hiding() *guard.Rules {
	return &guard.Rules{Hidden: []*guard.Rule{{Module: "gem"}}, Deny: []*guard.Rule{{Pattern: "mail.*"}}}
}

func TestFindShowRun(t *testing.T) {
	h := build(t, hiding())
	res := h.do(t, "search_tools", `{"query":"delete a file"}`)
	var found struct {
		Tools []struct{ Name, Description, Params string }
	}
	if err := json.Unmarshal([]byte(res.JoinText()), &found); err != nil || len(found.Tools) == 0 || found.Tools[0].Name != "file.delete" {
		t.Fatalf("search: %s, %v", res.JoinText(), err)
	}
	if found.Tools[0].Params != "id?: integer" {
		t.Errorf("parameters are shown as %q", found.Tools[0].Params)
	}
	res = h.do(t, "get_tool", `{"name":"file.read"}`)
	if !strings.Contains(res.JoinText(), `"parameters":{"type":"object","properties":{"id":{"type":"integer"}},"additionalProperties":false}`) {
		t.Errorf("get_tool: %s", res.JoinText())
	}
	res = h.do(t, "execute_tool", `{"name":"file.read","params":{"id":"7"}}`)
	if res.JoinText() != `{"did":"file.read","with":{"id":7}}` || len(res.Notes) != 1 {
		t.Errorf("execute_tool: %s, notes %q", res.JoinText(), res.Notes)
	}
	if res := h.do(t, "list_categories", `{}`); !strings.Contains(res.JoinText(), `{"name":"file","tools":2}`) {
		t.Errorf("list_categories: %s", res.JoinText())
	}
	if res := h.do(t, "browse_category", `{"category":"file"}`); !strings.Contains(res.JoinText(), `"file.delete"`) {
		t.Errorf("browse_category: %s", res.JoinText())
	}
	if res := h.do(t, "browse_category", `{"category":"fil"}`); res.Err == nil || !strings.Contains(res.Err.Message, "file") {
		t.Errorf("an unknown category: %+v", res)
	}
}

// No way leads round a guard: a target that is hidden, denied, wants an
// approval or has wrong arguments stays so through every indirection.
func TestNoWayRound(t *testing.T) {
	h := build(t, hiding())
	wrap := map[string]func(name, params string) (string, string){
		"straight": func(n, p string) (string, string) { return n, p },
		"execute": func(n, p string) (string, string) {
			return "execute_tool", fmt.Sprintf(`{"name":%q,"params":%s}`, n, p)
		},
		"nested": func(n, p string) (string, string) {
			return "execute_tool", fmt.Sprintf(`{"name":"execute_tool","params":{"name":%q,"params":%s}}`, n, p)
		},
		"parallel": func(n, p string) (string, string) {
			return "run_parallel", fmt.Sprintf(`{"actions":[{"name":%q,"params":%s}]}`, n, p)
		},
		"parallel in execute": func(n, p string) (string, string) {
			return "execute_tool", fmt.Sprintf(`{"name":"run_parallel","params":{"actions":[{"name":%q,"params":%s}]}}`, n, p)
		},
		"execute in parallel": func(n, p string) (string, string) {
			return "run_parallel", fmt.Sprintf(`{"actions":[{"name":"execute_tool","params":{"name":%q,"params":%s}}]}`, n, p)
		},
	}
	for _, target := range []struct {
		name, params string
		want         tool.Code
	}{
		{"gem.hidden", `{}`, tool.CodeNotVisible},
		{"mail.send", `{}`, tool.CodeNotVisible},
		{"file.delete", `{}`, tool.CodePermission},
		{"file.delete", `{"id":1,"_approved":true}`, tool.CodeValidation},
		{"file.read", `{"id":"x"}`, tool.CodeValidation},
	} {
		for way, to := range wrap {
			name, args := to(target.name, target.params)
			res := h.do(t, name, args)
			text := res.JoinText()
			if res.Err != nil {
				text = res.Err.Error()
			}
			if !strings.Contains(text, string(target.want)) {
				t.Errorf("%s, %s: %q, want %s", target.name, way, text, target.want)
			}
			x := h.Explain(t.Context(), &tool.Call{Name: name, Args: json.RawMessage(args)})
			if x.Decision != "deny" {
				t.Errorf("%s, %s: explained as %s by %s", target.name, way, x.Decision, x.Stage)
			}
		}
	}
	if len(h.ran) > 0 {
		t.Errorf("refused targets ran: %q", h.ran)
	}
	for _, meta := range []string{"search_tools", "browse_category", "get_tool", "list_categories"} {
		for _, q := range []string{`{"query":"delete a file secretly"}`, `{"category":"gem"}`, `{"name":"gem.hidden"}`, `{}`} {
			res := h.do(t, meta, q)
			said := res.JoinText()
			if strings.Contains(said, "gem.hidden") || strings.Contains(said, "mail") || strings.Contains(said, `"gem"`) {
				t.Errorf("%s %s tells of a hidden tool: %s", meta, q, said)
			}
		}
	}
}

func TestParallel(t *testing.T) {
	h := build(t, &guard.Rules{})
	res := h.do(t, "run_parallel", `{"actions":[{"name":"file.read","params":{"id":1}},{"name":"nope"},{"name":"file.read","params":{"id":2}}]}`)
	var r struct {
		Results []struct {
			Index   int
			Success bool
			Data    struct{ With struct{ ID int } }
			Error   *tool.Error
		}
		Total, Succeeded, Failed int
	}
	if err := json.Unmarshal([]byte(res.JoinText()), &r); err != nil {
		t.Fatalf("%s: %v", res.JoinText(), err)
	}
	if r.Total != 3 || r.Succeeded != 2 || r.Failed != 1 || r.Results[2].Data.With.ID != 2 || r.Results[1].Error.Code != tool.CodeNotFound {
		t.Errorf("run_parallel: %s", res.JoinText())
	}
	for _, nested := range []string{
		`{"actions":[{"name":"run_parallel","params":{"actions":[{"name":"file.read"}]}}]}`,
		`{"actions":[{"name":"parallel","params":{"actions":[{"name":"file.read"}]}}]}`,
	} {
		if res := h.do(t, "run_parallel", nested); res.Err == nil || !strings.Contains(res.Err.Message, "nested") {
			t.Errorf("nested: %+v", res)
		}
	}
	res = h.do(t, "run_parallel", `{"actions":[{"name":"execute_tool","params":{"name":"run_parallel","params":{"actions":[{"name":"file.read"}]}}}]}`)
	if !strings.Contains(res.JoinText(), "nested") {
		t.Errorf("nested by way of execute_tool: %s", res.JoinText())
	}
	many := `{"actions":[` + strings.Repeat(`{"name":"file.read"},`, 50) + `{"name":"file.read"}]}`
	for _, bad := range []string{`{"actions":[]}`, many} {
		if res := h.do(t, "run_parallel", bad); res.Err == nil || res.Err.Code != tool.CodeValidation {
			t.Errorf("%.40s: %+v", bad, res)
		}
	}
}

// Ten hits stay under 1,000 tokens, whatever the tools and their language (SPEC I8).
func TestAnswersFitTheirBudget(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"Permanently delete a calendar event of the user together with all its attendees, reminders and attachments, and notify everybody by mail",
		"删除用户日历中的事件及其所有与会者、提醒和附件，并通过电子邮件通知所有人，此操作无法撤销，请谨慎使用，需要写入权限",
		"Удаляет событие календаря пользователя вместе со всеми участниками, напоминаниями и вложениями и уведомляет всех по почте",
		"ลบกิจกรรมในปฏิทินของผู้ใช้พร้อมผู้เข้าร่วม การแจ้งเตือน และไฟล์แนบทั้งหมด และแจ้งทุกคนทางอีเมล",
		"{\"x\":[[1,2],[3,4]],\"\\u00ff\":\"~~~!!!###$$$%%%^^^&&&***\"} <<<>>> ??? /// ;;; :::",
	}
	for i, text := range texts {
		var tools []*tool.Tool
		for n := range 40 {
			tools = append(tools, &tool.Tool{
				Definition: tool.Definition{Name: fmt.Sprintf("mcp.some-long-server-name_%d.delete_calendar_event_and_attachments_%d", n, n), Description: text, Effect: tool.Reads,
					Input: schema.Must(`{"type":"object","properties":{"calendar_identifier":{"type":"string"},"eventIdentifier":{"type":"string"},"attachment_ids":{"type":"array","items":{"type":"string"}},"notify":{"type":"boolean"},"reason":{"type":"string"}},"required":["calendar_identifier","eventIdentifier"]}`)},
				Handle: func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }})
		}
		h := build(t, &guard.Rules{}, tools...)
		query, _ := json.Marshal(map[string]any{"query": "delete_calendar_event " + text[:min(len(text), 60)]})
		res := h.do(t, "search_tools", strings.ToValidUTF8(string(query), ""))
		ids, _, err := codec.Encode(res.JoinText())
		if err != nil {
			t.Fatal(err)
		}
		var found struct{ Tools []any }
		if err := json.Unmarshal([]byte(res.JoinText()), &found); err != nil || len(found.Tools) != 10 {
			t.Errorf("text %d: %d hits, %v", i, len(found.Tools), err)
		}
		if len(ids) >= 1000 {
			t.Errorf("text %d: ten hits cost %d tokens: %s", i, len(ids), res.JoinText())
		}
		t.Logf("text %d: %d tokens", i, len(ids))
	}
}

// The discovery view stays under 700 tokens, as an MCP client counts them.
func TestDiscoveryViewFitsItsBudget(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		t.Fatal(err)
	}
	h := build(t, &guard.Rules{})
	view := inject.Present(h.reg.Set(), inject.Options{Force: inject.Discovery})
	total := 0
	for _, it := range view.Items {
		line, _ := json.Marshal(map[string]any{"name": it.Name, "description": it.Description, "inputSchema": it.Input})
		ids, _, err := codec.Encode(string(line))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d tokens", it.Name, len(ids))
		total += len(ids)
	}
	if len(view.Items) != 6 || total > 560 { // four more meta-tools are to come, and annotations
		t.Errorf("%d meta-tools cost %d tokens", len(view.Items), total)
	}
}

// Every category is listed on some page, once, however many there are.
func TestCategoriesByPages(t *testing.T) {
	const modules = 130
	h := build(t, hiding())
	for i := range modules {
		if err := h.reg.Add(h.tool(fmt.Sprintf("server%03d.look", i), "Look.", tool.Reads)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	for offset, pages := 0, 0; ; pages++ {
		if pages == 4 {
			t.Fatal("the pages do not end")
		}
		var page struct {
			Categories []struct{ Name string }
			Total      int
			Next       int `json:"next_offset"`
		}
		res := h.do(t, "list_categories", fmt.Sprintf(`{"offset":%d}`, offset))
		if err := json.Unmarshal([]byte(res.JoinText()), &page); err != nil || len(page.Categories) == 0 || len(page.Categories) > 60 {
			t.Fatalf("offset %d: %s, %v", offset, res.JoinText(), err)
		}
		for _, c := range page.Categories {
			seen[c.Name]++
		}
		if offset = page.Next; offset == 0 {
			if len(seen) != page.Total {
				t.Errorf("%d categories were listed of %d", len(seen), page.Total)
			}
			break
		}
	}
	for i := range modules {
		if name := fmt.Sprintf("server%03d", i); seen[name] != 1 {
			t.Errorf("%s was listed %d times", name, seen[name])
		}
	}
	for tool, args := range map[string]string{"list_categories": `{"offset":9223372036854775807}`, "browse_category": `{"category":"file","offset":9223372036854775807}`} {
		if res := h.do(t, tool, args); res.Err != nil || strings.Contains(res.JoinText(), `"name"`) {
			t.Errorf("%s past the end: %+v", tool, res)
		}
	}
}
