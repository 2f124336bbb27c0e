package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

func tokensOf(t testing.TB, text string) int {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		t.Fatal(err)
	}
	ids, _, err := codec.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	return len(ids)
}

// wordy makes tools with long names and many parameters.
func wordy(n int) []*tool.Tool {
	var tools []*tool.Tool
	for i := range n {
		var props []string
		for p := range 30 {
			props = append(props, fmt.Sprintf(`"parameter_%d":{"type":"string","description":"What the parameter of that number is for, at some length"}`, p))
		}
		tools = append(tools, &tool.Tool{
			Definition: tool.Definition{Name: fmt.Sprintf("mcp.calendar.delete_event_%d", i), Effect: tool.Reads,
				Description: "Permanently delete a calendar event of the user together with all its attendees, reminders and attachments.",
				Input:       schema.Must(`{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":["parameter_3"]}`)},
			Handle: func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }})
	}
	return tools
}

// Each detail says more than the one before, of the same tools, within its budget.
func TestDetails(t *testing.T) {
	h := build(t, &guard.Rules{}, wordy(60)...)
	for _, ask := range []struct{ name, args string }{
		{"search_tools", `"query":"delete a calendar event","limit":20`},
		{"browse_category", `"category":"mcp.calendar"`},
	} {
		var cost [3]int
		var listed [3][]string
		for i, by := range []string{"name", "summary", "schema"} {
			res := h.do(t, ask.name, `{`+ask.args+`,"detail":"`+by+`"}`)
			if res.Err != nil {
				t.Fatal(res.Err)
			}
			cost[i] = tokensOf(t, res.JoinText())
			listed[i] = names(t, res.JoinText())
		}
		if fmt.Sprint(listed[0]) != fmt.Sprint(listed[1]) || fmt.Sprint(listed[1]) != fmt.Sprint(listed[2]) || len(listed[0]) < 20 {
			t.Errorf("%s lists %q by name, %q by summary, %q by schema", ask.name, listed[0], listed[1], listed[2])
		}
		if cost[0] >= cost[1] || cost[1] >= 1000 || cost[1] >= cost[2] || cost[2] >= 5000 {
			t.Errorf("%s costs %d tokens by name, summary and schema", ask.name, cost)
		}
		t.Logf("%s of %d tools: %d tokens by name, summary and schema", ask.name, len(listed[0]), cost)
		if res := h.do(t, ask.name, `{`+ask.args+`,"detail":"all"}`); res.Err == nil || res.Err.Code != tool.CodeValidation {
			t.Errorf("%s of an unknown detail: %+v", ask.name, res)
		}
	}
}

// names returns the names of the tools that an answer lists, whatever the detail.
func names(t *testing.T, answer string) []string {
	t.Helper()
	var a struct{ Tools []json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	var out []string
	for _, raw := range a.Tools {
		var full struct{ Name string }
		if json.Unmarshal(raw, &full) != nil && json.Unmarshal(raw, &full.Name) != nil {
			t.Fatalf("listed: %s", raw)
		}
		out = append(out, full.Name)
	}
	return out
}

// A schema that is shown is the whole of it; where they do not all fit, the
// best tools have theirs, and the answer says how to get at the others.
func TestSchemasInAnswers(t *testing.T) {
	h := build(t, &guard.Rules{})
	res := h.do(t, "search_tools", `{"query":"delete a file","detail":"schema"}`)
	if !strings.Contains(res.JoinText(), `"parameters":{"type":"object","properties":{"id":{"type":"integer"}},"additionalProperties":false}`) ||
		strings.Contains(res.JoinText(), `"params"`) || strings.Contains(res.JoinText(), "get_tool") {
		t.Errorf("a schema that fits: %s", res.JoinText())
	}
	h = build(t, &guard.Rules{}, wordy(60)...)
	var a struct {
		Hint  string
		Tools []struct {
			Params     string
			Parameters json.RawMessage
		}
	}
	res = h.do(t, "search_tools", `{"query":"delete a calendar event","limit":20,"detail":"schema"}`)
	if err := json.Unmarshal([]byte(res.JoinText()), &a); err != nil {
		t.Fatal(err)
	}
	last := a.Tools[len(a.Tools)-1]
	if a.Tools[0].Parameters == nil || a.Tools[0].Params != "" || last.Parameters != nil || last.Params == "" || !strings.Contains(a.Hint, "get_tool") {
		t.Errorf("schemas that do not all fit: %s", res.JoinText())
	}
}
