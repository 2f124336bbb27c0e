package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// httpRefusal is the code, of our own, of a call that was answered by HTTP
	// alone: by a proxy, say, or a server that is overloaded.
	httpRefusal = -32090

	maxRetryAfter = 10 * time.Second // that we wait when a server says when to come back
	maxReturns    = 2                // how often we do
	maxPage       = 64 << 10         // bytes of an answer that is no message, of which we look for one
)

// An httpError is what the error of such a call tells beside the message.
type httpError struct {
	Status     int `json:"status"`
	RetryAfter int `json:"retry_after,omitempty"` // seconds
}

// transient reports whether the same call may succeed later.
func (e httpError) transient() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// heed sends a request, and again if the server says that it has not looked at
// it and when it will. The library gives a whole connection up when one call is
// answered with what is no message, so such answers become messages.
func (t *httpTransport) heed(r *http.Request) (*http.Response, error) {
	for returns := 0; ; returns++ {
		resp, err := t.trip(r)
		if err != nil {
			return nil, err
		}
		wait, told := retryAfter(resp)
		if !told || wait > maxRetryAfter || returns == maxReturns || r.GetBody == nil {
			return t.understood(r, resp)
		}
		resp.Body.Close()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.Context().Done():
			timer.Stop()
			return nil, r.Context().Err()
		}
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
}

// retryAfter returns how long the server wants to be left alone. Only two
// answers say that the request was not looked at.
func retryAfter(resp *http.Response) (wait time.Duration, told bool) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	after := resp.Header.Get("Retry-After")
	if n, err := strconv.Atoi(after); err == nil && n >= 0 {
		return time.Duration(min(n, 1<<30)) * time.Second, true
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(time.Until(at), 0), true
	}
	return 0, false
}

// understood returns an answer in the form that the library understands: a
// session that the server forgot has status 404 and nothing else, and what
// refuses one call, without being a message, is a message.
func (t *httpTransport) understood(r *http.Request, resp *http.Response) (*http.Response, error) {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	ok := resp.StatusCode == http.StatusOK && (kind == "application/json" || kind == "text/event-stream")
	if ok || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || t.sendsOn(r, resp) {
		return resp, nil
	}
	inSession := r.Header.Get(sessionHeader) != ""
	id := idOf(r)
	if resp.StatusCode < 300 && id == nil || resp.StatusCode < 400 && !inSession && id == nil {
		return resp, nil
	}
	page, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	switch {
	case inSession && forgotten(resp.StatusCode, page):
		resp.StatusCode, page = http.StatusNotFound, nil
	case id != nil && !isAnswer(page):
		wait, _ := retryAfter(resp)
		page = refusalByHTTP(id, resp, httpError{resp.StatusCode, int(wait / time.Second)})
		resp.StatusCode = http.StatusOK
		resp.Header.Set("Content-Type", "application/json")
	default:
		resp.Body = &rest{io.MultiReader(bytes.NewReader(page), resp.Body), resp.Body}
		return resp, nil
	}
	resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(page)), int64(len(page))
	return resp, nil
}

// sendsOn reports whether the answer is that the same request be made at
// another path of the same server, as many want that have a slash at the end of
// theirs.
func (t *httpTransport) sendsOn(r *http.Request, resp *http.Response) bool {
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return false
	}
	to, err := r.URL.Parse(resp.Header.Get("Location"))
	return err == nil && resp.Header.Get("Location") != "" && t.same(to)
}

// readWhole returns an answer that is one message when all of it is here, lest one
// that breaks off end the connection.
func readWhole(r *http.Request, resp *http.Response) (*http.Response, error) {
	if kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); kind != "application/json" || r.Method != http.MethodPost {
		return resp, nil
	}
	data, err := io.ReadAll(resp.Body)
	givenUp := r.Context().Err() != nil
	resp.Body.Close() // which ends the request
	data = wellFormed(data)
	if err == nil && len(data) > 0 && !json.Valid(data) {
		err = errors.New("the answer is no JSON")
	}
	if err != nil {
		id := idOf(r)
		if id == nil || givenUp {
			return nil, err
		}
		resp.StatusCode = http.StatusOK
		data = refusal(id, httpRefusal, "the answer cannot be read: "+err.Error())
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return resp, nil
}

// rest is a body of which a part was read and put back.
type rest struct {
	io.Reader
	io.Closer
}

// idOf returns the id of the call that a request makes; nil: it makes none of
// those whose answers we take as they come.
func idOf(r *http.Request) json.RawMessage {
	if r.Method != http.MethodPost || r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.NewDecoder(body).Decode(&m) != nil || !isRaw(m.Method) {
		return nil
	}
	return m.ID
}

// forgotten reports whether an answer within a session says that there is no
// such session: by its status, or as many servers have it, by 400 and a word.
func forgotten(status int, page []byte) bool {
	return status == http.StatusNotFound || status == http.StatusBadRequest && bytes.Contains(bytes.ToLower(page), []byte("session"))
}

// isAnswer reports whether a page is a message that says why a call failed.
func isAnswer(page []byte) bool {
	msg, err := jsonrpc.DecodeMessage(page)
	if err != nil {
		return false
	}
	answer, ok := msg.(*jsonrpc.Response)
	return ok && answer.Error != nil
}

// refusalByHTTP is the message that stands for an answer which is none.
func refusalByHTTP(id json.RawMessage, resp *http.Response, e httpError) []byte {
	said := "HTTP status " + strconv.Itoa(e.Status)
	if text := http.StatusText(e.Status); text != "" {
		said += " " + text
	}
	switch {
	case e.Status < 300:
		said = fmt.Sprintf("it answered with %s, which is no message of the protocol (%s)", orElse(resp.Header.Get("Content-Type"), "nothing"), said)
	case e.Status < 400 && resp.Header.Get("Location") != "":
		said += ", which leads elsewhere: is the url right?"
	case e.RetryAfter > 0:
		said += fmt.Sprintf("; it is to be called again in %d s", e.RetryAfter)
	}
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, // of strings and numbers
		"error": map[string]any{"code": httpRefusal, "message": said, "data": e}})
	return data
}
