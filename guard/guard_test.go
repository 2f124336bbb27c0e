package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/audit"
	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

// A house is the standard pipeline over a few tools, with everything real but the approver.
type house struct {
	*pipeline.Executor
	rules *guard.Rules
	dir   string
	audit string
	store store.Store
	ran   *[]string
}

type fileIn struct {
	Path string `json:"path" role:"path.read"`
}

type writeIn struct {
	Path  string `json:"path" role:"path.write"`
	Text  string `json:"text,omitempty"`
	Times int    `json:"times,omitempty" min:"1" max:"100000"`
}

type runIn struct {
	Cmd string `json:"cmd" role:"command"`
}

type fetchIn struct {
	URL   string `json:"url" role:"url"`
	Token string `json:"auth_token,omitempty"`
	Pin   string `json:"number,omitempty" role:"secret"`
}

func build(t testing.TB, edit func(*guard.Options, *guard.Rules)) *house {
	t.Helper()
	dir := t.TempDir()
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	h := &house{dir: dir, audit: filepath.Join(dir, ".helve", "audit"), store: new(mem.Store), rules: &guard.Rules{}, ran: new([]string)}
	log, err := audit.Open(h.audit, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	var reg tool.Registry
	if err := reg.Add(tools(h.ran)...); err != nil {
		t.Fatal(err)
	}
	o := guard.Options{Tools: &reg, Root: r, Visible: h.rules.Visible, Policies: []guard.Policy{h.rules.Judge}, Audit: log, Spill: h.store}
	if edit != nil {
		edit(&o, h.rules)
	}
	h.Executor = pipeline.New(&reg, guard.Standard(o)...)
	return h
}

func tools(ran *[]string) []*tool.Tool {
	note := func(s string) { *ran = append(*ran, s) }
	def := func(name string, e tool.Effect) tool.Definition {
		return tool.Definition{Name: name, Description: "For tests.", Effect: e}
	}
	return []*tool.Tool{
		tool.New(def("file.read", tool.Reads), func(_ context.Context, in fileIn) (string, error) { note("read " + in.Path); return "content", nil }),
		tool.New(def("file.write", tool.Writes), func(_ context.Context, in writeIn) (string, error) {
			note("write " + in.Path)
			return strings.Repeat(in.Text, max(in.Times, 1)), nil
		}),
		tool.New(def("file.shred", tool.Destroys), func(_ context.Context, in writeIn) (string, error) { note("shred"); return "", nil }),
		tool.New(def("shell.run", tool.Writes), func(_ context.Context, in runIn) (string, error) { note(in.Cmd); return "ran", nil }),
		tool.New(def("net.fetch", tool.Reads), func(_ context.Context, in fetchIn) (string, error) {
			note(in.URL)
			return "key sk-abcdefghijklmnopqrstuvwxyz012345 end", nil
		}),
		tool.New(def("odd.unknown", tool.Unknown), func(context.Context, struct{}) (string, error) { note("unknown"); return "", nil }),
	}
}

func (h *house) do(t testing.TB, name, args string) *tool.Result {
	t.Helper()
	return h.as(t, tool.Origin{Session: "s", Kind: tool.KindMCP}, name, args)
}

func (h *house) as(t testing.TB, from tool.Origin, name, args string) *tool.Result {
	t.Helper()
	res, err := h.Do(t.Context(), &tool.Call{Name: name, Args: json.RawMessage(args), From: from})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// last returns the newest line of the audit log.
func (h *house) last(t testing.TB) audit.Record {
	t.Helper()
	for r, err := range audit.Query(h.audit, audit.Filter{Newest: true, Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatal("the audit log is empty")
	panic("unreachable")
}

func code(res *tool.Result) tool.Code {
	if res.Err == nil {
		return ""
	}
	return res.Err.Code
}

func TestRefusalsAreToldAndAudited(t *testing.T) {
	h := build(t, func(_ *guard.Options, r *guard.Rules) {
		r.Deny = rules(t, nil, `odd.*`)
		r.Hidden = []*guard.Rule{{Module: "net", Actions: []string{"gone"}}}
	})
	if err := os.WriteFile(filepath.Join(h.dir, ".helveignore"), []byte("secret.txt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, ".helveprotect"), []byte("fixed.txt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, args string
		want       tool.Code
		stage      string
	}{
		{"file.raed", `{}`, tool.CodeNotFound, "resolve"},
		{"odd.unknown", `{}`, tool.CodeNotVisible, "visible"},
		{"file.read", `{"path":1}`, tool.CodeValidation, "validate"},
		{"file.read", `{"pth":"x","nope":1}`, tool.CodeValidation, "validate"},
		{"file.read", `[1]`, tool.CodeValidation, "validate"},
		{"file.read", `{"path":"../x"}`, tool.CodePermission, "paths"},
		{"file.read", `{"path":"a.txt\u0000"}`, tool.CodePermission, "paths"},
		{"file.read", `{"path":".git/config"}`, tool.CodeIgnoredPath, "paths"},
		{"file.read", `{"path":".helve/audit/head"}`, tool.CodeIgnoredPath, "paths"},
		{"file.read", `{"path":"secret.txt"}`, tool.CodeIgnoredPath, "paths"},
		{"file.write", `{"path":"fixed.txt"}`, tool.CodeIgnoredPath, "paths"},
		{"file.write", `{"path":".helveignore"}`, tool.CodeIgnoredPath, "paths"},
		{"net.fetch", `{"url":"http://169.254.169.254/"}`, tool.CodePermission, "urls"},
		{"net.fetch", `{"url":"file:///etc/passwd"}`, tool.CodePermission, "urls"},
		{"file.shred", `{"path":"a.txt"}`, tool.CodePermission, "policy"},
		{"file.write", `{"path":"a.txt"}`, tool.CodeDenied, "approval"},
	} {
		res := h.do(t, test.name, test.args)
		if code(res) != test.want {
			t.Errorf("%s %s: %+v, want %s", test.name, test.args, res.Err, test.want)
			continue
		}
		if r := h.last(t); r.Decision != "deny" || r.Stage != test.stage || r.Error != string(test.want) || r.Kind != "mcp" || r.Session != "s" {
			t.Errorf("%s %s: audited as %s by %s with %s", test.name, test.args, r.Decision, r.Stage, r.Error)
		}
	}
	if len(*h.ran) > 0 {
		t.Errorf("refused calls ran: %q", *h.ran)
	}
	if res := h.do(t, "file.read", `{"path":"a.txt"}`); res.JoinText() != "content" {
		t.Errorf("a low-risk read: %+v", res)
	}
	if report, err := audit.Verify(h.audit); err != nil || len(report.Problems) > 0 || report.Lines != 17 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}

func rules(t testing.TB, r *root.Root, texts ...string) []*guard.Rule {
	t.Helper()
	var out []*guard.Rule
	for _, text := range texts {
		rule, err := guard.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rule.Root = r
		out = append(out, rule)
	}
	return out
}

func TestPolicyPrecedence(t *testing.T) {
	for _, test := range []struct {
		title                string
		def                  guard.Default
		deny, approve, grant []string
		name, args, want     string
	}{
		{"zero value, read", "", nil, nil, nil, "file.read", `{"path":"a"}`, "allow"},
		{"zero value, write", "", nil, nil, nil, "file.write", `{"path":"a"}`, "ask"},
		{"zero value, high risk", "", nil, nil, nil, "file.shred", `{"path":"a"}`, "deny"},
		{"zero value, unknown effect", "", nil, nil, nil, "odd.unknown", `{}`, "deny"},
		{"auto", guard.Auto, nil, nil, nil, "file.write", `{"path":"a"}`, "allow"},
		{"auto, high risk", guard.Auto, nil, nil, nil, "file.shred", `{"path":"a"}`, "deny"},
		{"approve_all", guard.ApproveAll, nil, nil, nil, "file.read", `{"path":"a"}`, "ask"},
		{"block", guard.Block, nil, nil, nil, "file.read", `{"path":"a"}`, "deny"},
		{"block, granted", guard.Block, nil, nil, []string{"file.read"}, "file.read", `{"path":"a"}`, "allow"},
		{"a default nobody knows", "yes", nil, nil, nil, "file.read", `{"path":"a"}`, "deny"},
		{"granted above the maximum", "", nil, nil, []string{"file.*"}, "file.shred", `{"path":"a"}`, "allow"},
		{"asked above the maximum", "", nil, []string{"file.shred"}, nil, "file.shred", `{"path":"a"}`, "ask"},
		{"approve beats grant", "", nil, []string{"file.write"}, []string{"file.*"}, "file.write", `{"path":"a"}`, "ask"},
		{"deny beats grant", "", []string{`file.write(path: "a*")`}, nil, []string{"file.*"}, "file.write", `{"path":"abc"}`, "deny"},
		{"deny of other arguments", "", []string{`file.write(path: "a*")`}, nil, []string{"file.*"}, "file.write", `{"path":"b"}`, "allow"},
		{"path condition after normalisation", "", nil, nil, []string{`file.write(path: "docs/**")`}, "file.write", `{"path":"docs/../docs/./x/y"}`, "allow"},
		{"path condition cannot be escaped", "", nil, nil, []string{`file.write(path: "docs/**")`}, "file.write", `{"path":"docs/../x"}`, "ask"},
		{"command condition", "", nil, nil, []string{`shell.run(command: "git status*")`}, "shell.run", `{"cmd":"git  status -s"}`, "allow"},
		{"command condition, compound", "", nil, nil, []string{`shell.run(command: "git status*")`}, "shell.run", `{"cmd":"git status; rm x"}`, "ask"},
		{"command condition, every part", "", nil, nil, []string{`shell.run(command: "git status*")`}, "shell.run", `{"cmd":"git status && git status -s"}`, "allow"},
		{"command condition, word boundary", "", nil, nil, []string{`shell.run(command: "git log*")`}, "shell.run", `{"cmd":"git logout"}`, "ask"},
		{"denied command in a compound", guard.Auto, []string{`shell.run(cmd: "rm*")`}, nil, nil, "shell.run", `{"cmd":"ls && rm x"}`, "deny"},
		{"a command that cannot be read is denied", guard.Auto, []string{`shell.run(cmd: "rm*")`}, nil, nil, "shell.run", `{"cmd":"echo $(rm x)"}`, "deny"},
		{"text condition", "", nil, nil, []string{`file.write(text: "hello*")`}, "file.write", `{"path":"a","text":"hello world"}`, "allow"},
		{"text condition, absent", "", nil, nil, []string{`file.write(text: "hello*")`}, "file.write", `{"path":"a"}`, "ask"},
	} {
		h := build(t, func(o *guard.Options, r *guard.Rules) {
			if err := os.Mkdir(filepath.Join(o.Root.Dir(), "docs"), 0o700); err != nil {
				t.Fatal(err)
			}
			r.Default, r.Deny, r.Approve, r.Grant = test.def, rules(t, o.Root, test.deny...), rules(t, o.Root, test.approve...), rules(t, o.Root, test.grant...)
		})
		x := h.Explain(t.Context(), &tool.Call{Name: test.name, Args: json.RawMessage(test.args)})
		if x.Decision != test.want || x.Stage != "policy" || x.Reason == "" {
			t.Errorf("%s: %s by %s because %q, want %s by policy", test.title, x.Decision, x.Stage, x.Reason, test.want)
		}
		if len(*h.ran) > 0 {
			t.Errorf("%s: an explanation ran the tool", test.title)
		}
	}
}

func TestDaemonIdentity(t *testing.T) {
	h := build(t, func(_ *guard.Options, r *guard.Rules) {
		r.Constraints = map[string]guard.Constraint{"file": {Allowed: []string{"read"}}}
		r.Deny = rules(t, nil, "shell.run")
	})
	setup := tool.Origin{Kind: tool.KindSetup}
	if res := h.as(t, setup, "file.write", `{"path":"a"}`); res.Err != nil {
		t.Errorf("constraints of agents bound a setup step: %v", res.Err)
	}
	if res := h.as(t, setup, "shell.run", `{"cmd":"ls"}`); code(res) != tool.CodeNotVisible {
		t.Errorf("a denial did not bind a setup step: %+v", res)
	}
	for _, kind := range []tool.Kind{"", tool.KindModel, tool.KindMCP, tool.KindCLI, tool.KindHTTP, tool.KindScript} {
		if res := h.as(t, tool.Origin{Kind: kind}, "file.write", `{"path":"a"}`); code(res) != tool.CodeNotVisible {
			t.Errorf("kind %q: constraints did not bind: %+v", kind, res)
		}
	}
}

func TestApprover(t *testing.T) {
	answers := map[string]struct {
		answer guard.Answer
		err    error
	}{
		"yes": {guard.Answer{Approved: true, By: "ann"}, nil},
		"no":  {guard.Answer{Feedback: "use docs/ instead"}, nil},
		"err": {guard.Answer{Approved: true}, errors.New("the line is dead")},
	}
	h := build(t, func(o *guard.Options, _ *guard.Rules) {
		o.Approver = func(_ context.Context, q guard.Question) (guard.Answer, error) {
			var in writeIn
			json.Unmarshal(q.Args, &in)
			return answers[in.Path].answer, answers[in.Path].err
		}
	})
	if res := h.do(t, "file.write", `{"path":"yes"}`); res.Err != nil {
		t.Errorf("approved: %v", res.Err)
	}
	if r := h.last(t); r.Decision != "allow" || r.Approver != "ann" || r.Stage != "approval" {
		t.Errorf("audited as %s by %s, approver %q", r.Decision, r.Stage, r.Approver)
	}
	for path, want := range map[string]string{"no": "use docs/ instead", "err": "the line is dead", "silent": "not approved"} {
		res := h.do(t, "file.write", `{"path":"`+path+`"}`)
		if code(res) != tool.CodeDenied || !strings.Contains(res.Err.Message, want) {
			t.Errorf("%s: %+v, want a denial that says %q", path, res.Err, want)
		}
	}
	if len(*h.ran) != 1 {
		t.Errorf("ran %q", *h.ran)
	}
}

func TestCoercionIsNoted(t *testing.T) {
	h := build(t, func(_ *guard.Options, r *guard.Rules) { r.Default = guard.Auto })
	res := h.do(t, "file.write", `{"path":"a","times":"3","text":"x"}`)
	if res.Err != nil || res.JoinText() != "xxx" || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "/times") {
		t.Errorf("result %+v", res)
	}
	if r := h.last(t); len(r.Notes) != 1 || !strings.Contains(string(r.Args), `"times":3`) {
		t.Errorf("audited %s with the notes %q", r.Args, r.Notes)
	}
	res = h.do(t, "file.read", `{"path":["a"]}`)
	if code(res) != tool.CodeValidation {
		t.Errorf("a path was made from what is not a string: %+v", res)
	}
}

func TestSecretsNeverReachTheAudit(t *testing.T) {
	h := build(t, nil)
	res := h.do(t, "net.fetch", `{"url":"https://example.com/?k=sk-abcdefghijklmnopqrstuvwxyz012345","auth_token":"hunter2hunter2","number":"4711 0815 4711"}`)
	if res.Err != nil || strings.Contains(res.JoinText(), "sk-") || !strings.Contains(res.JoinText(), "end") {
		t.Errorf("result %+v", res)
	}
	data, err := os.ReadFile(filepath.Join(h.audit, h.last(t).File))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"sk-abc", "hunter2", "4711 0815"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("the audit holds %q: %s", secret, data)
		}
	}
	if !strings.Contains(string(data), "example.com") {
		t.Errorf("the audit lost what is not secret: %s", data)
	}
}

func TestLongResultsAreCutAndKept(t *testing.T) {
	h := build(t, func(_ *guard.Options, r *guard.Rules) { r.Default = guard.Auto })
	res := h.do(t, "file.write", `{"path":"a","text":"0123456789é","times":2000}`)
	text := res.JoinText()
	if n := len([]rune(text)); n > guard.DefaultMaxResult || n < guard.DefaultMaxResult/2 {
		t.Fatalf("%d characters are shown", n)
	}
	if !strings.HasPrefix(text, "0123456789é0") || !strings.HasSuffix(text, "9é") || !strings.Contains(text, "of 22000 characters left out") {
		t.Errorf("the cut result reads %.80q … %.300q", text, text[len(text)/2:])
	}
	_, rest, _ := strings.Cut(text, `{"id": "`)
	id, _, _ := strings.Cut(rest, `"`)
	err := h.store.View(t.Context(), func(r store.Reader) error {
		s, err := guard.Spilled.Get(r, id)
		if err != nil {
			return err
		}
		if len([]rune(s.Text)) != 22000 {
			t.Errorf("%d characters were kept", len([]rune(s.Text)))
		}
		if s.Readable(tool.Origin{Session: "other"}) || !s.Readable(tool.Origin{Session: "s"}) {
			t.Error("the kept result is not bound to its session")
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", id, err)
	}
	if r := h.last(t); !r.Truncated || r.ResultBytes != 24000 {
		t.Errorf("audited truncated %v, %d bytes", r.Truncated, r.ResultBytes)
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg tool.Registry
		stuck := make(chan struct{})
		reg.Add(
			tool.New(tool.Definition{Name: "slow", Description: "Take an hour.", Effect: tool.Reads}, func(ctx context.Context, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}),
			tool.New(tool.Definition{Name: "polite", Description: "Take an hour.", Effect: tool.Reads, HeedsContext: true}, func(ctx context.Context, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}),
			tool.New(tool.Definition{Name: "deaf", Description: "Do not listen.", Effect: tool.Reads, Timeout: time.Second}, func(context.Context, struct{}) (string, error) {
				<-stuck
				return "", nil
			}))
		ex := pipeline.New(&reg, guard.Resolve(&reg, nil, nil, nil), guard.Timeout(time.Minute))
		for name, want := range map[string]time.Duration{"slow": time.Minute, "polite": time.Minute, "deaf": time.Second} {
			start := time.Now()
			res, err := ex.Do(t.Context(), &tool.Call{Name: name})
			if err != nil || code(res) != tool.CodeTimeout || !res.Err.Retryable {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			if got := time.Since(start); got != want {
				t.Errorf("%s: given up after %v, want %v", name, got, want)
			}
		}
		close(stuck)
	})
}

func TestOutputIsChecked(t *testing.T) {
	var reg tool.Registry
	bad := &tool.Tool{Definition: tool.Definition{Name: "x.y", Description: "x", Effect: tool.Reads,
		Input: schema.Must(`{"type":"object"}`), Output: schema.Must(`{"type":"object","required":["n"]}`)},
		Handle: func(context.Context, *tool.Call) (*tool.Result, error) {
			return &tool.Result{Content: []tool.Content{{Text: "t"}}, Structured: json.RawMessage(`{}`)}, nil
		}}
	if err := reg.Add(bad); err != nil {
		t.Fatal(err)
	}
	res, err := pipeline.New(&reg, guard.Output()).Do(t.Context(), &tool.Call{Name: "x.y"})
	if err != nil || res.Structured != nil || len(res.Notes) != 1 || res.JoinText() != "t" {
		t.Errorf("result %+v, %v", res, err)
	}
}

func TestWritesStopWhileTheAuditCannotBeWritten(t *testing.T) {
	h := build(t, func(_ *guard.Options, r *guard.Rules) { r.Default = guard.Auto })
	if res := h.do(t, "file.write", `{"path":"a"}`); res.Err != nil {
		t.Fatal(res.Err)
	}
	if err := os.RemoveAll(h.audit); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.audit, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	*h.ran = nil
	deadline := time.Now().Add(5 * time.Second)
	for { // the log looks at its folder once a second
		res := h.do(t, "file.write", `{"path":"b"}`)
		if res.Err != nil {
			if !strings.Contains(res.Err.Message, "audit log") {
				t.Errorf("the error does not say what is wrong: %v", res.Err)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("writes go on without an audit log")
		}
	}
	n := len(*h.ran)
	h.do(t, "file.write", `{"path":"c"}`)
	if len(*h.ran) != n {
		t.Error("a write ran although the audit log cannot be written")
	}
}

func TestNestingIsBounded(t *testing.T) {
	h := build(t, nil)
	from := tool.Origin{Via: strings.Split("a b c d e f g h", " ")}
	if res := h.as(t, from, "file.read", `{"path":"a"}`); code(res) != tool.CodePermission {
		t.Errorf("nested nine deep: %+v", res)
	}
}

func TestParseRule(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "no tool is named",
		"x.y(":                       "no closing parenthesis",
		"x.y()":                      "no condition",
		"x.y(path)":                  `want NAME: "PATTERN"`,
		"x.y(path: docs)":            "must be quoted",
		`x.y(path: "docs)`:           "not closed",
		`x.y(path: "a" cmd: "b")`:    "want a comma",
		`x.y(path: "a", cmd: "b(*")`: "",
		"mcp.github.*":               "",
	} {
		r, err := guard.ParseRule(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want == "" && r.String() != text:
			t.Errorf("%q is written back as %q", text, r)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want it to say %q", text, err, want)
		}
	}
}

func BenchmarkPipeline(b *testing.B) {
	type nine struct {
		Path    string   `json:"path" role:"path.read"`
		Offset  int      `json:"offset,omitempty" min:"0"`
		Limit   int      `json:"limit,omitempty" min:"1" max:"2000"`
		Numbers bool     `json:"numbers,omitempty"`
		Enc     string   `json:"encoding,omitempty" enum:"utf-8,latin-1"`
		Tags    []string `json:"tags,omitempty"`
		Ratio   float64  `json:"ratio,omitempty"`
		Name    string   `json:"name,omitempty" maxlen:"100"`
		Deep    struct {
			A int `json:"a,omitempty"`
		} `json:"deep,omitzero"`
	}
	read := tool.New(tool.Definition{Name: "bench.read", Description: "Read.", Effect: tool.Reads, HeedsContext: true}, func(_ context.Context, in nine) (string, error) { return "ok", nil })
	h := build(b, func(o *guard.Options, r *guard.Rules) {
		if err := o.Tools.Add(read); err != nil {
			b.Fatal(err)
		}
		o.Checkpoints = checkpoint.New(checkpoint.Options{Dir: b.TempDir(), Store: new(mem.Store), Root: o.Root, App: "a"})
	})
	if err := os.WriteFile(filepath.Join(h.dir, "a.txt"), nil, 0o600); err != nil {
		b.Fatal(err)
	}
	call := &tool.Call{Name: "bench.read", ID: "call-1", From: tool.Origin{App: "a", Session: "s", User: "u", Kind: tool.KindMCP},
		Args: json.RawMessage(`{"path":"a.txt","offset":10,"limit":100,"numbers":true,"encoding":"utf-8","tags":["a","b"],"ratio":0.5,"name":"x","deep":{"a":1}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if res, err := h.Do(b.Context(), call); err != nil || res.Err != nil {
			b.Fatal(res, err)
		}
	}
}
