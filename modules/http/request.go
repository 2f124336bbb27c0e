package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/helve-ai/helve/egress"
	"github.com/helve-ai/helve/tool"
)

// build returns the request, and the secrets in it.
func (r *requests) build(ctx context.Context, method string, to target, p payload) (*http.Request, []string, error) {
	u, err := egress.ParseURL(to.URL)
	if err != nil {
		return nil, nil, failure(method, err)
	}
	query, err := values(to.Query, "query")
	if err != nil {
		return nil, nil, err
	}
	if u.RawQuery != "" && query != "" {
		query = "&" + query
	}
	u.RawQuery += query
	body, contentType, err := p.encode()
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, nil, tool.Errorf(tool.CodeValidation, "url: %v", err)
	}
	req.Header.Set("Accept", "*/*")
	req.Header.Set("User-Agent", r.cfg.UserAgent)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for _, name := range slices.Sorted(maps.Keys(to.Headers)) {
		if err := checkHeader(name, to.Headers[name]); err != nil {
			return nil, nil, err
		}
		req.Header.Set(name, to.Headers[name])
	}
	secrets, err := r.authenticate(req)
	return req, secrets, err
}

// encode returns the body and its type; both are empty without a payload.
func (p payload) encode() (io.Reader, string, error) {
	given := 0
	for _, is := range []bool{p.JSON != nil, p.Form != nil, p.Body != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, "", tool.Errorf(tool.CodeValidation, "json, form and body are three ways to say what to send: give one of them")
	case p.JSON != nil:
		return bytes.NewReader(p.JSON), "application/json", nil
	case p.Form != nil:
		form, err := values(p.Form, "form")
		return strings.NewReader(form), "application/x-www-form-urlencoded", err
	case p.Body != nil:
		return strings.NewReader(*p.Body), "text/plain; charset=utf-8", nil
	}
	return nil, "", nil
}

// values encodes parameters as in a query, in the order of their names.
func values(params map[string]json.RawMessage, field string) (string, error) {
	out := url.Values{}
	for name, raw := range params {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			list = []json.RawMessage{raw}
		}
		for _, item := range list {
			text, err := scalar(item)
			if err != nil {
				return "", tool.Errorf(tool.CodeValidation, "%s.%s: %v", field, name, err)
			}
			out.Add(name, text)
		}
	}
	return out.Encode(), nil
}

// scalar returns the text of a JSON text, number or boolean.
func scalar(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	var text string
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
		return "", fmt.Errorf("%s is not a text, a number, a boolean or a list of them", raw)
	case raw[0] == '"':
		err := json.Unmarshal(raw, &text)
		return text, err
	}
	return string(raw), nil
}

// transportHeaders are those that the connection, the URL or the body decides.
var transportHeaders = []string{
	"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect", "keep-alive",
	"accept-encoding", "http2-settings", "via", "forwarded", "x-real-ip",
	"x-http-method-override", "x-http-method", "x-method-override",
	"x-original-url", "x-rewrite-url", "x-original-host", "x-host",
}

// secretWords mark the names of headers that carry credentials.
var secretWords = []string{
	"authorization", "authentication", "auth", "cookie", "cookie2", "token", "secret", "password", "passwd",
	"credential", "credentials", "session", "sessionid", "apikey", "signature", "jwt",
}

// checkHeader refuses headers that are not the model's to set.
func checkHeader(name, value string) error {
	lower := strings.ReplaceAll(strings.ToLower(name), "_", "-") // many servers take one for the other
	words := strings.Split(lower, "-")
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return tool.Errorf(tool.CodeValidation, "headers: %q is not a header's name", name)
	case !httpguts.ValidHeaderFieldValue(value):
		return tool.Errorf(tool.CodeValidation, "headers.%s: the value has characters that a header cannot hold: remove line breaks and control characters", name)
	case slices.Contains(transportHeaders, lower) || strings.HasPrefix(lower, "proxy-") || strings.HasPrefix(lower, "x-forwarded-") || strings.HasPrefix(lower, "sec-"):
		return tool.Errorf(tool.CodePermission, "headers.%s: this header is set by the transport, not by the call: leave it out", name)
	case slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, w) }) || isKey(words):
		return tool.Errorf(tool.CodePermission, "headers.%s: credentials are not taken from a call; the operator declares them for a host under http.credentials", name)
	}
	return nil
}

// isKey reports whether a header is named as a key is. Idempotency keys are
// none that open anything.
func isKey(words []string) bool {
	n := len(words)
	return n > 0 && (words[n-1] == "key" || words[n-1] == "keys") && !slices.Contains(words, "idempotency")
}

// authenticate adds what the operator declared for the request's origin.
func (r *requests) authenticate(req *http.Request) (secrets []string, err error) {
	for _, c := range r.cfg.Credentials {
		u, err := egress.ParseURL(c.Origin)
		if err != nil || origin(u) != origin(req.URL) {
			continue
		}
		if r.host.Secret == nil {
			return nil, tool.Errorf(tool.CodePermission, "the credentials of %s cannot be had: the app has no secrets", c.Origin)
		}
		secret, err := r.host.Secret(c.Secret)
		if err != nil {
			return nil, tool.Errorf(tool.CodePermission, "the secret %s for %s cannot be had: %v", c.Secret, c.Origin, err)
		}
		if secret == "" || !httpguts.ValidHeaderFieldValue(secret) {
			return nil, tool.Errorf(tool.CodePermission, "the secret %s for %s is empty or cannot stand in a header", c.Secret, c.Origin)
		}
		header := c.Header
		if header == "" {
			header = "Authorization"
		}
		req.Header.Set(header, c.Prefix+secret)
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port)
}

// failure returns err, an egress error, in the words of tools.
func failure(method string, err error) *tool.Error {
	e := egress.AsError(err)
	out := tool.Errorf(tool.Code(e.Code), "%v", e)
	out.Retryable = e.Retryable
	var op *net.OpError
	var dns *net.DNSError
	sent := !(errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial")
	if e.Retryable && sent && (method == http.MethodPost || method == http.MethodPatch) {
		out.Message += "; whether it had an effect is unknown, so look before sending it again"
		out.Retryable = false
	}
	return out
}
