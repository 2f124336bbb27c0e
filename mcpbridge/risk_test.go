package mcpbridge_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// listed makes tools with annotations, and returns them as they are offered.
func offered(t *testing.T, change func(*mcpbridge.Upstream), tools map[string]*mcp.ToolAnnotations) *tool.Set {
	t.Helper()
	s := sdkServer(func(s *mcp.Server) {
		for name, a := range tools {
			s.AddTool(&mcp.Tool{Name: name, Annotations: a, InputSchema: schema.Must(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{}, nil
				})
		}
	})
	up := serveHTTP(t, s, true)
	if change != nil {
		change(&up)
	}
	return open(t, up).reg.Set()
}

func TestVerbs(t *testing.T) {
	want := map[string]tool.Risk{
		"get_user": tool.Low, "getUser": tool.Low, "GetUser": tool.Low, "list-items": tool.Low, "search": tool.Low,
		"read_file": tool.Low, "describeTable": tool.Low, "count_rows": tool.Low, "fetch": tool.Low, "check_health": tool.Low,
		"view_page": tool.Low, "show": tool.Low, "status": tool.Low, "ping": tool.Low, "getHTTPStatus": tool.Low,
		"API-get-user": tool.Low, "web_get_page": tool.Low, "slack_list_channels": tool.Low, "git_status": tool.Low,
		"brave_web_search": tool.Low, "fs.readFile": tool.Low,

		"delete_user": tool.High, "deleteUser": tool.High, "drop_table": tool.High, "destroy": tool.High,
		"removeItem": tool.High, "kill_process": tool.High, "API-delete-a-block": tool.High, "db_drop_table": tool.High,
		"get_or_delete": tool.High, "fetch_and_remove": tool.High, "update_or_delete": tool.High, "kubectlDelete": tool.High,

		"frobnicate": tool.Medium, "create_issue": tool.Medium, "updateStatus": tool.Medium, "create_view": tool.Medium,
		"set_status": tool.Medium, "run_check": tool.Medium, "mark_read": tool.Medium, "add_to_list": tool.Medium,
		"frobnicate_status": tool.Medium, "getaway": tool.Medium, "listen": tool.Medium, "checkout": tool.Medium,
		"deleted_items": tool.Medium, "fetch_and_store": tool.Medium, "browser_click": tool.Medium, "echo": tool.Medium,
	}
	tools := map[string]*mcp.ToolAnnotations{}
	for name := range want {
		tools[name] = nil
	}
	set := offered(t, nil, tools)
	for name, risk := range want {
		tl, ok := set.Lookup("mcp.web." + name)
		if !ok {
			t.Errorf("%s is not offered", name)
			continue
		}
		if tl.RiskLevel() != risk || tl.Effect.Risk() != risk {
			t.Errorf("%s: risk %s, effect %s; want %s", name, tl.RiskLevel(), tl.Effect, risk)
		}
		if tl.ParallelSafe != (risk == tool.Low) {
			t.Errorf("%s: parallel-safe %v", name, tl.ParallelSafe)
		}
	}
}

func TestAnnotationsRaiseOnlyUnlessTrusted(t *testing.T) {
	yes, no := true, false
	rows := []struct {
		name             string
		hints            mcp.ToolAnnotations
		others, trusting tool.Effect
	}{
		{"frobnicate", mcp.ToolAnnotations{ReadOnlyHint: true}, tool.Writes, tool.Reads},
		{"delete_all", mcp.ToolAnnotations{ReadOnlyHint: true}, tool.Destroys, tool.Reads},
		{"delete_one", mcp.ToolAnnotations{DestructiveHint: &no}, tool.Destroys, tool.Writes},
		{"get_thing", mcp.ToolAnnotations{ReadOnlyHint: true}, tool.Reads, tool.Reads},
		{"get_and_burn", mcp.ToolAnnotations{DestructiveHint: &yes}, tool.Destroys, tool.Destroys},
		{"get_twisted", mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &yes}, tool.Destroys, tool.Reads},
		{"get_mutating", mcp.ToolAnnotations{}, tool.Writes, tool.Writes}, // the library sends readOnlyHint: false
		{"frob", mcp.ToolAnnotations{DestructiveHint: &yes}, tool.Destroys, tool.Destroys},
	}
	tools := map[string]*mcp.ToolAnnotations{}
	for _, r := range rows {
		tools[r.name] = &r.hints
	}
	others := offered(t, nil, tools)
	trusted := offered(t, func(u *mcpbridge.Upstream) { u.Trusted = true }, tools)
	for _, r := range rows {
		a, _ := others.Lookup("mcp.web." + r.name)
		b, _ := trusted.Lookup("mcp.web." + r.name)
		if a.Effect != r.others || b.Effect != r.trusting || a.Trusted || !b.Trusted {
			t.Errorf("%s: %s, trusted %s; want %s, %s", r.name, a.Effect, b.Effect, r.others, r.trusting)
		}
	}
}

func TestOverridesWin(t *testing.T) {
	yes := true
	tools := map[string]*mcp.ToolAnnotations{"get_a": nil, "delete_b": {DestructiveHint: &yes}, "kill_c": nil, "get_d": nil, "hide_me": nil, "e": nil}
	set := offered(t, func(u *mcpbridge.Upstream) {
		u.Overrides = map[string]mcpbridge.Override{
			"get_a":    {Effect: tool.Destroys},
			"delete_b": {Effect: tool.Reads},
			"kill_c":   {Risk: tool.Low},
			"get_d":    {Risk: tool.High},
			"hide_me":  {Hidden: true},
			"e":        {Roles: map[string]schema.Role{"path": schema.PathWrite}},
		}
	}, tools)
	want := map[string]string{"get_a": "destroys high", "delete_b": "reads low", "kill_c": "reads low", "get_d": "reads high", "e": "writes medium"}
	for name, w := range want {
		tl, ok := set.Lookup("mcp.web." + name)
		if !ok {
			t.Errorf("%s is not offered", name)
			continue
		}
		if got := tl.Effect.String() + " " + tl.RiskLevel().String(); got != w {
			t.Errorf("%s: %s, want %s", name, got, w)
		}
	}
	if _, ok := set.Lookup("mcp.web.hide_me"); ok {
		t.Error("a hidden tool is offered")
	}
	if e, _ := set.Lookup("mcp.web.e"); e == nil || !strings.Contains(e.Input.String(), "path.write") {
		t.Error("the operator's role is not in the schema")
	}
}
