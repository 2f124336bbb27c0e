package workspace_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/workspace"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

type args = map[string]any

// A world is a folder and the module's tools behind the guards.
type world struct {
	t     testing.TB
	dir   string
	ex    *pipeline.Executor
	tools *tool.Set
	judge func(context.Context, *tool.Call) (tool.Verdict, string)
}

func open(t testing.TB, config string, content map[string]string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	for name, text := range content {
		full := filepath.Join(w.dir, name)
		os.MkdirAll(filepath.Dir(full), 0o755)
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := root.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	ts, err := workspace.Module.Open(t.Context(), &module.Host{Log: slog.New(slog.DiscardHandler), Root: r}, json.RawMessage(config))
	if err != nil {
		t.Fatal(err)
	}
	var reg tool.Registry
	if err := reg.Add(ts.Tools...); err != nil {
		t.Fatal(err)
	}
	w.tools, w.judge = reg.Set(), ts.Judge
	w.ex = pipeline.New(&reg, guard.Output(), guard.Resolve(&reg, nil, nil, nil), guard.Validate(), guard.Paths(r))
	return w
}

func (w *world) get(name string) string {
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		return "<none>"
	}
	return string(data)
}

func (w *world) call(name string, in args) *tool.Result {
	w.t.Helper()
	data, _ := json.Marshal(in)
	res, err := w.ex.Do(w.t.Context(), &tool.Call{Name: name, Args: data})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func (w *world) ok(name string, in args) string {
	w.t.Helper()
	res := w.call(name, in)
	if res.Err != nil {
		w.t.Fatalf("%s %v: %v", name, in, res.Err)
	}
	return res.JoinText()
}

func (w *world) refused(code tool.Code, words, name string, in args) {
	w.t.Helper()
	res := w.call(name, in)
	if res.Err == nil || res.Err.Code != code || !strings.Contains(res.Err.Message, words) {
		w.t.Errorf("%s %v: %v, %v; want %s with %q", name, in, res.JoinText(), res.Err, code, words)
	}
}

func TestArtifacts(t *testing.T) {
	w := open(t, "", map[string]string{"other.txt": "not ours"})
	for _, name := range []string{"WsGlob", "WsGrep"} {
		if got := w.ok(name, args{"pattern": "*", "path": "."}); !strings.Contains(got, "no artifact yet") {
			t.Errorf("%s = %q", name, got)
		}
	}
	if got := w.ok("write_artifact", args{"path": "report/a.md", "content": "one\ntwo\n"}); !strings.Contains(got, `"path":"report/a.md"`) || !strings.Contains(got, `"created"`) {
		t.Errorf("write = %s", got)
	}
	w.ok("WsWrite", args{"path": "b.md", "content": "two"})
	if w.get("artifacts/report/a.md") != "one\ntwo\n" {
		t.Error("the artifact is not in the folder of artifacts")
	}
	if got := w.ok("WsRead", args{"path": "report/a.md", "offset": 2}); got != "two\n" {
		t.Errorf("read = %q", got)
	}
	if got := w.ok("WsEdit", args{"path": "report/a.md", "old": "two", "new": "three"}); !strings.Contains(got, "--- a/report/a.md\n") || !strings.Contains(got, "-two\n+three\n") {
		t.Errorf("edit = %q", got)
	}
	w.refused(tool.CodeRuntime, "lines 1, 2", "WsEdit", args{"path": "report/a.md", "old": "e\n", "new": "x"})
	if got := w.ok("WsGlob", args{"pattern": "**/*.md"}); got != "b.md\nreport/a.md\n[2 paths match]" {
		t.Errorf("glob = %q", got)
	}
	if got := w.ok("WsGrep", args{"pattern": "t.o|three"}); got != "b.md:1: two\nreport/a.md:2: three\n[2 matches in 2 files; 2 files searched]" {
		t.Errorf("grep = %q", got)
	}
	w.refused(tool.CodeRuntime, "did you mean report/a.md", "WsRead", args{"path": "report/a.mb"})
	w.refused(tool.CodeRuntime, "set recursive", "WsDelete", args{"path": "report"})
	w.refused(tool.CodePermission, "never deleted", "WsDelete", args{"path": ".", "recursive": true})
	w.ok("WsDelete", args{"path": "report", "recursive": true})
	if w.get("artifacts/report/a.md") != "<none>" || w.get("other.txt") != "not ours" {
		t.Error("delete removed the wrong things")
	}
}

func TestRefusals(t *testing.T) {
	w := open(t, "", map[string]string{
		"other.txt": "", "artifacts/audit/log": "x", "artifacts/a": "text", "artifacts/.env": "x", ".helveignore": "secret*\n", "artifacts/secret.txt": "x",
		".helveprotect": "artifacts/kept/\n", "artifacts/kept/k": "kept", "artifacts/d/.hidden/x": "",
	})
	outside := t.TempDir()
	os.Symlink(outside, filepath.Join(w.dir, "artifacts/out"))
	os.Symlink("..", filepath.Join(w.dir, "artifacts/up"))
	os.Symlink("audit", filepath.Join(w.dir, "artifacts/log"))
	os.Symlink(".env", filepath.Join(w.dir, "artifacts/env"))
	for _, test := range []struct {
		path string
		code tool.Code
	}{
		{"/etc/passwd", tool.CodePermission}, {filepath.Join(w.dir, "artifacts/a"), tool.CodePermission}, {"~/x", tool.CodePermission}, {"C:/x", tool.CodePermission},
		{"../other.txt", tool.CodePermission}, {"a/../../other.txt", tool.CodePermission}, {"./a", tool.CodePermission}, {"d/./a", tool.CodePermission}, {"..", tool.CodePermission},
		{`..\other.txt`, tool.CodePermission}, {"a//b", tool.CodePermission}, {".env", tool.CodePermission}, {"d/.hidden/x", tool.CodePermission}, {" a", tool.CodePermission}, {"a\x00b", tool.CodePermission},
		{"audit/log", tool.CodePermission}, {"AUDIT/log", tool.CodePermission}, {"audit./log", tool.CodePermission}, {"results/x", tool.CodePermission}, {"tool_calls/t.jsonl", tool.CodePermission}, {"audit", tool.CodePermission},
		{"out/x", tool.CodePermission}, {"up/other.txt", tool.CodePermission}, {"log/log", tool.CodePermission}, {"env", tool.CodePermission},
		{"secret.txt", tool.CodeIgnoredPath}, {"secret-new", tool.CodeIgnoredPath},
	} {
		for name, in := range map[string]args{"write_artifact": {"content": "x"}, "read": {}, "edit": {"old": "text", "new": "y"}, "grep": {"pattern": "x"}, "delete": {}} {
			if name == "delete" && (test.path == "env" || test.path == "log/log") {
				continue // the link itself may go
			}
			in["path"] = test.path
			full := "workspace." + strings.TrimPrefix(name, "workspace.")
			w.refused(test.code, "", full, in)
			tl, _ := w.tools.Lookup(full)
			data, _ := json.Marshal(in)
			if verdict, why := w.judge(t.Context(), &tool.Call{Name: full, Tool: tl, Args: data}); verdict != tool.Deny || why == "" {
				t.Errorf("the policy says %v about %s %s", verdict, full, test.path)
			}
		}
	}
	w.refused(tool.CodeIgnoredPath, "", "write_artifact", args{"path": "kept/k", "content": "x"})
	w.ok("workspace.read", args{"path": "kept/k"})
	w.refused(tool.CodePermission, "begins with a dot", "workspace.delete", args{"path": "d", "recursive": true})
	w.refused(tool.CodePermission, "folder itself", "write_artifact", args{"path": ".", "content": "x"})
	w.refused(tool.CodeValidation, "at most 1048576", "write_artifact", args{"path": "big", "content": strings.Repeat("x", 1<<20+1)})
	w.refused(tool.CodeValidation, "not UTF-8 text", "write_artifact", args{"path": "bin", "content": "a\x00b"})
	w.ok("write_artifact", args{"path": "big", "content": strings.Repeat("x", 1<<20)})
	for _, in := range []args{{"pattern": "**"}, {"pattern": "*"}} {
		if got := w.ok("WsGlob", in); strings.Contains(got, "audit") || strings.Contains(got, ".env") || strings.Contains(got, "secret") {
			t.Errorf("glob shows what may not be read: %s", got)
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 0 || w.get("artifacts/audit/log") != "x" || w.get("other.txt") != "" {
		t.Errorf("something was written where it may not be: %v", entries)
	}
}

func TestLinkedFolderOfArtifacts(t *testing.T) {
	w := open(t, "", map[string]string{"src/a": "text"})
	if err := os.Symlink("src", filepath.Join(w.dir, "artifacts")); err != nil {
		t.Skip(err)
	}
	w.refused(tool.CodePermission, "leads out", "write_artifact", args{"path": "a", "content": "x"})
	if w.get("src/a") != "text" {
		t.Error("a link in the place of the folder was followed")
	}
}

func TestConfig(t *testing.T) {
	for config, want := range map[string]string{
		`{"dir": "../x"}`: "dir:", `{"dir": "/x"}`: "dir:", `{"dir": "."}`: "dir:", `{"max_bytes": 0}`: "max_bytes", `{"reserved": ["../a"]}`: "reserved[0]",
	} {
		if _, err := workspace.Module.Open(t.Context(), nil, json.RawMessage(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
	w := open(t, `{"dir": "run/out", "max_bytes": 3, "reserved": ["x/y"]}`, map[string]string{"run/out/x/y/z": "", "run/out/x/a": ""})
	w.ok("write_artifact", args{"path": "audit/a", "content": "abc"})
	w.refused(tool.CodeValidation, "at most 3", "write_artifact", args{"path": "a", "content": "abcd"})
	w.refused(tool.CodePermission, "keeps for itself", "workspace.read", args{"path": "x/y/z"})
	w.refused(tool.CodePermission, "keeps for itself", "workspace.delete", args{"path": "x", "recursive": true})
	if w.get("run/out/audit/a") != "abc" || w.get("run/out/x/a") != "" {
		t.Error("the configured folder is not used")
	}
}

func TestDefinitions(t *testing.T) {
	tools, err := workspace.Module.Describe(t.Context())
	if err != nil || len(tools) != 6 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	for _, tl := range tools {
		if tl.Help == "" || len(tl.Aliases) < 10 || !tl.IsRead() && len(tl.SideEffects) == 0 {
			t.Errorf("the definition of %s is not complete", tl.Name)
		}
		for _, e := range tl.Examples {
			if problems := tl.Input.Validate(e); len(problems) > 0 {
				t.Errorf("%s: the example %s: %v", tl.Name, e, problems)
			}
		}
	}
}
