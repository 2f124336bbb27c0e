// Package copilot signs in to GitHub Copilot, whose models are spoken to by the protocol of OpenAI.
package copilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
)

// A GitHub is where people sign in.
type GitHub struct {
	ClientID string       // of an OAuth app; helve has none of its own
	URL      string       // "": https://github.com
	HTTP     *http.Client // nil: http.DefaultClient
}

// Kept is the name under which a login is kept.
const Kept = "login/github_copilot"

// Agent is how helve names itself: as no editor but itself.
const Agent = "helve/0"

func (g *GitHub) site() string {
	if g.URL == "" {
		return "https://github.com"
	}
	return strings.TrimSuffix(g.URL, "/")
}

// api is where the API of a site is: beside it, but on this machine.
func (g *GitHub) api() string {
	if wire.Local(g.site()) {
		return g.site()
	}
	return strings.Replace(g.site(), "://", "://api.", 1)
}

// A Code is what a person enters, and where.
type Code struct {
	User    string
	Address string
	Expires time.Duration
}

// SignIn has a person sign in: show tells them how. It returns the token to be
// kept, and waits for the person until the code expires.
func (g *GitHub) SignIn(ctx context.Context, show func(Code) error) (string, error) {
	if g.ClientID == "" {
		return "", errors.New("client_id is missing: signing in to GitHub Copilot needs the client id of an OAuth app of yours, as brain.config.client_id")
	}
	var d struct {
		Device   string `json:"device_code"`
		User     string `json:"user_code"`
		Address  string `json:"verification_uri"`
		Expires  int    `json:"expires_in"`
		Interval int    `json:"interval"`
		problem
	}
	if err := g.post(ctx, "/login/device/code", url.Values{"client_id": {g.ClientID}, "scope": {"read:user"}}, &d); err != nil {
		return "", err
	}
	if d.Error != "" || d.Device == "" {
		return "", fmt.Errorf("github: no code was given: %s", d.said())
	}
	expires := time.Duration(max(d.Expires, 60)) * time.Second
	if err := show(Code{d.User, d.Address, expires}); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, expires, errors.New("nobody signed in before the code expired; nothing has changed"))
	defer cancel()
	return g.poll(ctx, d.Device, time.Duration(max(d.Interval, 1))*time.Second)
}

// A problem is how GitHub tells of one.
type problem struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

func (p *problem) said() string {
	if p.Description != "" {
		return p.Description
	}
	return p.Error
}

// poll asks for the token until the person has signed in.
func (g *GitHub) poll(ctx context.Context, device string, pause time.Duration) (string, error) {
	form := url.Values{"client_id": {g.ClientID}, "device_code": {device}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}}
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", context.Cause(ctx)
		}
		var t struct {
			Token string `json:"access_token"`
			problem
		}
		if err := g.post(ctx, "/login/oauth/access_token", form, &t); err != nil {
			return "", err
		}
		switch {
		case t.Token != "":
			return t.Token, nil
		case t.Error == "authorization_pending":
		case t.Error == "slow_down":
			pause += 5 * time.Second // RFC 8628, 3.5
		default:
			return "", fmt.Errorf("github: signing in failed: %s", t.said())
		}
	}
}

func (g *GitHub) post(ctx context.Context, path string, form url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.site()+path, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return g.do(req, into)
}

const maxAnswer = 1 << 20

// do reads an answer as JSON. One that is no success is an *llm.Error.
func (g *GitHub) do(req *http.Request, into any) error {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", Agent)
	resp, err := wire.Direct(g.HTTP).Do(req)
	if err != nil {
		if cause := context.Cause(req.Context()); cause != nil {
			return cause
		}
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		e := wire.ReadError(data)
		e.Status, e.Temporary = resp.StatusCode, resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
		return e
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("github: the answer of %s cannot be read: %w", req.URL.Path, err)
	}
	return nil
}

// Tokens gives short-lived tokens for the one that is kept. It is safe for
// concurrent use.
type Tokens struct {
	GitHub
	Login func() (string, error) // the token that is kept

	mu      sync.Mutex
	token   string
	expires time.Time
}

// early is how long before its end a token is not used any more.
const early = time.Minute

// Get returns a token, a new one where the last is about to expire.
func (t *Tokens) Get(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && time.Until(t.expires) > early {
		return t.token, nil
	}
	login, err := t.Login()
	if err != nil || login == "" {
		return "", &llm.Error{Status: http.StatusUnauthorized, Message: SignedOut, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.api()+"/copilot_internal/v2/token", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "token "+login)
	var got struct {
		Token   string `json:"token"`
		Expires int64  `json:"expires_at"`
	}
	if err := t.do(req, &got); err != nil {
		return "", refused(err)
	}
	if got.Token == "" {
		return "", errors.New("github gave no token for Copilot")
	}
	t.token, t.expires = got.Token, time.Unix(got.Expires, 0)
	return t.token, nil
}

// SignedOut says that nobody is signed in.
const SignedOut = "nobody is signed in to GitHub Copilot: run helve login copilot --app with the app file"

func refused(err error) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Status {
	case http.StatusUnauthorized:
		e.Message = "the login has ended: run helve login copilot --app with the app file"
	case http.StatusForbidden, http.StatusNotFound:
		e.Message = "this account or this OAuth app may not use GitHub Copilot; " + e.Message
	}
	return e
}

// Authorize adds a token to a request.
func (t *Tokens) Authorize(ctx context.Context, r *http.Request) error {
	token, err := t.Get(ctx)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("User-Agent", Agent)
	r.Header.Set("Editor-Version", Agent)
	return nil
}
