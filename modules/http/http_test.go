package http_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/helve-ai/helve/egress"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	httpmodule "github.com/helve-ai/helve/modules/http"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// nowhere resolves no name, so that no test leaves the machine.
type nowhere struct{}

func (nowhere) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// serve starts a server on the loopback interface and returns its host:port.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// open returns a pipeline with the module's tools, which may reach the hosts.
func open(t *testing.T, config string, hosts ...string) *pipeline.Executor {
	t.Helper()
	client := egress.Client(egress.Policy{AllowHosts: hosts, Resolver: nowhere{}})
	t.Cleanup(client.CloseIdleConnections)
	ts, err := httpmodule.Module.Open(t.Context(), &module.Host{
		Log: slog.New(slog.DiscardHandler), HTTP: client,
		Secret: func(name string) (string, error) {
			if name == "api_token" {
				return "s3cr3t-value", nil
			}
			return "", errors.New("there is no secret of that name")
		},
	}, json.RawMessage(config))
	if err != nil {
		t.Fatal(err)
	}
	var reg tool.Registry
	if err := reg.Add(ts.Tools...); err != nil {
		t.Fatal(err)
	}
	return pipeline.New(&reg)
}

// call runs a tool with arguments made of a format.
func call(t *testing.T, ex *pipeline.Executor, name, format string, args ...any) *tool.Result {
	t.Helper()
	res, err := ex.Do(t.Context(), &tool.Call{Name: name, Args: json.RawMessage(fmt.Sprintf(format, args...))})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// echo answers with the request as it arrived.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Set-Cookie", "session=abc")
	w.Header().Set("X-Method", r.Method)
	w.Header().Set("Date", "")
	r.Header.Write(w)
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s\n%s", r.Method, r.URL.RequestURI(), body)
}

func TestVerbs(t *testing.T) {
	addr := serve(t, echo)
	ex := open(t, "", addr)
	for _, test := range []struct {
		name, args string
		want       []string
	}{
		{"http.get", `"query":{"q":"a b","n":12345678901234567890,"yes":true,"list":["x",2]}`,
			[]string{"200 OK\nContent-Type: text/plain\n\n", "GET /p?z=1&list=x&list=2&n=12345678901234567890&q=a+b&yes=true\n", "User-Agent: helve"}},
		{"http.get", `"headers":{"accept":"text/html","User-Agent":"me","X-Plain":"y","Idempotency-Key":"k"}`,
			[]string{"Accept: text/html", "User-Agent: me", "X-Plain: y", "Idempotency-Key: k"}},
		{"http.options", `"timeout":5`, []string{"OPTIONS /p?z=1", "X-Method: OPTIONS"}},
		{"http.post", `"json":{"a":[1,null]}`, []string{"POST /p?z=1", "Content-Type: application/json", `{"a":[1,null]}`}},
		{"http.post", `"form":{"b":"ü","a":1}`, []string{"application/x-www-form-urlencoded", "\na=1&b=%C3%BC"}},
		{"http.put", `"body":"text","headers":{"Content-Type":"text/markdown"}`, []string{"PUT /p", "Content-Type: text/markdown\r\n", "\ntext"}},
		{"http.patch", `"body":""`, []string{"PATCH /p", "text/plain; charset=utf-8"}},
		{"http.delete", `"timeout":1`, []string{"DELETE /p"}},
		{"http_get", `"timeout":1`, []string{"GET /p"}},
		{"HttpPost", `"timeout":1`, []string{"POST /p"}},
		{"http__put", `"timeout":1`, []string{"PUT /p"}},
	} {
		res := call(t, ex, test.name, `{"url":"http://%s/p?z=1#part",%s}`, addr, test.args)
		if res.Err != nil {
			t.Errorf("%s %s: %v", test.name, test.args, res.Err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(res.JoinText(), want) {
				t.Errorf("%s %s: %q is not in\n%s", test.name, test.args, want, res.JoinText())
			}
		}
		if strings.Contains(res.JoinText(), "session=abc") {
			t.Errorf("%s: the answer shows a cookie", test.name)
		}
	}
	res := call(t, ex, "http.head", `{"url":"http://%s/p"}`, addr)
	if got := res.JoinText(); !strings.HasPrefix(got, "200 OK\n") || !strings.Contains(got, "X-Method: HEAD") || strings.Contains(got, "[empty body]") {
		t.Errorf("http.head: %q", got)
	}
}

func TestEffects(t *testing.T) {
	tools, err := httpmodule.Module.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]tool.Effect{
		"http.get": tool.Reads, "http.head": tool.Reads, "http.options": tool.Reads,
		"http.post": tool.Writes, "http.put": tool.Writes, "http.patch": tool.Writes, "http.delete": tool.Destroys,
	}
	for _, d := range tools {
		if effect, ok := want[d.Name]; !ok || d.Effect != effect || !d.Needs.Has(tool.NeedsNetwork) || d.GroupName() != tool.GroupWeb {
			t.Errorf("%s: effect %v, needs %v, group %s", d.Name, d.Effect, d.Needs, d.GroupName())
		}
		if values, err := d.Input.Values([]byte(`{"url":"http://x/"}`)); err != nil || len(values) != 1 || values[0].Role != "url" {
			t.Errorf("%s: the guards see %v, %v", d.Name, values, err)
		}
		for _, example := range d.Examples {
			if problems := d.Input.Validate(example); len(problems) > 0 {
				t.Errorf("%s: its example %s is wrong: %v", d.Name, example, problems)
			}
		}
		delete(want, d.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestAnswers(t *testing.T) {
	var headers http.Header
	var status int
	var sent []byte
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "/here", http.StatusFound)
			return
		}
		for name, v := range headers {
			w.Header()[name] = v
		}
		w.WriteHeader(status)
		w.Write(sent)
	})
	ex := open(t, `{"max_body": 4096}`, addr)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(bytes.Repeat([]byte("x"), 1<<20))
	z.Close()
	html := "<html><body>héllo</body></html>"
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	for _, test := range []struct {
		what, contentType, encoding string
		status                      int
		body                        string
		want                        string
	}{
		{"HTML stays as it is", "text/html", "", 200, html, "200 OK\nContent-Type: text/html\n\n" + html},
		{"a failure is an answer", "text/plain", "", 404, "nothing here", "404 Not Found\nContent-Type: text/plain\n\nnothing here"},
		{"a server's failure too", "text/plain", "", 503, "later", "503 Service Unavailable\nContent-Type: text/plain\n\nlater"},
		{"an empty body", "text/plain", "", 200, "", "[empty body]"},
		{"short JSON is indented", "application/json", "", 200, `{"a":[1,"<b>"]}`, "{\n  \"a\": [\n    1,\n    \"<b>\"\n  ]\n}"},
		{"long JSON is not", "application/vnd.x+json", "", 200, `["` + strings.Repeat("a", 3000) + `"]`, "\n\n[\"aaa"},
		{"broken JSON is shown", "application/json", "", 200, `{"a":`, "\n\n{\"a\":"},
		{"another character set", "text/html; charset=iso-8859-1", "", 200, "h\xe9llo", "héllo"},
		{"one stated in the page", "text/html", "", 200, "<meta charset=shift_jis>\x93\xfa\x96\x7b", "日本"},
		{"one stated nowhere", "text/plain", "", 200, "h\xe9llo", "héllo"},
		{"a byte order mark", "text/plain; charset=utf-8", "", 200, "\ufeffhello", "\n\nhello"},
		{"UTF-16", "text/plain; charset=utf-16le", "", 200, "h\x00i\x00", "\n\nhi"},
		{"invalid bytes", "text/plain; charset=utf-8", "", 200, "a\xffb", "a\uFFFDb"},
		{"text of no known type", "application/x-unknown", "", 200, "plain", "\n\nplain"},
		{"a picture", "image/png", "", 200, png,
			fmt.Sprintf("[binary body, not shown: image/png, 16 bytes, SHA-256 %x]", sha256.Sum256([]byte(png)))},
		{"binary that calls itself text", "text/plain", "", 200, "a\x00b\x01c", "[binary body, not shown: text/plain, 5 bytes"},
		{"binary of no known type", "application/octet-stream", "", 200, "\xff\xfe\x00\x01", "[binary body, not shown: application/octet-stream, 4 bytes"},
		{"a long body", "text/plain; charset=utf-8", "", 200, strings.Repeat("ä", 2047) + "aää",
			"äa\n\n[the body is cut after 4096 bytes: ask for less, or for a part of it with a Range header]"},
		{"a bomb", "text/plain", "gzip", 200, zipped.String(), "xxx\n\n[the body is cut after 4096 bytes"},
		{"a long binary body", "image/png", "", 200, strings.Repeat(png, 500), "image/png, more than 4096 bytes"},
	} {
		headers = http.Header{"Content-Type": {test.contentType}}
		if test.encoding != "" {
			headers.Set("Content-Encoding", test.encoding)
		}
		status, sent = test.status, []byte(test.body)
		res := call(t, ex, "http.get", `{"url":"http://%s/"}`, addr)
		if got := res.JoinText(); res.Err != nil || !strings.Contains(got, test.want) {
			t.Errorf("%s: %v, %q is not in\n%.300q", test.what, res.Err, test.want, got)
		}
	}
	status, headers = 200, nil
	res := call(t, ex, "http.get", `{"url":"http://%s/away"}`, addr)
	if want := "URL: http://" + addr + "/here\n"; res.Err != nil || !strings.Contains(res.JoinText(), want) {
		t.Errorf("after a redirect: %v, %q is not in\n%s", res.Err, want, res.JoinText())
	}
}

func TestRefusals(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/in" {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
			return
		}
		t.Errorf("the server was reached: %s", r.URL)
	})
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("an undeclared server was reached") })
	ex := open(t, "", addr)
	for _, test := range []struct {
		name, args, want string
		code             tool.Code
	}{
		{"http.get", `{"url":"http://` + other + `/"}`, "loopback", tool.CodePermission},
		{"http.post", `{"url":"http://` + other + `/","json":1}`, "loopback", tool.CodePermission},
		{"http.get", `{"url":"http://localhost/"}`, "local name", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/in"}`, "metadata", tool.CodePermission},
		{"http.get", `{"url":"http://2130706433/"}`, "four decimal numbers", tool.CodeValidation},
		{"http.get", `{"url":" http://ADDR/"}`, "space", tool.CodeValidation},
		{"http.get", `{"url":"file:///etc/passwd"}`, "only http and https", tool.CodeValidation},
		{"http.get", `{"url":"http://a:b@ADDR/"}`, "user name", tool.CodeValidation},
		{"http.get", `{"url":"http://ADDR/","headers":{"Authorization":"Bearer x"}}`, "headers.Authorization: credentials", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/","headers":{"cookie":"a=b"}}`, "credentials", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/","headers":{"X-Api-Key":"k"}}`, "credentials", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/","headers":{"X-Auth-Token":"k"}}`, "credentials", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/","headers":{"Host":"x"}}`, "set by the transport", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/","headers":{"X-HTTP-Method-Override":"DELETE"}}`, "set by the transport", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/","headers":{"X_HTTP_Method_Override":"DELETE"}}`, "set by the transport", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/","headers":{"X-Original-URL":"/admin"}}`, "set by the transport", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/","headers":{"Proxy-Connection":"x"}}`, "set by the transport", tool.CodePermission},
		{"http.get", `{"url":"http://ADDR/","headers":{"X-A":"b\r\nCookie: c"}}`, "headers.X-A: the value", tool.CodeValidation},
		{"http.get", `{"url":"http://ADDR/","headers":{"X A":"b"}}`, "not a header's name", tool.CodeValidation},
		{"http.get", `{"url":"http://ADDR/","query":{"a":{"b":1}}}`, "query.a", tool.CodeValidation},
		{"http.post", `{"url":"http://ADDR/","form":{"a":[[1]]}}`, "form.a", tool.CodeValidation},
		{"http.post", `{"url":"http://ADDR/","json":1,"body":"x"}`, "give one of them", tool.CodeValidation},
		{"http.get", `{"url":"http://ADDR/","body":"x"}`, "body", tool.CodeValidation},
		{"http.get", `{"url":"http://ADDR/","timeout":121}`, "120", tool.CodeValidation},
		{"http.get", `{"url":"http://nowhere.example/"}`, "there is no host", tool.CodeExternal},
	} {
		res := call(t, ex, test.name, "%s", strings.ReplaceAll(test.args, "ADDR", addr))
		if res.Err == nil || res.Err.Code != test.code || res.Err.Retryable && test.code != tool.CodeValidation || !strings.Contains(res.Err.Message, test.want) {
			t.Errorf("%s %s: %+v, want %s with %q in it", test.name, test.args, res.Err, test.code, test.want)
		}
	}
}

// A request that may have had an effect is not offered for a second try.
func TestRetryable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	vacant := listener.Addr().String()
	listener.Close()
	mute := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/close" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	})
	ex := open(t, "", vacant, mute)
	for _, test := range []struct {
		name, url string
		code      tool.Code
		retryable bool
	}{
		{"http.get", vacant, tool.CodeExternal, true},
		{"http.post", vacant, tool.CodeExternal, true}, // never sent
		{"http.get", mute + "/close", tool.CodeExternal, true},
		{"http.post", mute + "/close", tool.CodeExternal, false},
		{"http.get", mute + "/", tool.CodeTimeout, true},
		{"http.put", mute + "/", tool.CodeTimeout, true},
		{"http.patch", mute + "/", tool.CodeTimeout, false},
	} {
		res := call(t, ex, test.name, `{"url":"http://%s","timeout":0.05}`, test.url)
		if res.Err == nil || res.Err.Code != test.code || res.Err.Retryable != test.retryable {
			t.Errorf("%s %s: %+v, want %s, retryable %t", test.name, test.url, res.Err, test.code, test.retryable)
		}
		if told := res.Err != nil && strings.Contains(res.Err.Message, "whether it had an effect is unknown"); told == test.retryable {
			t.Errorf("%s %s: %+v", test.name, test.url, res.Err)
		}
	}
}

func TestCredentials(t *testing.T) {
	away := serve(t, echo)
	home := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://"+away+"/", http.StatusFound)
			return
		}
		if r.Header.Get("Authorization") == "Bearer s3cr3t-value" && r.Header.Get("X-Second") == "s3cr3t-value" {
			fmt.Fprint(w, "known; ")
		}
		echo(w, r)
	})
	ex := open(t, `{"credentials":[
		{"origin":"http://`+home+`","prefix":"Bearer ","secret":"api_token"},
		{"origin":"http://`+home+`/","header":"X-Second","secret":"api_token"}]}`, home, away)
	res := call(t, ex, "http.get", `{"url":"http://%s/"}`, home)
	if got := res.JoinText(); res.Err != nil || !strings.Contains(got, "known") || strings.Contains(got, "s3cr3t") || !strings.Contains(got, "Bearer [redacted]") {
		t.Errorf("to the declared origin: %v\n%s", res.Err, got)
	}
	for _, url := range []string{away + "/", home + "/away"} {
		res := call(t, ex, "http.get", `{"url":"http://%s"}`, url)
		if got := res.JoinText(); res.Err != nil || strings.Contains(got, "Authorization") || strings.Contains(got, "X-Second") {
			t.Errorf("to %s: %v\n%s", url, res.Err, got)
		}
	}
	ex = open(t, `{"credentials":[{"origin":"http://`+home+`","secret":"gone"}]}`, home)
	res = call(t, ex, "http.get", `{"url":"http://%s/"}`, home)
	if res.Err == nil || res.Err.Code != tool.CodePermission || !strings.Contains(res.Err.Message, "the secret gone") {
		t.Errorf("without the secret: %+v", res.Err)
	}
}

func TestConfigErrors(t *testing.T) {
	for config, want := range map[string]string{
		`{"timeout":0}`:                        "timeout: 0 is not between",
		`{"timeout":500}`:                      "timeout: 500 is not between",
		`{"max_body":99999999999}`:             "max_body: 99999999999 is not between",
		`{"user_agent":"a\nb"}`:                "user_agent",
		`{"proxy":"x"}`:                        `unknown field "proxy"`,
		`{"credentials":[{"origin":"a.com"}]}`: "credentials[0]: origin: a.com: the URL is not absolute",
		`{"credentials":[{"origin":"https://a.com/x","secret":"s"}]}`:               "remove the rest",
		`{"credentials":[{"origin":"https://a.com"}]}`:                              "the name of the secret is missing",
		`{"credentials":[{"origin":"https://a.com","secret":"s","header":"a b"}]}`:  "not a header's name",
		`{"credentials":[{"origin":"https://a.com","secret":"s","prefix":"a\nb"}]}`: "prefix",
	} {
		_, err := httpmodule.Module.Open(t.Context(), &module.Host{}, json.RawMessage(config))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", config, err, want)
		}
	}
	ts, err := httpmodule.Module.Open(t.Context(), &module.Host{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ts.Tools[0].Handle(t.Context(), &tool.Call{Args: json.RawMessage(`{"url":"https://example.com/"}`)}); tool.AsError(err).Code != tool.CodePermission {
		t.Errorf("without a network: %v", err)
	}
}

// The rules hold for the URL with its parameters, and for every redirect.
func TestRulesSeeWhereRequestsLead(t *testing.T) {
	var asked []string
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI())
		if r.URL.Path == "/hop" {
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
			return
		}
		fmt.Fprint(w, "here")
	})
	client := egress.Client(egress.Policy{AllowHosts: []string{addr}, Resolver: nowhere{}})
	t.Cleanup(client.CloseIdleConnections)
	ts, err := httpmodule.Module.Open(t.Context(), &module.Host{Log: slog.New(slog.DiscardHandler), HTTP: client}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var reg tool.Registry
	if err := reg.Add(ts.Tools...); err != nil {
		t.Fatal(err)
	}
	rule := func(text string) *guard.Rule {
		r, err := guard.ParseRule(strings.ReplaceAll(text, "ADDR", addr))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	rules := guard.Rules{
		Deny:    []*guard.Rule{rule(`http.*(url: "http://ADDR/secret**")`)},
		Approve: []*guard.Rule{rule(`http.*(url: "http://ADDR/ask**")`)},
		Grant:   []*guard.Rule{rule(`http.post(url: "http://ADDR/*")`)},
	}
	ex := pipeline.New(&reg, guard.Standard(guard.Options{
		Tools: &reg, Policies: []guard.Policy{rules.Judge}, Egress: egress.Policy{AllowHosts: []string{addr}, Resolver: nowhere{}},
		Approver: func(context.Context, guard.Question) (guard.Answer, error) { return guard.Answer{Approved: true}, nil },
	})...)
	for _, test := range []struct{ name, args, want string }{
		{"http.get", `{"url":"http://ADDR/hop?to=/fine"}`, "here"},
		{"http.get", `{"url":"http://ADDR/hop?to=/secret"}`, "the redirect is not followed: it is not allowed: denied by the rule"},
		{"http.get", `{"url":"http://ADDR/hop?to=/hop%3Fto=/secret/x"}`, "not allowed: denied by the rule"},
		{"http.get", `{"url":"http://ADDR/hop","query":{"to":"/%73ecret"}}`, "not allowed: denied by the rule"},
		{"http.get", `{"url":"http://ADDR/hop?to=/ask"}`, "nobody was asked about it"},
		{"http.get", `{"url":"http://ADDR/ask?a=1"}`, "here"}, // which is approved
		{"http.get", `{"url":"http://ADDR/ask","query":{"a":1}}`, "here"},
		{"http.get", `{"url":"http://ADDR/hop?to=/ask/2"}`, "nobody was asked about it"},
		{"http.post", `{"url":"http://ADDR/x","body":""}`, "here"},
		{"http.post", `{"url":"http://ADDR/x","query":{"q":"a/b"}}`, "here"},
		{"http.post", `{"url":"http://ADDR/hop","query":{"to":"/deep/er"}}`, "nobody was asked about it"}, // not by the grant
	} {
		res := call(t, ex, test.name, "%s", strings.ReplaceAll(test.args, "ADDR", addr))
		text := res.JoinText()
		if res.Err != nil {
			text = res.Err.Error()
		}
		if !strings.Contains(text, test.want) {
			t.Errorf("%s %s: %s", test.name, test.args, text)
		}
	}
	for _, a := range asked {
		if strings.Contains(a, "secret") && !strings.Contains(a, "hop") || strings.HasPrefix(a, "GET /ask/2") || strings.Contains(a, "/deep/er") && !strings.Contains(a, "hop") {
			t.Errorf("the server was sent %s", a)
		}
	}
}
