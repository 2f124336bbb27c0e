// Package wire carries requests to providers of models over HTTP, and what they answer back piece by piece.
package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

// A Client asks one provider. Its fields are not changed once it is used; it
// is safe for concurrent use.
type Client struct {
	Provider string            // its name, for errors and for what is given back to it only
	Model    string            // for errors
	BaseURL  string            // without the path that Stream adds; queries stay
	Header   map[string]string // of every request
	Key      string            // never shown in errors; "": none
	KeyHint  string            // what to do about a key that is refused; "": nothing is said

	// Authorize adds to a request what says who asks; nil: nothing is added.
	Authorize func(context.Context, *http.Request) error
	HTTP      *http.Client  // nil: http.DefaultClient. Redirects are not followed
	Idle      time.Duration // how long nothing may come; zero: DefaultIdle
}

// DefaultIdle is how long a provider may be silent. Models that reason are
// silent for minutes.
const DefaultIdle = 10 * time.Minute

// Limits of what is read.
const (
	MaxEvent = 32 << 20  // bytes of one event, or line
	maxWhole = 64 << 20  // bytes of an answer that is not streamed
	maxError = 256 << 10 // bytes of an error
)

// A Decoder makes chunks of what one answer consists of. An *llm.Error that it
// returns is completed by the client; any other error says what cannot be read.
type Decoder interface {
	// Event takes one event of a stream, or one line.
	Event(name string, data []byte) error
	// Whole takes an answer that is not streamed.
	Whole(data []byte) error
	// End tells what was held back until the stream's end. It returns ErrCut
	// if the answer is not whole.
	End() error
}

// ErrCut is the error of a stream that ended before the answer did.
var ErrCut = errors.New("the stream ended before the answer did")

// errGone ends the reading of an answer to which nobody listens any more.
var errGone = errors.New("nobody listens")

// A Sink takes the chunks of an answer. Its error, which means that nobody
// listens any more, is to be returned as it is.
type Sink func(llm.Chunk) error

// Form is the form of streams.
type Form bool

// The forms.
const (
	SSE   Form = false // server-sent events
	Lines Form = true  // a line of JSON each
)

// From is the name under which this provider's own forms are kept: what one
// model wrote is not given to another.
func (c *Client) From() string { return c.Provider + "/" + c.Model }

// Stream posts a body as JSON, and yields what the decoder makes of the answer.
func (c *Client) Stream(ctx context.Context, path string, body any, form Form, decoder func(Sink) Decoder) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		begun := false
		sink := func(chunk llm.Chunk) error {
			begun = begun || chunk.Text != "" || chunk.Thought != nil || chunk.Call != nil || chunk.Image != nil
			if !yield(chunk, nil) {
				return errGone
			}
			return nil
		}
		err := c.stream(ctx, cancel, path, body, form, decoder(sink))
		if err != nil && !errors.Is(err, errGone) {
			yield(llm.Chunk{}, c.failed(ctx, err, begun))
		}
	}
}

func (c *Client) stream(ctx context.Context, cancel context.CancelCauseFunc, path string, body any, form Form, d Decoder) error {
	idle := c.Idle
	if idle == 0 {
		idle = DefaultIdle
	}
	timer := time.AfterFunc(idle, func() { cancel(fmt.Errorf("%w: nothing came for %s", errIdle, idle)) })
	defer timer.Stop()
	resp, err := c.post(ctx, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r := &watched{resp.Body, func() { timer.Reset(idle) }}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind == "application/json" && form == SSE:
		return whole(r, d)
	case kind == "text/html":
		return &llm.Error{Status: resp.StatusCode, Message: fmt.Sprintf("%s is a web page, not the API: check base_url", shown(resp.Request.URL))}
	case form == Lines:
		return eachLine(r, d)
	}
	return eachEvent(r, d)
}

var errIdle = errors.New("the provider is silent")

// A watched reader tells of every piece that comes.
type watched struct {
	io.Reader
	came func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.came()
	}
	return n, err
}

func whole(r io.Reader, d Decoder) error {
	data, err := io.ReadAll(io.LimitReader(r, maxWhole+1))
	if err != nil {
		return err
	}
	if len(data) > maxWhole {
		return fmt.Errorf("the answer is longer than %d MB", maxWhole>>20)
	}
	return d.Whole(data)
}

// URL returns the address of a path beneath the base.
func (c *Client) URL(path string) (string, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("base_url: %q is no address; it is like https://api.example.com/v1", clip(c.BaseURL, 100))
	}
	at, query, _ := strings.Cut(path, "?")
	u.Path = strings.TrimSuffix(u.Path, "/") + at
	if query != "" {
		u.RawQuery = strings.Trim(u.RawQuery+"&"+query, "&")
	}
	return u.String(), nil
}

func shown(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// post returns the answer to a request if it is a good one.
func (c *Client) post(ctx context.Context, path string, body any) (*http.Response, error) {
	data, err := tool.Encode(body)
	if err != nil {
		return nil, err
	}
	at, err := c.URL(path)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "helve")
	for k, v := range c.Header {
		req.Header.Set(k, v)
	}
	if c.Authorize != nil {
		if err := c.Authorize(ctx, req); err != nil {
			return nil, err
		}
	}
	resp, err := Direct(c.HTTP).Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, c.refusal(resp)
	}
	return resp, nil
}

// Direct returns a client that follows no redirects: they would carry keys and
// conversations to where nobody meant them to go. A nil client is
// http.DefaultClient.
func Direct(h *http.Client) *http.Client {
	if h == nil {
		h = http.DefaultClient
	}
	direct := *h
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &direct
}
