package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// noise returns the same bytes every time, which begin like a PDF.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	data := append(make([]byte, 0, n), "%PDF-1.7\n"...)
	for len(data) < n {
		data = append(data, byte(r.Uint32()))
	}
	return data
}

// binaryTools answer with what is not text.
func binaryTools(s *mcp.Server) {
	add := func(name string, content ...mcp.Content) {
		s.AddTool(&mcp.Tool{Name: name, Description: "Get it.", InputSchema: json.RawMessage(anything), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: content}, nil
			})
	}
	add("get_report", &mcp.TextContent{Text: "the report"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///report.pdf", MIMEType: "application/pdf", Blob: noise(12_345)}},
		&mcp.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\nx")})
	add("get_dump", &mcp.TextContent{Text: `{"name":"report","data":"` + base64.StdEncoding.EncodeToString(noise(12_345)) + `","end":true}`})
}

const binaryApp = `
app: {app_id: demo, name: Demo}
agents:
  - id: reader
    brain:
      backend: script
      config:
        turns:
          - calls: [{tool: mcp.kid.get_report}, {tool: mcp.kid.get_dump}]
          - say: "I saw: [[last]]"
tools:
  modules: {filesystem: {}}
  capabilities:
    grant: ["results.save(path: \"out/**\")"]
    deny: ["results.save(path: \"out/closed/**\")"]
  mcp_servers: {kid: {command: "UPSTREAM", args: [binary]}}
`

var keptAs = regexp.MustCompile(`\[application/pdf, 12,345 bytes, kept as (r_[0-9a-z]+)\]`)

// Data that a model cannot take is named, kept and saved; no base64 is shown.
func TestBinaryResults(t *testing.T) {
	dir := folder(t, "app.yaml", strings.ReplaceAll(binaryApp, "UPSTREAM", filepath.ToSlash(lookPath(t, "upstream"))), "out/old.pdf", "old")
	helve := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := run(t, dir, "", append(args, "--app", "app.yaml")...)
		if code != want {
			t.Fatalf("helve %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
		}
		return out + errs
	}
	encoded := base64.StdEncoding.EncodeToString(noise(12_345))[:60]
	for _, name := range []string{"get_report", "get_dump"} {
		out := helve(0, "tools", "call", "mcp.kid."+name)
		m := keptAs.FindStringSubmatch(out)
		if m == nil || strings.Contains(out, encoded) {
			t.Fatalf("%s: %.500s", name, out)
		}
		id := m[1]
		if out := helve(0, "tools", "call", "results.read", fmt.Sprintf(`{"id":%q}`, id)); !strings.Contains(out, "is binary data: application/pdf, 12345 bytes") || !strings.Contains(out, "results.save") {
			t.Errorf("results.read: %s", out)
		}
		helve(0, "tools", "call", "results.save", fmt.Sprintf(`{"id":%q,"path":"out/old.pdf"}`, id))
		if got, err := os.ReadFile(filepath.Join(dir, "out/old.pdf")); err != nil || !bytes.Equal(got, noise(12_345)) {
			t.Errorf("%s: %d bytes were saved, %v", name, len(got), err)
		}
		helve(0, "undo", "--yes")
		if got, err := os.ReadFile(filepath.Join(dir, "out/old.pdf")); string(got) != "old" {
			t.Errorf("after undo: %q, %v", got, err)
		}
		for path, says := range map[string]string{"out/closed/x": "denied by the rule", "../x": "out of the root", ".helve/x": "ignored", "elsewhere": "approv"} {
			out, errs, code := run(t, dir, "", "tools", "call", "results.save", fmt.Sprintf(`{"id":%q,"path":%q}`, id, path), "--app", "app.yaml")
			if code == 0 || !strings.Contains(out+errs, says) {
				t.Errorf("saved to %s: exit %d, %s%s", path, code, out, errs)
			}
		}
	}
	if out := helve(2, "tools", "call", "results.save", `{"id":"r_nonsense","path":"out/x"}`); !strings.Contains(out, "no result with the id") {
		t.Errorf("an unknown id: %s", out)
	}
}

// A model reads the same, and MCP clients still get everything.
func TestBinaryResultsByCaller(t *testing.T) {
	dir := folder(t, "app.yaml", strings.ReplaceAll(binaryApp, "UPSTREAM", filepath.ToSlash(lookPath(t, "upstream"))))
	out, errs, code := run(t, dir, "", "run", "app.yaml", "go")
	encoded := base64.StdEncoding.EncodeToString(noise(12_345))[:60]
	if n := len(keptAs.FindAllString(out, -1)); code != 0 || n < 1 || strings.Contains(out, encoded) {
		t.Errorf("exit %d, %d references: %.2000s%.2000s", code, n, out, errs)
	}
	s := stdio(t, dir, "--app", "app.yaml")
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "mcp.kid.get_report"})
	if err != nil || len(res.Content) != 3 {
		t.Fatalf("%v %+v", err, res)
	}
	report, ok := res.Content[1].(*mcp.EmbeddedResource)
	if !ok || !bytes.Equal(report.Resource.Blob, noise(12_345)) {
		t.Errorf("the report came as %T", res.Content[1])
	}
	if image, ok := res.Content[2].(*mcp.ImageContent); !ok || !strings.HasPrefix(string(image.Data), "\x89PNG") {
		t.Errorf("the image came as %T", res.Content[2])
	}
	dump := call(t, s, "mcp.kid.get_dump", object{})
	m := keptAs.FindStringSubmatch(dump.Text)
	if m == nil {
		t.Fatalf("the dump: %.300s", dump.Text)
	}
	if other := call(t, stdio(t, dir, "--app", "app.yaml"), "results.save", object{"id": m[1], "path": "out/theirs"}); !other.IsError || exists(filepath.Join(dir, "out/theirs")) {
		t.Errorf("another session saved it: %+v", other)
	}
	if own := call(t, s, "results.save", object{"id": m[1], "path": "out/own"}); own.IsError || !exists(filepath.Join(dir, "out/own")) {
		t.Errorf("its own session: %+v", own)
	}
}

// What a listing or a search found that is too long is told by folders and files.
func TestSummarizedResults(t *testing.T) {
	var all []string
	for i := range 40 {
		for j := range 30 {
			all = append(all, fmt.Sprintf("src/package%02d/a_rather_long_name_of_a_file_%02d.go", i, j), fmt.Sprintf("package p\n\nfunc needle%d() {}\n", j))
		}
	}
	dir := folder(t, all...)
	for _, row := range []struct{ name, args, want string }{
		{"filesystem.glob", `{"pattern":"**/*.go"}`, "src/package07/ (30 entries)"},
		{"filesystem.list", `{"path":".","depth":4}`, "src/package07/ (30 entries)"},
		{"filesystem.grep", `{"pattern":"needle","limit":1000}`, "src/package07/ (30 matches)\n  a_rather_long_name_of_a_file_00.go:3: func needle0() {}\n"},
		{"filesystem.grep", `{"pattern":"needle","limit":1000}`, "  … 2"},
	} {
		out, errs, code := run(t, dir, "", "tools", "call", row.name, row.args)
		if code != 0 || !strings.Contains(out, row.want) || !strings.Contains(out, "this is a summary of a result of") || len([]rune(out)) > 10_001 {
			t.Errorf("%s: exit %d, %d characters\n%s%s", row.name, code, len([]rune(out)), out[max(0, len(out)-1500):], errs)
		}
		id := idIn(t, out)
		whole, _, _ := run(t, dir, "", "tools", "call", "results.read", fmt.Sprintf(`{"id":%q,"search":"package07/a_rather_long_name_of_a_file_29"}`, id))
		if !strings.Contains(whole, "[at character") {
			t.Errorf("%s: the whole is not kept: %s", row.name, whole)
		}
	}
}

// A page that is too long is told by its title and headings, without what
// tracks its readers.
func TestSummarizedPages(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		n := 3
		if r.URL.Path == "/long" {
			n = 900
		}
		fmt.Fprint(w, "<title>About axes</title>")
		for i := range n {
			fmt.Fprintf(w, `<h2>Chapter %d</h2><a href="https://x.org/c?n=%d&amp;utm_source=us">read</a>`, i, i)
		}
	}))
	t.Cleanup(web.Close)
	app := fmt.Sprintf("app: {app_id: demo, name: Demo}\nsecurity: {allow_hosts: [%q]}\ntools: {modules: {http: {}}}\n", web.Listener.Addr())
	dir := folder(t, "app.yaml", app)
	get := func(path string) string {
		out, errs, code := run(t, dir, "", "tools", "call", "http.get", fmt.Sprintf(`{"url":%q}`, web.URL+path), "--app", "app.yaml")
		if code != 0 || len([]rune(out)) > 10_001 || strings.Contains(out, "utm_") {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		return out
	}
	if out := get("/short"); !strings.Contains(out, `<a href="https://x.org/c?n=2">`) {
		t.Errorf("the short page: %s", out)
	}
	out := get("/long")
	for _, want := range []string{"Title: About axes", "Chapter 1\n", "900 links", "this is a summary of a result of", "Text begins:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	whole, errs, _ := run(t, dir, "", "tools", "call", "results.read", fmt.Sprintf(`{"id":%q,"search":"c?n=850"}`, idIn(t, out)), "--app", "app.yaml")
	if !strings.Contains(whole, "1 places") {
		t.Errorf("the whole: %s%s", whole, errs)
	}
}
