package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/helve-ai/helve/llm"
)

// failed returns what a failure is to those who asked: an *llm.Error, or why
// the context ended.
func (c *Client) failed(ctx context.Context, err error, begun bool) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errIdle) {
		return cause
	} else if cause != nil {
		err = cause
	}
	var e *llm.Error
	if !errors.As(err, &e) {
		e = c.broken(err)
	}
	e.Provider, e.Begun = c.Provider, begun
	e.Message = c.hide(clip(e.Message, 2000))
	return e
}

// broken says what became of a connection.
func (c *Client) broken(err error) *llm.Error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, which may hold what is secret
	}
	e := &llm.Error{Err: err, Temporary: true, Message: err.Error()}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = fmt.Sprintf("nothing answers at %s; is it running?", c.host())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Message = ErrCut.Error()
	}
	return e
}

func (c *Client) host() string {
	if u, err := url.Parse(c.BaseURL); err == nil {
		return u.Host
	}
	return "base_url"
}

// hide takes the key out of a text.
func (c *Client) hide(text string) string {
	if len(c.Key) < 6 {
		return text
	}
	return strings.ReplaceAll(text, c.Key, "[key]")
}

// refusal reads an answer that is an error.
func (c *Client) refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what there is of it will do
	e := ReadError(body)
	e.Status = resp.StatusCode
	e.Err = nil
	if e.Message == "" && !strings.Contains(resp.Header.Get("Content-Type"), "html") {
		e.Message = strings.TrimSpace(string(body))
	}
	if after := retryAfter(resp.Header); after > 0 {
		e.RetryAfter = after
	}
	classify(e)
	if resp.Header.Get("X-Should-Retry") == "false" {
		e.Temporary = false
	}
	c.advise(e, resp)
	return e
}

// advise adds what can be done.
func (c *Client) advise(e *llm.Error, resp *http.Response) {
	hint := ""
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden,
		e.Status == http.StatusBadRequest && wrongKey.MatchString(e.Message):
		hint = c.KeyHint
	case e.Status == http.StatusNotFound:
		hint = fmt.Sprintf("the model %q or the address %s is not known there", c.Model, shown(resp.Request.URL))
	case e.Status/100 == 3:
		hint = "it sends elsewhere, which is not followed: correct base_url"
	}
	if hint == "" {
		return
	}
	e.Message = strings.TrimPrefix(clip(e.Message, 1000)+"; "+hint, "; ")
}

// wrongKey is what Gemini says of one, with another status than all others.
var wrongKey = regexp.MustCompile(`(?i)api key (not valid|expired|not found)`)

// ReadError reads what providers say of an error: in any of the forms that
// they have. What it cannot read leaves the error empty.
func ReadError(body []byte) *llm.Error {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		problem
	}
	e := &llm.Error{}
	if !json.Valid(body) {
		return e
	}
	_ = json.Unmarshal(body, &outer) // members of other types than these stay empty
	if text, ok := asText(outer.Error); ok {
		e.Message, e.Code = text, outer.code()
		classify(e)
		return e
	}
	var inner struct {
		Message json.RawMessage `json:"message"`
		problem
	}
	if len(outer.Error) > 0 && outer.Error[0] == '{' {
		_ = json.Unmarshal(outer.Error, &inner)
		outer.Message, outer.problem = inner.Message, inner.problem
	}
	text, ok := asText(outer.Message)
	if !ok {
		text = string(outer.Message)
	}
	if text == "" {
		if text, ok = asText(outer.Detail); !ok {
			text = string(outer.Detail)
		}
	}
	e.Message, e.Code, e.RetryAfter = text, outer.code(), outer.delay()
	classify(e)
	return e
}

// A problem is what the forms have in common.
type problem struct {
	Code    json.RawMessage `json:"code"`
	Type    string          `json:"type"`
	Status  json.RawMessage `json:"status"`
	Details []struct {
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
}

// code returns the most telling name of the problem.
func (p *problem) code() string {
	for _, raw := range []json.RawMessage{p.Code, p.Status} {
		if s, ok := asText(raw); ok && s != "" {
			return s
		}
	}
	if p.Type != "" && p.Type != "error" {
		return p.Type
	}
	if n, err := strconv.Atoi(string(p.Code)); err == nil {
		return strconv.Itoa(n)
	}
	return ""
}

func (p *problem) delay() time.Duration {
	for _, d := range p.Details {
		if t, err := time.ParseDuration(d.RetryDelay); err == nil && t > 0 {
			return t
		}
	}
	return 0
}

func asText(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// tooLong is what providers say of conversations that are too long.
var tooLong = regexp.MustCompile(`(?i)context.?length|context.?window|context.?size|maximum context|prompt is too long|input is too long|too many (input )?tokens|exceeds? (the )?(context|max(imum)? (number of )?(input )?tokens)|input token count|request_too_large|reduce the length|exceed context limit`)

// classify says what an error means, by its status and its name.
func classify(e *llm.Error) {
	status := e.Status
	if status == 0 {
		status = statuses[e.Code]
		if n, err := strconv.Atoi(e.Code); err == nil {
			status = n
		}
	}
	switch {
	case status == http.StatusRequestEntityTooLarge:
		e.TooLong = true
	case status == http.StatusTooManyRequests, status == 0, status >= 500:
	default:
		e.TooLong = e.TooLong || tooLong.MatchString(e.Code+" "+e.Message)
	}
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests,
		status >= 500 && status != http.StatusNotImplemented:
		e.Temporary = !spent[e.Code]
	}
	if status == 0 {
		e.TooLong = tooLong.MatchString(e.Code + " " + e.Message)
	}
}

// spent are the errors of an account without means: to wait does not help.
var spent = map[string]bool{"insufficient_quota": true, "billing_hard_limit_reached": true, "billing_error": true, "insufficient_balance": true}

// statuses are those that errors within streams stand for.
var statuses = map[string]int{
	"overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "invalid_request_error": 400,
	"authentication_error": 401, "permission_error": 403, "not_found_error": 404, "request_too_large": 413,
	"server_error": 500, "internal_server_error": 500, "rate_limit_exceeded": 429, "service_unavailable": 503, "overloaded": 503,
	"UNAVAILABLE": 503, "RESOURCE_EXHAUSTED": 429, "INTERNAL": 500, "DEADLINE_EXCEEDED": 504, "context_length_exceeded": 400,
}

// retryAfter reads when a provider wants to be asked again.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if s > 0 && s < 1e6 {
			return time.Duration(s * float64(time.Second))
		}
		return 0
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now := time.Now()
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		now = t // by the provider's own clock
	}
	return max(at.Sub(now), 0)
}

// clip cuts a text to so many bytes, not within a rune.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
