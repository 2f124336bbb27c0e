package tokens_test

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/internal/tokens"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/store/sqlite"
)

func mint(t *testing.T, s *tokens.Store, tok tokens.Token) (tokens.Token, string) {
	t.Helper()
	made, text, err := s.Create(t.Context(), tok, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return made, text
}

func TestTokensAreKeptAsHashes(t *testing.T) {
	whole := new(mem.Store)
	s := tokens.In(whole)
	made, text := mint(t, s, tokens.Token{Name: "ci", App: "mail", Profile: "read", View: "full"})
	if !regexp.MustCompile(`^hlv_[a-z0-9]{12}_[a-z0-9]{52}$`).MatchString(text) || !strings.HasPrefix(text, "hlv_"+made.ID+"_") {
		t.Errorf("the token is %s", text)
	}
	secret := text[len("hlv_")+13:]
	err := whole.View(t.Context(), func(r store.Reader) error {
		n := 0
		for key, data := range r.Scan("access/tokens", "") {
			n++
			if strings.Contains(key+string(data), secret) {
				t.Errorf("the store has the token: %s", data)
			}
		}
		if n != 1 {
			t.Errorf("%d tokens are kept", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	b := tokens.NewBook(s)
	got, err := b.Check(t.Context(), text)
	if err != nil || got.Name != "ci" || got.App != "mail" || got.Profile != "read" || got.View != "full" || got.User() != "token:ci" {
		t.Errorf("the token is known as %+v, %v", got, err)
	}
	last := text[len(text)-1]
	other := "a"
	if last == 'a' {
		other = "b"
	}
	for _, bad := range []string{"", "hlv_", made.ID, text[:len(text)-1], text + "a", text[:len(text)-1] + other, strings.ToUpper(text),
		"hlv_" + made.ID + "_" + strings.Repeat("a", 52), "hlv_" + strings.Repeat("a", 12) + text[16:], " " + text, made.Hash} {
		if got, err := b.Check(t.Context(), bad); !errors.Is(err, tokens.ErrRefused) {
			t.Errorf("%q is accepted as %+v, %v", bad, got, err)
		}
	}
}

func TestTokenNames(t *testing.T) {
	s := tokens.In(new(mem.Store))
	for _, bad := range []string{"", " ", "a b", "-a", "a/b", strings.Repeat("a", 65), "a\n"} {
		if _, _, err := s.Create(t.Context(), tokens.Token{Name: bad}, time.Now()); !errors.Is(err, tokens.ErrName) {
			t.Errorf("name %q: %v", bad, err)
		}
	}
	if _, _, err := s.Create(t.Context(), tokens.Token{Name: "late", Expires: time.Now()}, time.Now()); err == nil {
		t.Error("a token that has expired was made")
	}
	first, old := mint(t, s, tokens.Token{Name: "ci"})
	if _, _, err := s.Create(t.Context(), tokens.Token{Name: "ci"}, time.Now()); !errors.Is(err, tokens.ErrTaken) {
		t.Errorf("a second ci: %v", err)
	}
	if got, err := s.Revoke(t.Context(), "ci", time.Now()); err != nil || got.ID != first.ID || got.Revoked.IsZero() {
		t.Errorf("revoke: %+v, %v", got, err)
	}
	second, text := mint(t, s, tokens.Token{Name: "ci"}) // the name is free again
	b := tokens.NewBook(s)
	if _, err := b.Check(t.Context(), old); !errors.Is(err, tokens.ErrRefused) || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("the old token: %v", err)
	}
	if got, err := b.Check(t.Context(), text); err != nil || got.ID != second.ID {
		t.Errorf("the new token: %+v, %v", got, err)
	}
	if got, err := s.Revoke(t.Context(), "hlv_"+second.ID, time.Now()); err != nil || got.ID != second.ID {
		t.Errorf("revoke by id: %+v, %v", got, err)
	}
	if _, err := s.Revoke(t.Context(), "cd", time.Now()); !errors.Is(err, tokens.ErrUnknown) {
		t.Errorf("revoke of nothing: %v", err)
	}
	if gone, err := s.Prune(t.Context(), time.Now()); err != nil || len(gone) != 2 {
		t.Errorf("pruned: %v, %v", gone, err)
	}
	if all, err := s.All(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// What one process does, another knows after a second at most.
func TestBooksAreNeverStaleForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := new(mem.Store)
		s := tokens.In(whole)
		b := tokens.NewBook(s)
		if any, err := b.Any(t.Context()); any || err != nil {
			t.Errorf("without tokens: %v, %v", any, err)
		}
		made, text := mint(t, s, tokens.Token{Name: "ci", Expires: time.Now().Add(time.Hour)})
		if _, err := b.Check(t.Context(), text); err != nil {
			t.Errorf("a new token: %v", err)
		}
		if any, err := b.Any(t.Context()); !any || err != nil {
			t.Errorf("with a token: %v, %v", any, err)
		}
		if _, err := s.Revoke(t.Context(), "ci", time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tokens.Stale)
		if _, err := b.Check(t.Context(), text); !errors.Is(err, tokens.ErrRefused) {
			t.Errorf("a revoked token: %v", err)
		}
		if ok, err := b.Active(t.Context(), made.ID); ok || err != nil {
			t.Errorf("a revoked token is active: %v, %v", ok, err)
		}
		if any, _ := b.Any(t.Context()); !any {
			t.Error("after the last token was revoked, none is needed")
		}
		_, text = mint(t, s, tokens.Token{Name: "short", Expires: time.Now().Add(time.Minute)})
		time.Sleep(59 * time.Second)
		if _, err := b.Check(t.Context(), text); err != nil {
			t.Errorf("before it expires: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := b.Check(t.Context(), text); !errors.Is(err, tokens.ErrRefused) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("when it has expired: %v", err)
		}
		// If nobody can tell, nobody is let in.
		whole.Close()
		time.Sleep(tokens.Stale)
		if _, err := b.Check(t.Context(), text); err == nil || errors.Is(err, tokens.ErrRefused) {
			t.Errorf("without a store: %v", err)
		}
		if _, err := b.Any(t.Context()); err == nil {
			t.Error("without a store it is known whether there are tokens")
		}
	})
}

// Two processes share the tokens of one file.
func TestTokensAreShared(t *testing.T) {
	file := filepath.Join(t.TempDir(), "helve.db")
	open := func() *tokens.Store {
		s, err := sqlite.Open(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return tokens.In(s)
	}
	one, two := open(), open()
	var all sync.WaitGroup
	errs := make(chan error, 20)
	for i := range 20 { // of those who want a name, one gets it
		s := one
		if i%2 == 1 {
			s = two
		}
		all.Go(func() {
			_, _, err := s.Create(context.Background(), tokens.Token{Name: "ci"}, time.Now())
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	got := 0
	for err := range errs {
		if err == nil {
			got++
		} else if !errors.Is(err, tokens.ErrTaken) {
			t.Error(err)
		}
	}
	if list, err := two.All(t.Context()); got != 1 || err != nil || len(list) != 1 {
		t.Errorf("%d were told that they have the name; the list is %v, %v", got, list, err)
	}
}
