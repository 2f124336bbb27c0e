package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What nobody may be told: by its shape, and because it is a secret of the app.
const (
	shapedSecret = "ghp_a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4a1B2"
	keptSecret   = `kept"by\the<app`
)

var unquoted = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\u003c`, "<")

// tellingTools tell secrets in every place that a client or a model reads.
func tellingTools(s *mcp.Server) {
	secrets := shapedSecret + " " + os.Getenv("KEPT")
	meta := mcp.Meta{"note": secrets}
	answers := map[string]*mcp.CallToolResult{
		"get_text": {Content: []mcp.Content{&mcp.TextContent{Text: secrets, Meta: meta}}},
		"get_note": {Content: []mcp.Content{&mcp.TextContent{Text: "plain", Meta: meta}}},
		"get_link": {Content: []mcp.Content{&mcp.ResourceLink{URI: "https://example.com/?token=" + shapedSecret, Name: secrets, Description: secrets}}},
		"get_file": {Content: []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///" + shapedSecret, Text: "plain"}}}},
		"get_data": {Content: []mcp.Content{}, StructuredContent: map[string]any{"list": []any{map[string]any{shapedSecret: secrets}}}},
		"get_meta": {Content: []mcp.Content{}, Meta: meta},
		"get_fail": {Content: []mcp.Content{&mcp.TextContent{Text: secrets}}, IsError: true},
	}
	for name, answer := range answers {
		tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(anything)}
		if answer.StructuredContent != nil {
			tool.OutputSchema = json.RawMessage(anything)
		}
		s.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return answer, nil })
	}
	s.AddTool(&mcp.Tool{Name: "get_error", InputSchema: json.RawMessage(anything)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		data, err := json.Marshal(secrets)
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: -32050, Message: secrets, Data: data}
	})
	s.AddTool(&mcp.Tool{Name: "get_slowly", InputSchema: json.RawMessage(anything)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "on " + secrets, Progress: 1}); err != nil {
			return nil, err
		}
		//lint:ignore SA1019 servers of the older revisions log so
		if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Logger: shapedSecret, Data: map[string]any{"said": secrets}}); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "get_noise", InputSchema: json.RawMessage(anything)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		noise := "\x1b]0;owned\x07\x1b[31mred\u202e ghp_\x00" + strings.TrimPrefix(shapedSecret, "ghp_") + " "
		long := noise + strings.Repeat("long ", 1<<14)
		if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: long, Progress: 1}); err != nil {
			return nil, err
		}
		//lint:ignore SA1019 servers of the older revisions log so
		for level, data := range map[mcp.LoggingLevel]any{"alert": long, "error": []any{map[string]any{noise: []any{noise}, "long": long}}, "\x1b[2J": noise} {
			//lint:ignore SA1019 servers of the older revisions log so
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: noise + strings.Repeat("l", 1<<14), Data: data}); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
}

// Secrets are taken out of whatever a server sends, and what is around them stays.
func TestSecretsInAllThatServersSend(t *testing.T) {
	t.Parallel()
	dir := folder(t, "app.yaml", serversApp(t, object{"kid": object{"command": lookPath(t, "upstream"), "args": []string{"telling"}, "env": object{"KEPT": "{{secret.KEPT}}"}}}))
	cmd := exec.CommandContext(t.Context(), raced, "mcp", "--app", filepath.Join(dir, "app.yaml"), "--present", "full")
	cmd.Dir, cmd.Env = dir, environ("HELVE_SECRET_KEPT="+keptSecret)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); cmd.Wait() }()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	seen := map[string]bool{} // the notifications
	id, noises := 0, 0
	ask := func(method string, params object) (answer string) {
		id++
		request, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(in, "%s\n", request)
		for lines.Scan() {
			var m struct {
				ID     int
				Method string
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatalf("%v: %s", err, lines.Text())
			}
			for plain, depth := lines.Text(), 0; depth < 3; depth++ { // a text may hold JSON again
				if strings.Contains(plain, shapedSecret) || strings.Contains(plain, keptSecret) {
					t.Errorf("%s %v: %s", method, params["name"], lines.Text())
					break
				}
				plain = unquoted.Replace(plain)
			}
			if m.Method != "" && (len(lines.Text()) > 20<<10 || strings.ContainsAny(lines.Text(), "\x1b\u202e") || strings.Contains(lines.Text(), `\u001b`)) {
				t.Errorf("%s of %d bytes: %.300s", m.Method, len(lines.Text()), lines.Text())
			}
			if m.Method != "" {
				seen[m.Method] = seen[m.Method] || strings.Contains(lines.Text(), "[redacted]")
				if m.Method == "notifications/message" && strings.Contains(lines.Text(), "long long") {
					noises++
				}
			} else if m.ID == id {
				return lines.Text()
			}
		}
		t.Fatalf("%s: no answer: %v", method, lines.Err())
		return ""
	}
	ask("initialize", object{"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": object{"name": "raw", "version": "1"}})
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	ask("logging/setLevel", object{"level": "debug"})
	for name, want := range map[string]string{"text": "[redacted] [redacted]", "note": `"plain"`, "link": "https://example.com/?token=[redacted]", "file": "file:///[redacted]", "data": `{"[redacted]":"[redacted] [redacted]"}`,
		"meta": `"note":"[redacted] [redacted]"`, "fail": "[redacted]", "error": "-32050", "slowly": `"content"`, "noise": `"content"`} {
		answer := ask("tools/call", object{"name": "mcp__kid__get_" + name, "arguments": object{}, "_meta": object{"progressToken": name}})
		if !strings.Contains(answer, want) {
			t.Errorf("%s: %s", name, answer)
		}
	}
	eventually(t, func() bool { // what servers log comes when it comes
		ask("ping", object{})
		return seen["notifications/progress"] && seen["notifications/message"] && noises >= 2
	})
}
