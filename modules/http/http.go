// Package http is the module of tools that send single HTTP requests and show the answers as they come.
package http

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/helve-ai/helve/egress"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/tool"
)

// Module is the http module.
var Module = module.New("http", "Send HTTP requests to public hosts.",
	Config{Timeout: 10, MaxBody: 1 << 20, UserAgent: "helve"}, open)

// maxSeconds is the longest a call may ask to wait.
const maxSeconds = 120

// Config configures the module.
type Config struct {
	Timeout     float64      `json:"timeout" min:"1" max:"120" jsonschema:"seconds that a request may take when the call does not say"`
	MaxBody     int64        `json:"max_body" min:"1" max:"10485760" jsonschema:"bytes of an answer's body that are read; the rest is cut, and the cut is marked"`
	UserAgent   string       `json:"user_agent" jsonschema:"the User-Agent of requests that set none"`
	Credentials []Credential `json:"credentials" jsonschema:"what identifies the app to hosts; the model never sees it"`
}

// A Credential is a secret that goes along with every request to one origin,
// and to no other, redirects included.
type Credential struct {
	Origin string `json:"origin" jsonschema:"scheme, host and port, such as https://api.example.com"`
	Header string `json:"header,omitempty" jsonschema:"the header that carries it; Authorization if absent"`
	Prefix string `json:"prefix,omitempty" jsonschema:"what stands before the secret, such as \"Bearer \""`
	Secret string `json:"secret" jsonschema:"the name of the secret, not its value"`
}

// Validate reports the first setting that cannot be meant.
func (c Config) Validate() error {
	switch {
	case c.Timeout <= 0 || c.Timeout > maxSeconds:
		return fmt.Errorf("timeout: %v is not between 0 and %d seconds", c.Timeout, maxSeconds)
	case c.MaxBody <= 0 || c.MaxBody > egress.DefaultMaxBody:
		return fmt.Errorf("max_body: %d is not between 1 and %d bytes", c.MaxBody, egress.DefaultMaxBody)
	case !httpguts.ValidHeaderFieldValue(c.UserAgent):
		return fmt.Errorf("user_agent: %q cannot stand in a header", c.UserAgent)
	}
	for i, cred := range c.Credentials {
		if err := cred.validate(); err != nil {
			return fmt.Errorf("credentials[%d]: %w", i, err)
		}
	}
	return nil
}

func (c Credential) validate() error {
	u, err := egress.ParseURL(c.Origin)
	switch {
	case err != nil:
		return fmt.Errorf("origin: %w", err)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("origin: %q has more than scheme, host and port: remove the rest", c.Origin)
	case c.Header != "" && !httpguts.ValidHeaderFieldName(c.Header):
		return fmt.Errorf("header: %q is not a header's name", c.Header)
	case !httpguts.ValidHeaderFieldValue(c.Prefix):
		return fmt.Errorf("prefix: %q cannot stand in a header", c.Prefix)
	case c.Secret == "":
		return fmt.Errorf("secret: the name of the secret is missing")
	}
	return nil
}

// requests is the open module.
type requests struct {
	host *module.Host
	cfg  Config
}

func open(_ context.Context, h *module.Host, c Config) (*module.Toolset, error) {
	r := &requests{h, c}
	return &module.Toolset{Tools: []*tool.Tool{
		r.reading("GET", "Fetch a URL by HTTP GET and return the status, the main headers and the body as text.",
			"http_get", "HttpGet", "GET request", "download a URL", "requête GET", "récupérer une URL", "HTTP-Anfrage", "URL abrufen",
			"petición GET", "obtener una URL", "richiesta GET", "requisição GET", "GET-verzoek", "żądanie GET", "запрос GET", "GET isteği",
			"طلب GET", "permintaan GET", "GETリクエスト", "GET 요청", "获取网址", "GET-anmodning"),
		r.reading("HEAD", "Ask by HTTP HEAD for the status and all headers of a URL, without its body.",
			"http_head", "HttpHead", "HEAD request", "response headers", "en-têtes HTTP", "HTTP-Header abrufen", "cabeceras HTTP", "响应头", "заголовки HTTP"),
		r.reading("OPTIONS", "Ask by HTTP OPTIONS which methods a URL allows.",
			"http_options", "HttpOptions", "OPTIONS request"),
		r.sending("POST", tool.Writes, "Send data to a URL by HTTP POST and return the answer.",
			"http_post", "HttpPost", "POST request", "submit a form", "call a REST API", "requête POST", "envoyer des données", "POST-Anfrage", "Daten senden",
			"petición POST", "enviar datos", "richiesta POST", "requisição POST", "запрос POST", "POSTリクエスト", "POST 요청", "提交数据"),
		r.sending("PUT", tool.Writes, "Store or replace the resource at a URL by HTTP PUT and return the answer.",
			"http_put", "HttpPut", "PUT request", "requête PUT", "PUT-Anfrage", "petición PUT", "запрос PUT", "PUTリクエスト"),
		r.sending("PATCH", tool.Writes, "Change parts of the resource at a URL by HTTP PATCH and return the answer.",
			"http_patch", "HttpPatch", "PATCH request", "requête PATCH", "PATCH-Anfrage", "petición PATCH", "запрос PATCH", "PATCHリクエスト"),
		r.sending("DELETE", tool.Destroys, "Delete the resource at a URL by HTTP DELETE and return the answer.",
			"http_delete", "HttpDelete", "DELETE request", "requête DELETE", "DELETE-Anfrage", "petición DELETE", "запрос DELETE", "DELETEリクエスト"),
	}}, nil
}

// target is what every request is made of.
type target struct {
	URL     string                     `json:"url" role:"url" jsonschema:"absolute http or https URL of a public host"`
	Query   map[string]json.RawMessage `json:"query,omitempty" jsonschema:"parameters to add to the URL: texts, numbers, booleans, or lists of them"`
	Headers map[string]string          `json:"headers,omitempty" jsonschema:"request headers; credentials are not accepted here"`
	Timeout float64                    `json:"timeout,omitempty" min:"0" max:"120" jsonschema:"seconds before giving up"`
}

// payload is what a request may send; at most one of its fields is given.
type payload struct {
	JSON json.RawMessage            `json:"json,omitempty" jsonschema:"JSON value to send as the body"`
	Form map[string]json.RawMessage `json:"form,omitempty" jsonschema:"fields of a form to send as the body"`
	Body *string                    `json:"body,omitempty" jsonschema:"text to send as the body; state its Content-Type in headers"`
}

type sendInput struct {
	target
	payload
}

const help = `Any status is a result, 404 and 500 included: read the first line. Redirects are followed, ten at most; the final URL is shown. Only public hosts can be reached. The answer's body is text as received (compression undone, character set turned into UTF-8), without what only tracks readers in the addresses of pages and data (utm_source and the like), and without data: URIs; a binary body is named by type, size and SHA-256 instead of being shown; a body beyond the limit is cut, and the cut is marked.`

// define returns what the definitions have in common.
func define(method string, effect tool.Effect, description string, aliases []string) tool.Definition {
	return tool.Definition{
		Name: "http." + strings.ToLower(method), Description: description, Help: help,
		Effect: effect, Category: tool.Network, Needs: tool.NeedsNetwork,
		Tags: []string{"http", "https", "rest", "api", "url", "request", "web"}, Aliases: aliases,
		Timeout: (maxSeconds + 5) * time.Second,
	}
}

func (r *requests) reading(method, description string, aliases ...string) *tool.Tool {
	def := define(method, tool.Reads, description, aliases)
	def.ParallelSafe = true
	def.Examples = []json.RawMessage{json.RawMessage(`{"url": "https://example.com/"}`)}
	return tool.Summarizing(tool.NewFor(def, func(ctx context.Context, c *tool.Call, in target) (string, error) {
		return r.send(ctx, c, method, in, payload{})
	}), summarize)
}

func (r *requests) sending(method string, effect tool.Effect, description string, aliases ...string) *tool.Tool {
	def := define(method, effect, description, aliases)
	def.SideEffects = []string{"the arguments leave this machine", "the server may change its state"}
	def.Examples = []json.RawMessage{json.RawMessage(`{"url": "https://api.example.com/items/1", "json": {"name": "axe"}}`)}
	if method == http.MethodDelete {
		def.Examples = []json.RawMessage{json.RawMessage(`{"url": "https://api.example.com/items/1"}`)}
	}
	return tool.Summarizing(tool.NewFor(def, func(ctx context.Context, c *tool.Call, in sendInput) (string, error) {
		return r.send(ctx, c, method, in.target, in.payload)
	}), summarize)
}

// send makes the request and returns the answer for the model.
func (r *requests) send(ctx context.Context, c *tool.Call, method string, to target, p payload) (string, error) {
	if r.host.HTTP == nil {
		return "", tool.Errorf(tool.CodePermission, "this app has no access to the network")
	}
	req, secrets, err := r.build(ctx, method, to, p)
	if err != nil {
		return "", err
	}
	if len(to.Query) > 0 && c.Reach != nil { // which the rules have not seen
		if err := c.Reach(ctx, req.URL.String()); err != nil {
			return "", failure(method, refused(req.URL, "", err))
		}
	}
	client := *r.host.HTTP // a copy, which obeys the same policy
	client.CheckRedirect = checked(ctx, c, client.CheckRedirect)
	client.Timeout = seconds(to.Timeout, r.cfg.Timeout)
	resp, err := egress.Do(&client, req, r.cfg.MaxBody)
	if err != nil {
		return "", failure(method, err)
	}
	return hide(render(method, req.URL.String(), resp), secrets), nil
}

// checked returns how redirects are judged: as by next, and by the rules.
func checked(ctx context.Context, c *tool.Call, next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if next != nil {
			if err := next(req, via); err != nil {
				return err
			}
		}
		if c.Reach == nil {
			return nil
		}
		if err := c.Reach(ctx, req.URL.String()); err != nil {
			return refused(req.URL, "the redirect is not followed: ", err)
		}
		return nil
	}
}

func refused(u *url.URL, what string, err error) *egress.Error {
	return &egress.Error{URL: u.Redacted(), Code: egress.CodeRefused, Reason: what + err.Error()}
}

func seconds(asked, otherwise float64) time.Duration {
	if asked <= 0 {
		asked = otherwise
	}
	return time.Duration(min(asked, maxSeconds) * float64(time.Second))
}

// hide takes secrets out of an answer: some servers repeat what they were sent.
func hide(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= 4 { // less would tear the answer apart, and guards nothing
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return text
}
