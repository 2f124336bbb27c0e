package copilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/llm"
)

// A fake is GitHub, without a network.
type fake struct {
	polls   []string // what is answered to each poll
	tokens  int      // made so far
	status  int      // of tokens; zero: 200
	agents  map[string]bool
	expires time.Duration
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if f.agents == nil {
		f.agents = map[string]bool{}
	}
	f.agents[r.Header.Get("User-Agent")] = true
	switch r.URL.String() {
	case "https://github.com/login/device/code":
		body, _ := io.ReadAll(r.Body)
		if string(body) != "client_id=mine&scope=read%3Auser" {
			return nil, fmt.Errorf("asked with %s", body)
		}
		io.WriteString(w, `{"device_code":"D","user_code":"AB-CD","verification_uri":"https://github.com/login/device","expires_in":900,"interval":5}`)
	case "https://github.com/login/oauth/access_token":
		if len(f.polls) == 0 {
			io.WriteString(w, `{"error":"authorization_pending"}`)
			break
		}
		io.WriteString(w, f.polls[0])
		f.polls = f.polls[1:]
	case "https://api.github.com/copilot_internal/v2/token":
		if r.Header.Get("Authorization") != "token kept" {
			return nil, fmt.Errorf("asked as %s", r.Header.Get("Authorization"))
		}
		if f.status != 0 {
			w.WriteHeader(f.status)
			io.WriteString(w, `{"message":"no"}`)
			break
		}
		f.tokens++
		json.NewEncoder(w).Encode(map[string]any{"token": fmt.Sprint("short", f.tokens), "expires_at": time.Now().Add(f.expires).Unix()})
	default:
		return nil, fmt.Errorf("asked for %s", r.URL)
	}
	return w.Result(), nil
}

func (f *fake) github() GitHub {
	return GitHub{ClientID: "mine", HTTP: &http.Client{Transport: f}}
}

func TestSignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{polls: []string{`{"error":"authorization_pending"}`, `{"error":"slow_down"}`, `{"access_token":"kept"}`}}
		g := f.github()
		began := time.Now()
		var shown Code
		token, err := g.SignIn(t.Context(), func(c Code) error { shown = c; return nil })
		if err != nil || token != "kept" || shown.User != "AB-CD" || shown.Address != "https://github.com/login/device" {
			t.Errorf("got %q, %v, shown %+v", token, err, shown)
		}
		if d := time.Since(began); d != 20*time.Second { // 5, 5, and 10 after slow_down
			t.Errorf("it took %s", d)
		}
		if len(f.agents) != 1 || !f.agents[Agent] {
			t.Errorf("helve called itself %v", f.agents)
		}
	})
}

func TestSignInFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		show := func(Code) error { return nil }
		g := (&fake{polls: []string{`{"error":"access_denied","error_description":"The user said no"}`}}).github()
		if _, err := g.SignIn(t.Context(), show); err == nil || !strings.Contains(err.Error(), "said no") {
			t.Errorf("denied: %v", err)
		}
		g = (&fake{}).github()
		if _, err := g.SignIn(t.Context(), show); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("nobody came: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := g.SignIn(ctx, func(Code) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		g.ClientID = ""
		if _, err := g.SignIn(t.Context(), show); err == nil || !strings.Contains(err.Error(), "client_id") {
			t.Errorf("without a client: %v", err)
		}
	})
}

// A token is used until shortly before it ends.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{expires: 30 * time.Minute}
		tokens := &Tokens{GitHub: f.github(), Login: func() (string, error) { return "kept", nil }}
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{0, "short1"}, {28 * time.Minute, "short1"}, {90 * time.Second, "short2"}, {0, "short2"}} {
			time.Sleep(c.after) // of the test's own clock
			r := httptest.NewRequest("POST", "/", nil)
			if err := tokens.Authorize(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if got := r.Header.Get("Authorization"); got != "Bearer "+c.want || r.Header.Get("Editor-Version") != Agent {
				t.Errorf("got %q and %v, want %s", got, r.Header, c.want)
			}
		}
	})
}

func TestTokensRefused(t *testing.T) {
	for status, says := range map[int]string{401: "the login has ended", 403: "may not use", 500: "no"} {
		f := &fake{status: status}
		tokens := &Tokens{GitHub: f.github(), Login: func() (string, error) { return "kept", nil }}
		_, err := tokens.Get(t.Context())
		var e *llm.Error
		if !errors.As(err, &e) || e.Status != status || e.Temporary != (status == 500) || !strings.Contains(e.Message, says) {
			t.Errorf("%d: got %+v", status, e)
		}
	}
	none := &Tokens{Login: func() (string, error) { return "", errors.New("not kept") }}
	if _, err := none.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "helve login copilot") {
		t.Errorf("nobody is signed in: %v", err)
	}
}
