package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/internal/tokens"
	"github.com/helve-ai/helve/mcpbridge"
)

// A who is a caller that was let in, and what it may reach.
type who struct {
	caller             mcpbridge.Caller
	App, Profile, View string // "": any
}

type whoKey struct{}

// whoOf returns who makes a request, nil if nobody was let in.
func whoOf(ctx context.Context) *who {
	w, _ := ctx.Value(whoKey{}).(*who)
	return w
}

// callerOf says to the MCP endpoints who makes a request.
func callerOf(r *http.Request) mcpbridge.Caller {
	if w := whoOf(r.Context()); w != nil {
		return w.caller
	}
	return mcpbridge.Caller{User: "nobody", Key: "nobody"}
}

// The callers that have no token of their own.
var (
	anyone   = mcpbridge.Caller{User: "local", Key: "local"}
	operator = mcpbridge.Caller{User: "operator", Key: "operator"}
)

// A gate lets in those who may come, and has them leave when they may not stay.
type gate struct {
	operator string // token; "": there is none
	book     *tokens.Book
	open     bool // nobody needs a token as long as there is none
	log      *slog.Logger
	end      func(key string) // ends what a caller has begun

	mu     sync.Mutex
	inside map[string]map[*visit]bool // requests, by the callers' keys; without any: sessions may be left
}

// A visit is a request while it is served.
type visit struct{ leave context.CancelCauseFunc }

var errOut = errors.New("the token is not accepted any more")

// any reports whether clients have tokens.
func (g *gate) any(ctx context.Context) (bool, error) {
	if g.book == nil {
		return false, nil
	}
	return g.book.Any(ctx)
}

// needs reports whether a token is needed now. If that cannot be told, it is.
func (g *gate) needs(ctx context.Context) (bool, error) {
	if g.operator != "" || !g.open {
		return true, nil
	}
	return g.any(ctx)
}

// errToken is wrapped by errors of requests whose sender must present another
// token, or one.
var errToken = errors.New("a token is needed")

// identify returns who makes a request. An error that wraps errToken or
// tokens.ErrRefused says that nobody does who may.
func (g *gate) identify(r *http.Request) (*who, error) {
	text, sent := bearer(r)
	if sent && g.operator != "" && same(text, g.operator) {
		return &who{caller: operator}, nil
	}
	needed, err := g.needs(r.Context())
	switch {
	case err != nil:
		return nil, err
	case !needed && sent && g.book != nil && strings.HasPrefix(text, tokens.Prefix):
		// The first token may be younger than what is known, and binds all the same.
		t, err := g.book.Check(r.Context(), text)
		if err == nil {
			return holder(t), nil
		}
		if needed, unknown := g.any(r.Context()); needed || unknown != nil {
			return nil, err
		}
		return &who{caller: anyone}, nil
	case !needed:
		return &who{caller: anyone}, nil
	case !sent:
		return nil, errToken
	case g.book == nil:
		return nil, tokens.ErrRefused
	}
	t, err := g.book.Check(r.Context(), text)
	if err != nil {
		return nil, err
	}
	return holder(t), nil
}

// holder is who presents that token.
func holder(t tokens.Token) *who {
	return &who{mcpbridge.Caller{User: t.User(), Key: "token:" + t.ID}, t.App, t.Profile, t.View}
}

// bearer returns the token that a request presents, and whether it does.
func bearer(r *http.Request) (string, bool) {
	all := r.Header.Values("Authorization")
	if len(all) != 1 {
		return "", false
	}
	scheme, text, _ := strings.Cut(all[0], " ")
	return strings.TrimSpace(text), strings.EqualFold(scheme, "Bearer") && strings.TrimSpace(text) != ""
}

// same compares in a time that does not depend on how much is the same.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// admit lets only those pass who may. Whether the daemon is well everybody may
// ask; that it has no documents about signing in, too.
func (g *gate) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if inQuery(r) {
			http.Error(w, "tokens are never taken from the address, which others may log: send it as Authorization: Bearer TOKEN, and revoke this one", http.StatusBadRequest)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			http.NotFound(w, r)
			return
		}
		who, err := g.identify(r)
		if err != nil && r.URL.Path == "/healthz" {
			next.ServeHTTP(w, r)
			return
		}
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		ctx, leave := g.enter(r.Context(), who)
		defer leave()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// inQuery reports whether a request's address has a token in it.
func inQuery(r *http.Request) bool {
	if r.URL.RawQuery == "" {
		return false
	}
	q := r.URL.Query()
	for _, key := range []string{"token", "access_token", "api_key", "apikey"} {
		if q.Has(key) {
			return true
		}
	}
	return strings.Contains(r.URL.RawQuery, tokens.Prefix)
}

func (g *gate) refuse(w http.ResponseWriter, r *http.Request, err error) {
	g.log.Debug("a request was refused", "path", r.URL.Path, "from", r.RemoteAddr, "error", err)
	const how = "send it as Authorization: Bearer TOKEN; the operator makes one with helve tokens create --name NAME"
	switch {
	case errors.Is(err, errToken):
		w.Header().Set("WWW-Authenticate", `Bearer realm="helve"`)
		http.Error(w, "a token is needed: "+how, http.StatusUnauthorized)
	case errors.Is(err, tokens.ErrRefused):
		w.Header().Set("WWW-Authenticate", `Bearer realm="helve", error="invalid_token"`)
		http.Error(w, err.Error()+"; another is needed: "+how, http.StatusUnauthorized)
	default:
		g.log.Error("requests are refused", "error", err)
		http.Error(w, "it cannot be told who may come in; the operator's log says why", http.StatusServiceUnavailable)
	}
}

// enter notes a request while it is served: it ends when its sender may not
// stay.
func (g *gate) enter(ctx context.Context, who *who) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, whoKey{}, who))
	key, v := who.caller.Key, &visit{cancel}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside == nil {
		g.inside = map[string]map[*visit]bool{}
	}
	if g.inside[key] == nil {
		g.inside[key] = map[*visit]bool{}
	}
	g.inside[key][v] = true
	return ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.inside[key], v)
		cancel(nil)
	}
}

// watch has those leave whose token was revoked or has expired, until ctx ends.
func (g *gate) watch(ctx context.Context) {
	tick := time.NewTicker(tokens.Stale)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			g.clear(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// clear ends the requests and the sessions of those who may not stay. If that
// cannot be told, what they have begun goes on, and nothing new begins.
func (g *gate) clear(ctx context.Context) {
	g.mu.Lock()
	var keys []string
	for key := range g.inside {
		if key != operator.Key {
			keys = append(keys, key)
		}
	}
	g.mu.Unlock()
	for _, key := range keys {
		if stays, err := g.stays(ctx, key); stays || err != nil {
			continue
		}
		g.mu.Lock()
		for v := range g.inside[key] {
			v.leave(errOut)
		}
		delete(g.inside, key)
		g.mu.Unlock()
		g.end(key)
	}
}

func (g *gate) stays(ctx context.Context, key string) (bool, error) {
	if id, ok := strings.CutPrefix(key, "token:"); ok {
		return g.book.Active(ctx, id)
	}
	needed, err := g.needs(ctx)
	return !needed, err
}
