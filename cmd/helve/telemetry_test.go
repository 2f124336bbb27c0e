package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector takes what OpenTelemetry sends, and reads it with the types of
// the protocol's own project.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	all     strings.Builder // as it came
	spans   []*traces.Span
	about   map[string]string // the resource
	metrics map[string]*metrics.Metric
}

func newCollector(t testing.TB) *collector {
	c := &collector{metrics: map[string]*metrics.Metric{}, about: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = c.take(r.URL.Path, body)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", r.URL.Path, r.Header.Get("Content-Type"), err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(path string, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Write(body)
	switch path { // the requests of the protocol have the same form as these
	case "/v1/traces":
		var data traces.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			return err
		}
		for _, r := range data.ResourceSpans {
			maps.Copy(c.about, attributes(r.Resource.Attributes))
			for _, s := range r.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	case "/v1/metrics":
		var data metrics.MetricsData
		if err := proto.Unmarshal(body, &data); err != nil {
			return err
		}
		for _, r := range data.ResourceMetrics {
			for _, s := range r.ScopeMetrics {
				for _, m := range s.Metrics {
					c.metrics[m.Name] = m
				}
			}
		}
	default:
		return fmt.Errorf("nobody listens there")
	}
	return nil
}

func (c *collector) env() []string { return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL} }

func attributes(all []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range all {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.Key] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_ArrayValue:
			for _, one := range v.ArrayValue.Values {
				out[kv.Key] += one.GetStringValue() + ";"
			}
		default:
			out[kv.Key] = kv.Value.String()
		}
	}
	return out
}

// tree draws the spans, children beneath their parents in the order of their
// beginning: kind, name, error, and the attributes asked for.
func (c *collector) tree(keys ...string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.spans, func(a, b *traces.Span) int {
		if a.StartTimeUnixNano < b.StartTimeUnixNano {
			return -1
		}
		return 1
	})
	known := map[string]bool{}
	for _, s := range c.spans {
		known[string(s.SpanId)] = true
	}
	var b strings.Builder
	var draw func(parent []byte, trace, indent string)
	draw = func(parent []byte, trace, indent string) {
		for _, s := range c.spans {
			root := len(s.ParentSpanId) == 0 || !known[string(s.ParentSpanId)]
			if parent == nil && !root || parent != nil && (string(s.ParentSpanId) != string(parent) || string(s.TraceId) != trace) {
				continue
			}
			a := attributes(s.Attributes)
			fmt.Fprintf(&b, "%s%s %s", indent, strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"), s.Name)
			if a["error.type"] != "" || s.Status.GetCode() == traces.Status_STATUS_CODE_ERROR {
				fmt.Fprintf(&b, " (%s %s)", s.Status.GetCode(), a["error.type"])
			}
			for _, k := range keys {
				if v, ok := a[k]; ok {
					fmt.Fprintf(&b, " %s=%s", k, v)
				}
			}
			b.WriteByte('\n')
			draw(s.SpanId, string(s.TraceId), indent+"  ")
		}
	}
	draw(nil, "", "")
	return b.String()
}

// span returns the one of a name.
func (c *collector) span(t testing.TB, name string) (*traces.Span, map[string]string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			return s, attributes(s.Attributes)
		}
	}
	t.Fatalf("there is no span %q", name)
	return nil, nil
}

// measured returns the histogram of a name: counts by the attributes asked for.
func (c *collector) measured(name string, keys ...string) map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]uint64{}
	for _, p := range c.metrics[name].GetHistogram().GetDataPoints() {
		var parts []string
		a := attributes(p.Attributes)
		for _, k := range keys {
			parts = append(parts, a[k])
		}
		out[strings.Join(parts, " ")] += p.Count
	}
	return out
}

// runWith runs helve in dir with more environment.
func runWith(t testing.TB, dir string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t.Context(), dir, args...)
	cmd.Env = append(cmd.Env, env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

const scriptApp = `{"app":{"app_id":"told","name":"Told"},"agents":[{"id":"guide","brain":{"backend":"script","config":{"turns":[
	{"calls":[{"tool":"filesystem.read","args":{"path":"../outside.txt"}}]},
	{"calls":[{"tool":"execute_tool","args":{"name":"filesystem.read","params":{"path":"notes.txt"}}}]},
	{"calls":[{"tool":"no.such_tool","args":{"x":"made up words"}}]},
	{"say":"Done with it."}]}}}]}`

// What an agent did is told, refusals included, and nothing of what was said.
func TestTelemetryOfARun(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	dir := folder(t, "app.yaml", scriptApp, "notes.txt", "remember the milk\n")
	out, errs, code := runWith(t, dir, append(c.env(), "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test"), "run", "app.yaml", "Look around")
	if code != 0 || !strings.Contains(out, "Done with it.") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	want := `INTERNAL invoke_agent guide gen_ai.agent.name=guide
  CLIENT chat gen_ai.provider.name=script gen_ai.response.finish_reasons=tool_call;
  INTERNAL execute_tool filesystem.read (STATUS_CODE_ERROR permission_denied) gen_ai.tool.name=filesystem.read helve.decision=deny helve.stage=paths gen_ai.agent.name=guide
  CLIENT chat gen_ai.provider.name=script gen_ai.response.finish_reasons=tool_call;
  INTERNAL execute_tool execute_tool gen_ai.tool.name=execute_tool helve.decision=allow helve.stage=policy gen_ai.agent.name=guide
    INTERNAL execute_tool filesystem.read gen_ai.tool.name=filesystem.read helve.decision=allow helve.stage=policy gen_ai.agent.name=guide
  CLIENT chat gen_ai.provider.name=script gen_ai.response.finish_reasons=tool_call;
  INTERNAL execute_tool (STATUS_CODE_ERROR tool_not_found) gen_ai.tool.name=no__such_tool helve.decision=deny helve.stage=resolve gen_ai.agent.name=guide
  CLIENT chat gen_ai.provider.name=script gen_ai.response.finish_reasons=stop;
`
	if got := c.tree("gen_ai.provider.name", "gen_ai.response.finish_reasons", "gen_ai.tool.name", "helve.decision", "helve.stage", "gen_ai.agent.name"); got != want {
		t.Errorf("the spans:\n%s\nwant:\n%s", got, want)
	}
	run, about := c.span(t, "invoke_agent guide")
	session := about["gen_ai.conversation.id"]
	if !strings.HasPrefix(session, "20") || about["gen_ai.agent.id"] != "told/guide" || about["gen_ai.operation.name"] != "invoke_agent" {
		t.Errorf("the run: %v", about)
	}
	seen := map[string]bool{}
	for _, s := range c.spans {
		a := attributes(s.Attributes)
		if string(s.TraceId) != string(run.TraceId) || a["gen_ai.conversation.id"] != session {
			t.Errorf("%s: trace %x, session %q", s.Name, s.TraceId, a["gen_ai.conversation.id"])
		}
		if id := a["gen_ai.tool.call.id"]; strings.HasPrefix(s.Name, "execute_tool") {
			if id == "" || seen[id] || a["gen_ai.tool.type"] != "function" || a["gen_ai.operation.name"] != "execute_tool" {
				t.Errorf("%s: %v", s.Name, a)
			}
			seen[id] = true
		}
	}
	if got, want := fmt.Sprint(c.measured("gen_ai.execute_tool.duration", "gen_ai.tool.name", "error.type")), "map[ tool_not_found:1 execute_tool :1 filesystem.read :1 filesystem.read permission_denied:1]"; got != want {
		t.Errorf("calls measured: %s, want %s", got, want)
	}
	if got := fmt.Sprint(c.measured("gen_ai.client.operation.duration", "gen_ai.provider.name"), c.measured("gen_ai.invoke_agent.duration", "gen_ai.agent.name")); got != "map[script:4] map[guide:1]" {
		t.Errorf("answers and runs measured: %s", got)
	}
	if c.about["service.name"] != "helve" || c.about["deployment.environment.name"] != "test" || c.about["service.version"] == "" {
		t.Errorf("the resource: %v", c.about)
	}
	for _, said := range []string{"notes.txt", "outside.txt", "milk", "made up words", "Done with it", "Look around"} {
		if strings.Contains(c.all.String(), said) {
			t.Errorf("%q was told to the collector", said)
		}
	}
}

// Whoever has a conversation handed over has a span of its own, in the run.
func TestTelemetryOfAHandover(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	s := newScripted(t, callsTool("c1", "switch_agent", `{"agent":"second"}`), callsTool("c2", "switch_agent", `{"agent":"worker"}`),
		callsTool("c3", "switch_agent", `{"agent":"second"}`), callsTool("c4", "filesystem__read", `{"path":"notes.txt"}`), says("Here it is."))
	app := s.app(`,"runtime":{"tool_injection":"direct"},"tools":{"modules":{"filesystem":{}}}`)
	var declared object
	if err := json.Unmarshal([]byte(app), &declared); err != nil {
		t.Fatal(err)
	}
	first := declared["agents"].([]any)[0].(object)
	first["delegate_to"] = []string{"second"}
	declared["agents"] = []any{first, object{"id": "second", "delegate_to": []string{"worker"}, "brain": first["brain"]}}
	dir := folder(t, "app.yaml", encode(t, declared), "notes.txt", "remember the milk\n")
	if out, errs, code := runWith(t, dir, c.env(), "run", "app.yaml", "Look around", "--yes"); code != 0 || !strings.Contains(out, "Here it is.") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	want := `INTERNAL invoke_agent worker gen_ai.agent.name=worker gen_ai.usage.input_tokens=200
  CLIENT chat gpt-test gen_ai.usage.input_tokens=40
  INTERNAL execute_tool switch_agent gen_ai.agent.name=worker
  INTERNAL invoke_agent second gen_ai.agent.name=second gen_ai.usage.input_tokens=40
    CLIENT chat gpt-test gen_ai.usage.input_tokens=40
    INTERNAL execute_tool switch_agent gen_ai.agent.name=second
  INTERNAL invoke_agent worker gen_ai.agent.name=worker gen_ai.usage.input_tokens=40
    CLIENT chat gpt-test gen_ai.usage.input_tokens=40
    INTERNAL execute_tool switch_agent gen_ai.agent.name=worker
  INTERNAL invoke_agent second gen_ai.agent.name=second gen_ai.usage.input_tokens=80
    CLIENT chat gpt-test gen_ai.usage.input_tokens=40
    INTERNAL execute_tool filesystem.read gen_ai.agent.name=second
    CLIENT chat gpt-test gen_ai.usage.input_tokens=40
`
	if got := c.tree("gen_ai.agent.name", "gen_ai.usage.input_tokens"); got != want {
		t.Errorf("the spans:\n%s\nwant:\n%s", got, want)
	}
	if got := fmt.Sprint(c.measured("gen_ai.invoke_agent.duration", "gen_ai.agent.name")); got != "map[second:2 worker:2]" {
		t.Errorf("runs measured: %s", got)
	}
}

// Of a provider's answers is told which model gave them, and what they cost;
// of failures, of which kind they are.
func TestTelemetryOfAModel(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	s := newScripted(t, fails(429, `{"error":{"message":"slow down, friend"}}`, "Retry-After", "0.05"), callsTool("c1", "filesystem__read", `{"path":"notes.txt"}`), says("It says milk."),
		fails(401, `{"error":{"message":"Incorrect API key"}}`))
	dir := folder(t, "app.yaml", s.app(`,"runtime":{"tool_injection":"direct"},"tools":{"modules":{"filesystem":{}}}`), "notes.txt", "remember the milk\n")
	out, errs, code := runWith(t, dir, append(c.env(), "OTEL_SERVICE_NAME=desk"), "run", "app.yaml", "Look around")
	if code != 0 || !strings.Contains(out, "It says milk.") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	if _, _, code = runWith(t, dir, c.env(), "run", "app.yaml", "Again"); code != 2 {
		t.Fatalf("exit code %d of a run without a key", code)
	}
	want := `INTERNAL invoke_agent worker gen_ai.usage.input_tokens=80 gen_ai.usage.output_tokens=16
  CLIENT chat gpt-test (STATUS_CODE_ERROR 429)
  CLIENT chat gpt-test gen_ai.response.id=chatcmpl-7 gen_ai.response.model=gpt-test-0613 gen_ai.response.finish_reasons=tool_call; gen_ai.usage.input_tokens=40 gen_ai.usage.output_tokens=8
  INTERNAL execute_tool filesystem.read
  CLIENT chat gpt-test gen_ai.response.id=chatcmpl-7 gen_ai.response.model=gpt-test-0613 gen_ai.response.finish_reasons=stop; gen_ai.usage.input_tokens=40 gen_ai.usage.output_tokens=8
INTERNAL invoke_agent worker (STATUS_CODE_ERROR failed)
  CLIENT chat gpt-test (STATUS_CODE_ERROR 401)
`
	if got := c.tree("gen_ai.response.id", "gen_ai.response.model", "gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"); got != want {
		t.Errorf("the spans:\n%s\nwant:\n%s", got, want)
	}
	_, about := c.span(t, "chat gpt-test")
	if about["gen_ai.provider.name"] != "openai" || about["gen_ai.request.model"] != "gpt-test" || about["server.address"] != "127.0.0.1" || about["server.port"] != s.URL[strings.LastIndex(s.URL, ":")+1:] {
		t.Errorf("a request: %v", about)
	}
	for _, said := range []string{"friend", "Incorrect", "milk", "secret"} {
		if strings.Contains(c.all.String(), said) {
			t.Errorf("%q was told to the collector", said)
		}
	}
	usage := newCollector(t)
	s = newScripted(t, says("Hi."))
	if _, errs, code := runWith(t, folder(t, "app.yaml", s.app("")), usage.env(), "run", "app.yaml", "Hello"); code != 0 {
		t.Fatal(errs)
	}
	if got := fmt.Sprint(usage.measured("gen_ai.client.token.usage", "gen_ai.token.type", "gen_ai.response.model")); got != "map[input gpt-test-0613:1 output gpt-test-0613:1]" {
		t.Errorf("tokens measured: %s", got)
	}
	for _, p := range usage.metrics["gen_ai.client.token.usage"].GetHistogram().DataPoints {
		if want := map[string]float64{"input": 40, "output": 8}[attributes(p.Attributes)["gen_ai.token.type"]]; p.GetSum() != want {
			t.Errorf("%v: %v tokens, want %v", p.Attributes, p.GetSum(), want)
		}
	}
}

// What is said to tools, and what they answer, is told only on demand, and
// without what is secret.
func TestTelemetryOfContent(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	dir := folder(t, "notes.txt", "remember the milk, and AKIA0123456789ABCDEF\n")
	env := append(c.env(), "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true")
	if out, errs, code := runWith(t, dir, env, "tools", "call", "filesystem.grep", `{"path":".","pattern":"AKIA0123456789ABCDEF"}`); code != 0 {
		t.Fatalf("%s%s", out, errs)
	}
	if out, errs, code := runWith(t, dir, env, "tools", "call", "filesystem.read", `{"path":"notes.txt"}`); code != 0 {
		t.Fatalf("%s%s", out, errs)
	}
	_, about := c.span(t, "execute_tool filesystem.read")
	if about["gen_ai.tool.call.arguments"] != `{"path":"notes.txt"}` || !strings.Contains(about["gen_ai.tool.call.result"], "remember the milk") {
		t.Errorf("the call: %v", about)
	}
	if strings.Contains(c.all.String(), "AKIA0123") {
		t.Error("a key was told to the collector")
	}
	quiet := newCollector(t)
	if _, errs, code := runWith(t, dir, append(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+quiet.URL+"/v1/traces", "OTEL_METRICS_EXPORTER=none"), "tools", "call", "filesystem.read", `{"path":"notes.txt"}`); code != 0 {
		t.Fatal(errs)
	}
	if len(quiet.spans) != 1 || len(quiet.metrics) != 0 {
		t.Errorf("%d spans and %d metrics where only spans were wanted", len(quiet.spans), len(quiet.metrics))
	}
}

// A server that answers with the trace to which a call of it belongs.
func tracingServer() *mcp.Server {
	s := theirServer()
	s.AddTool(&mcp.Tool{Name: "get_trace", Description: "Get the trace.", InputSchema: json.RawMessage(anything), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			parent, _ := r.Params.Meta["traceparent"].(string)
			state, _ := r.Params.Meta["tracestate"].(string)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: parent + " " + state}}}, nil
		})
	return s
}

const (
	theirTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	theirSpan  = "00f067aa0ba902b7"
)

// A client's trace goes through Helve to the servers behind it, over every
// transport. Where it is told of, Helve's own spans stand between the two.
func TestTelemetryOverMCP(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tracingServer() }, nil))
	t.Cleanup(web.Close)
	dir := folder(t, "app.yaml", fmt.Sprintf(`{"app":{"app_id":"gate","name":"Gate"},"tools":{"modules":{"filesystem":{}},
		"mcp_servers":{"web":{"url":%q,"trusted":true},"pipe":{"command":%q,"args":["tracing"],"trusted":true}}}}`, web.URL, lookPath(t, "upstream")))
	ask := func(s *mcp.ClientSession, name string, args object) string {
		t.Helper()
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Meta: mcp.Meta{"traceparent": "00-" + theirTrace + "-" + theirSpan + "-01", "tracestate": "their=1"}, Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return replyOf(res).Text
	}

	quiet := serve(t, dir, "--app", "app.yaml", "--state", t.TempDir())
	for _, name := range []string{"mcp__web__get_trace", "mcp__pipe__get_trace"} {
		if got := ask(quiet.connect(t, "/mcp/full"), name, nil); got != "00-"+theirTrace+"-"+theirSpan+"-01 their=1" {
			t.Errorf("%s without telemetry: the server was told of the trace %q", name, got)
		}
	}

	c := newCollector(t)
	d := serveEnv(t, dir, c.env(), "--app", "app.yaml", "--state", t.TempDir())
	newest := d.connect(t, "/mcp/full")
	older, err := dialVersion(t, d.URL+"/mcp/full", "2025-06-18", nil)
	if err != nil {
		t.Fatal(err)
	}
	var passed []string
	for _, s := range []*mcp.ClientSession{newest, older} {
		for _, name := range []string{"mcp__web__get_trace", "mcp__pipe__get_trace"} {
			passed = append(passed, ask(s, name, nil))
		}
	}
	ask(newest, "filesystem__read", object{"path": "../x"})
	ask(older, "execute_tool", object{"name": "mcp.web.get_trace"})
	if code := d.stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	c.mu.Lock()
	c.spans = slices.DeleteFunc(c.spans, func(s *traces.Span) bool { return !strings.Contains(s.Name, "tool") || s.Name == "tools/list" })
	c.mu.Unlock()
	want := `SERVER tools/call mcp.web.get_trace network.transport=tcp mcp.protocol.version=NEWEST
  INTERNAL execute_tool mcp.web.get_trace mcp.method.name=tools/call network.transport=tcp
SERVER tools/call mcp.pipe.get_trace network.transport=tcp mcp.protocol.version=NEWEST
  INTERNAL execute_tool mcp.pipe.get_trace mcp.method.name=tools/call network.transport=pipe
SERVER tools/call mcp.web.get_trace network.transport=tcp mcp.protocol.version=2025-06-18
  INTERNAL execute_tool mcp.web.get_trace mcp.method.name=tools/call network.transport=tcp
SERVER tools/call mcp.pipe.get_trace network.transport=tcp mcp.protocol.version=2025-06-18
  INTERNAL execute_tool mcp.pipe.get_trace mcp.method.name=tools/call network.transport=pipe
SERVER tools/call filesystem.read (STATUS_CODE_ERROR tool_error) network.transport=tcp mcp.protocol.version=NEWEST
  INTERNAL execute_tool filesystem.read (STATUS_CODE_ERROR permission_denied)
SERVER tools/call execute_tool network.transport=tcp mcp.protocol.version=2025-06-18
  INTERNAL execute_tool execute_tool
    INTERNAL execute_tool mcp.web.get_trace mcp.method.name=tools/call network.transport=tcp
`
	var lines []string
	for _, line := range strings.SplitAfter(c.tree("mcp.method.name", "network.transport", "mcp.protocol.version"), "\n") {
		if strings.HasPrefix(line, "SERVER") {
			line = strings.Replace(line, " mcp.method.name=tools/call", "", 1)
		} else {
			line, _, _ = strings.Cut(line, " mcp.protocol.version")
			line = strings.TrimSuffix(line, "\n") + "\n"
		}
		lines = append(lines, line)
	}
	got := strings.TrimSuffix(strings.Join(lines, ""), "\n\n") + "\n"
	got = strings.ReplaceAll(got, newest.InitializeResult().ProtocolVersion, "NEWEST")
	if got != want {
		t.Errorf("the spans:\n%s\nwant:\n%s", got, want)
	}
	ours := map[string]bool{}
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) != theirTrace || s.TraceState != "their=1" {
			t.Errorf("%s belongs to the trace %x %s, not to the client's", s.Name, s.TraceId, s.TraceState)
		}
		if s.Kind == traces.Span_SPAN_KIND_SERVER && (hex.EncodeToString(s.ParentSpanId) != theirSpan || s.Flags&0x300 != 0x300) {
			t.Errorf("%s: parent %x, flags %x", s.Name, s.ParentSpanId, s.Flags)
		}
		ours["00-"+theirTrace+"-"+hex.EncodeToString(s.SpanId)+"-01 their=1"] = strings.HasPrefix(s.Name, "execute_tool mcp.")
	}
	for _, p := range passed {
		if !ours[p] {
			t.Errorf("a server was told of the span %q, which is not that of its call", p)
		}
	}
	if got := fmt.Sprint(c.measured("mcp.client.operation.duration", "mcp.method.name", "network.transport")); !strings.Contains(got, "tools/call pipe:2") || !strings.Contains(got, "tools/call tcp:3") {
		t.Errorf("requests to servers measured: %s", got)
	}
	if got := c.measured("mcp.server.operation.duration", "mcp.method.name", "error.type"); got["tools/call "] != 5 || got["tools/call tool_error"] != 1 {
		t.Errorf("requests of clients measured: %v", got)
	}
}

// helve mcp tells what it has to tell when its client leaves.
func TestTelemetryOverStdio(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	dir := folder(t, "a.txt", "hello\n")
	cmd := exec.Command(raced, "mcp", "--present", "full")
	cmd.Dir, cmd.Env = dir, environ(c.env()...)
	s, err := newClient(nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, s, "filesystem__read", object{"path": "a.txt"}); got.IsError {
		t.Fatal(got)
	}
	if got := call(t, s, "filesystem__delete", object{"path": "a.txt"}); got.Code == "" {
		t.Fatalf("nobody was asked: %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the library may have waited already
	got := c.tree("network.transport")
	for _, want := range []string{"SERVER tools/call filesystem.read network.transport=pipe\n  INTERNAL execute_tool filesystem.read\n",
		"SERVER tools/call filesystem.delete (STATUS_CODE_ERROR tool_error) network.transport=pipe\n  INTERNAL execute_tool filesystem.delete (STATUS_CODE_ERROR "} {
		if !strings.Contains(got, want) {
			t.Errorf("the spans:\n%s\nlack\n%s", got, want)
		}
	}
}

// A collector that does not answer, is not there, or is not spoken to, delays
// and fails nothing.
func TestTelemetryFailsNothing(t *testing.T) {
	t.Parallel()
	dir := folder(t, "a.txt", "hello\n")
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	broken := httptest.NewServer(fails(500, `{}`))
	defer broken.Close()
	for name, c := range map[string]struct {
		env  []string
		says string
	}{
		"deaf":     {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + deaf.Addr().String(), "OTEL_EXPORTER_OTLP_TIMEOUT=200"}, "telemetry could not be sent and is lost"},
		"broken":   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + broken.URL}, "500 Internal Server Error"},
		"grpc":     {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL: \\\"grpc\\\" is not spoken; set http/protobuf"},
		"nonsense": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector"}, "OTEL_EXPORTER_OTLP_ENDPOINT is no address; it is like http://127.0.0.1:4318"},
		"headers":  {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS=api-key"}, "a header cannot be read; they are like name=value"},
		"disabled": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + deaf.Addr().String(), "OTEL_SDK_DISABLED=true"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := runWith(t, dir, c.env, "tools", "call", "filesystem.read", `{"path":"a.txt"}`)
			if code != 0 || !strings.Contains(out, "hello") || !strings.Contains(errs, c.says) || c.says == "" && strings.Contains(errs, "telemetry") {
				t.Errorf("exit code %d, %s%s", code, out, errs)
			}
		})
	}
}
