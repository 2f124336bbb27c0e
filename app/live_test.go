package app_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/credentials"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/tool"
)

func TestLiveFollowsItsFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "app.yaml")
	write := func(policy string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("app: {app_id: demo, name: Demo}\ntools: {capabilities: {"+policy+"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	started, release := make(chan struct{}), make(chan struct{})
	var closed atomic.Int32
	slow := module.New("slow", "Wait.", struct{}{}, func(_ context.Context, h *module.Host, _ struct{}) (*module.Toolset, error) {
		wait := tool.New(tool.Definition{Name: "slow.wait", Description: "Wait.", Effect: tool.Reads}, func(context.Context, struct{}) (string, error) {
			started <- struct{}{}
			<-release
			return "waited", nil
		})
		return &module.Toolset{Tools: []*tool.Tool{wait}, Close: func() error {
			if h.Root != nil { // not opened to be described only
				closed.Add(1)
			}
			return nil
		}}, nil
	})
	modules := append(std.Modules(), slow)
	write("default_policy: auto")
	l, err := app.OpenLive(t.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context) (*app.App, error) {
		cfg, err := app.Load(file, app.LoadOptions{Modules: modules, Env: os.LookupEnv})
		if err != nil {
			return nil, err
		}
		return app.Open(ctx, app.Options{Config: cfg, File: file, Modules: modules, Root: dir})
	})
	if err != nil {
		t.Fatal(err)
	}
	call := func(name, args string) *tool.Result {
		t.Helper()
		res, err := l.Call(t.Context(), &tool.Call{Name: name, Args: json.RawMessage(args), From: tool.Origin{Kind: tool.KindMCP, Session: "s"}})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	const args = `{"path":"a.txt","content":"x"}`
	if res := call("filesystem.write", args); res.Err != nil {
		t.Fatal(res.Err)
	}
	if err := l.Check(t.Context()); err != nil {
		t.Errorf("nothing has changed: %v", err)
	}
	changed := l.Changed()
	waited := make(chan *tool.Result)
	go func() {
		res, _ := l.Call(context.Background(), &tool.Call{Name: "slow.wait", From: tool.Origin{Kind: tool.KindMCP}})
		waited <- res
	}()
	<-started

	write("default_policy: autoo")
	if err := l.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "app.yaml:2") {
		t.Errorf("a bad file: %v", err)
	}
	if res := call("filesystem.write", args); res.Err != nil {
		t.Errorf("a bad file stopped the old app: %v", res.Err)
	}
	write("default_policy: block")
	if err := l.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-changed
	if res := call("filesystem.write", args); res.Err == nil || res.Err.Code != tool.CodePermission {
		t.Errorf("the new policy does not hold: %+v", res)
	}
	if closed.Load() != 0 {
		t.Error("the old app was closed under a call")
	}
	close(release)
	if res := <-waited; res == nil || res.JoinText() != "waited" {
		t.Errorf("the call under way was lost: %+v", res)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if n := closed.Load(); n != 2 {
		t.Errorf("%d of 2 apps were closed", n)
	}
}

// An app is opened anew when an app that it calls has changed, or a skill in
// one of its folders, or a skill has been added there.
func TestLiveFollowsWhatTheFileNames(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const agent = "agents: [{id: a, brain: {backend: script, config: {turns: [{say: x}]}}}]\n"
	write("app.yaml", "app: {app_id: demo, name: Demo}\n"+agent+"dev: {skill_folders: [skills]}\ntools: {apps: {sum: {file: sum.yaml}}}\n")
	write("sum.yaml", "app: {app_id: sum, name: Sum, description: adds}\nruntime: {mode: one_shot}\n"+agent)
	write("skills/one/SKILL.md", "---\ndescription: First.\n---\nDo it.\n")
	opened := 0
	l, err := app.OpenLive(t.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context) (*app.App, error) {
		opened++
		file := filepath.Join(dir, "app.yaml")
		cfg, err := app.Load(file, app.LoadOptions{Modules: std.Modules(), Env: os.LookupEnv})
		if err != nil {
			return nil, err
		}
		return app.Open(ctx, app.Options{Config: cfg, File: file, Modules: std.Modules(), Root: dir, Store: "memory"})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tools := func(want string) {
		t.Helper()
		p, err := l.App().PromptOf(t.Context(), "", "me")
		if err != nil || !strings.Contains(p.String(), want) {
			t.Errorf("the prompt lacks %q: %v\n%s", want, err, p)
		}
	}
	for i, change := range []struct{ file, text, told string }{
		{"sum.yaml", "app: {app_id: sum, name: Sum, description: multiplies}\nruntime: {mode: one_shot}\n" + agent, "- sum: multiplies"},
		{"skills/one/SKILL.md", "---\ndescription: Other.\n---\nDo it.\n", "- one: Other."},
		{"skills/two/SKILL.md", "---\ndescription: Second.\n---\nDo it.\n", "- two: Second."},
	} {
		write(change.file, change.text)
		if err := l.Check(t.Context()); err != nil || opened != i+2 {
			t.Errorf("%s: opened %d times, %v", change.file, opened, err)
		}
		tools(change.told)
	}
	write("sum.yaml", "app: {app_id: sum, name: Sum}\nruntime: {mode: one_shit}\n")
	if err := l.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "one_shit") {
		t.Errorf("a bad app that is called: %v", err)
	}
	tools("- sum: multiplies")
}

// A server that lacked a secret serves when the secret is kept, without a new start.
func TestLiveFindsSecrets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "app.yaml")
	if err := os.WriteFile(file, []byte("app: {app_id: demo, name: Demo}\ntools: {mcp_servers: {web: {url: \"http://127.0.0.1:9/mcp\", headers: {X-Key: \"{{secret.KEY}}\"}}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := credentials.New(credentials.Options{Backend: credentials.File, Dir: filepath.Join(dir, "kept")})
	l, err := app.OpenLive(t.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context) (*app.App, error) {
		cfg, err := app.Load(file, app.LoadOptions{Modules: std.Modules(), Env: os.LookupEnv})
		if err != nil {
			return nil, err
		}
		return app.Open(ctx, app.Options{Config: cfg, File: file, Modules: std.Modules(), Root: dir, Credentials: kept, Secret: kept.Get})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	first := l.App()
	until := func(want mcpbridge.State) {
		for first.Upstreams()[0].State != want && t.Context().Err() == nil {
			runtime.Gosched()
		}
	}
	until(mcpbridge.NeedsSetup)
	if st := first.Upstreams()[0]; !strings.Contains(st.Error, "KEY") {
		t.Errorf("without the secret: %+v", st)
	}
	if err := kept.Set("KEY", "value"); err != nil {
		t.Fatal(err)
	}
	until(mcpbridge.Failed) // nobody answers at that port
	if err := l.Check(t.Context()); err != nil || l.App() != first {
		t.Errorf("the app itself need not be opened anew: %v", err)
	}
}
