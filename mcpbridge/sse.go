package mcpbridge

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// legacy reports whether an address looks like that of a server which speaks
// the transport of revision 2024-11-05: a stream of events, and an address to
// post to that the stream tells.
func legacy(address string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/sse")
}

// lastWithStreams is the newest revision with handshakes: the servers of the
// older transport are not asked for anything newer, lest they do not answer.
const lastWithStreams = "2025-11-25"

// dial connects to the server and negotiates the protocol: over HTTP by the
// transport that the address looks like, and if that fails, by the other,
// where the server says that it has no such thing.
func dial(ctx context.Context, s *upstream) (*link, error) {
	w := s.full()
	if w.URL == "" {
		return dialBy(ctx, s, nil, false)
	}
	web, old := newHTTPTransport(s), legacy(w.URL)
	l, err := dialBy(ctx, s, web, old)
	if err == nil || !web.absent.Load() || ctx.Err() != nil {
		return l, err
	}
	if l, otherErr := dialBy(ctx, s, newHTTPTransport(s), !old); otherErr == nil {
		return l, nil
	}
	return nil, err
}

// absent reports whether an answer to a first request says that there is no
// such transport.
func absent(r *http.Request, resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest:
		return r.Header.Get(sessionHeader) == ""
	}
	return false
}

// transport returns the connection's transport over HTTP.
func (t *httpTransport) transport(address string, old bool) mcp.Transport {
	if old {
		return &sseTransport{mcp.SSEClientTransport{Endpoint: address, HTTPClient: t.client(), MaxEventSize: maxAnswer}, t}
	}
	return &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: t.client(), MaxRetries: streamRetries, MaxEventSize: maxAnswer}
}

// streamRetries is how often a stream that broke is asked for again before the
// connection counts as lost: within some five seconds, or when the server says.
const streamRetries = 2

// An sseTransport is a connection over a stream of events, which lasts as long
// as the link and not only as long as connecting.
type sseTransport struct {
	mcp.SSEClientTransport
	web *httpTransport
}

// Connect opens the stream, unless ctx ends first.
func (t *sseTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	stop := context.AfterFunc(ctx, t.web.close)
	defer stop()
	return t.SSEClientTransport.Connect(context.WithoutCancel(ctx))
}
