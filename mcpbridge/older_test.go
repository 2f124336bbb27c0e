package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Clients of old revisions get nothing that these do not have, and all that it
// held; those of later ones get it as the server sent it. So it is with results
// and with prompts.
func TestOlderClients(t *testing.T) {
	const (
		audio = `{"type":"audio","data":"d2F2","mimeType":"audio/wav","annotations":{"priority":0.5}}`
		link  = `{"type":"resource_link","uri":"mem://a","name":"a","x":1}`
		image = `{"type":"image","data":"AAH/","mimeType":"image/png","y":12345678901234567890}`
	)
	up := serveHTTP(t, sdkServer(func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "get_all", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
		s.AddPrompt(&mcp.Prompt{Name: "all"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				switch method {
				case "tools/call":
					return &asSent{raw: `{"content":[` + audio + `,` + link + `,` + image + `]}`}, nil
				case "prompts/get":
					return &asSent{raw: `{"messages":[{"role":"user","content":` + audio + `},{"role":"user","content":` + link + `}]}`}, nil
				}
				return next(ctx, method, req)
			}
		})
	}), false)
	h, _ := gateway(t, nil, up)
	const (
		oldAudio = `{"type":"resource","resource":{"uri":"helve:result","mimeType":"audio/wav","blob":"d2F2"},"annotations":{"priority":0.5}}`
		oldLink  = `{"type":"text","text":"[link to a: mem://a]"}`
	)
	for version, want := range map[string][2]string{
		"2024-11-05": {oldAudio, oldLink}, "2025-03-26": {audio, oldLink}, "2025-06-18": {audio, link}, "2025-11-25": {audio, link}} {
		lines := strings.Join(h.converse(t, begin(version)+
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp__web__get_all","arguments":{}}}`+"\n"+
			`{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"web__all"}}`), "\n")
		if content := fmt.Sprintf(`"content":[%s,%s,%s]`, want[0], want[1], image); !strings.Contains(lines, content) {
			t.Errorf("%s: no\n%s in\n%s", version, content, lines)
		}
		for _, block := range want {
			if !strings.Contains(lines, `"content":`+block+`,"role":"user"`) && !strings.Contains(lines, `"role":"user","content":`+block) {
				t.Errorf("%s: the prompt has no %s in\n%s", version, block, lines)
			}
		}
	}
}

// An asSent is a result of just these bytes.
type asSent struct {
	mcp.ResultBase
	raw string
}

// MarshalJSON returns them.
func (r *asSent) MarshalJSON() ([]byte, error) { return []byte(r.raw), nil }

// What a server answers reaches clients as it was sent, on each of the ways
// that calls take: key order, big numbers and fields that nobody knows.
func TestAnswersPassUnchanged(t *testing.T) {
	const (
		content    = `[{"type":"text","zeta":12345678901234567890,"text":"<&>","alpha":{"b":1,"a":[1.50,1E+2]}},{"y":[{}],"type":"image","data":"AAH/","mimeType":"image/png"}]`
		structured = `{"z":12345678901234567890,"a":{"d":1.50,"c":[null,1E+2]}}`
	)
	for _, stateless := range []bool{false, true} {
		h, g := gateway(t, nil, serveHTTP(t, sdkServer(func(s *mcp.Server) {
			s.AddTool(&mcp.Tool{Name: "get_all", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{}, nil
				})
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if method == "tools/call" {
						return &asSent{raw: `{"content":` + content + `,"structuredContent":` + structured + `}`}, nil
					}
					return next(ctx, method, req)
				}
			})
		}), stateless))
		url := h.http(t, "direct").URL
		const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` // which promises clients structured content
		post(t, url, list)
		h.converse(t, begin("2025-06-18")+list)
		modern := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "mcp__web__get_all"}
		_, quick, _ := post(t, url, newCall("1", "mcp__web__get_all", "{}", "", ""), modern...)
		_, library, _ := post(t, url, newCall("1", "mcp__web__get_all", "{}", "", `,"progressToken":"p"`), modern...)
		old := h.converse(t, begin("2025-06-18")+`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp__web__get_all","arguments":{}}}`)
		for way, got := range map[string]string{"quick": quick, "library": library, "old": strings.Join(old, "\n")} {
			if !strings.Contains(got, `"content":`+content) || !strings.Contains(got, `"structuredContent":`+structured) {
				t.Errorf("stateless %v, %s: it came as\n%s", stateless, way, got)
			}
		}
		g.ups.Close()
	}
}
