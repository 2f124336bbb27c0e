package mcpbridge

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/helve-ai/helve/credentials"
)

// A login that was locked away is used once the keyring is unlocked: nothing
// on the disk tells of that.
func TestLoginBehindKeyring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
		keyring.MockInit()
		dir := t.TempDir()
		open := func() *credentials.Store {
			return credentials.New(credentials.Options{Backend: credentials.Keyring, Dir: dir})
		}
		const at = "https://mcp.example/mcp"
		u := newAccount(&Upstream{Name: "web", URL: at}, &UpstreamOptions{Credentials: open()})
		if err := saveGrant(u.store, u.name, &grant{Server: at, Access: "token"}); err != nil {
			t.Fatal(err)
		}
		key, err := keyring.Get("helve", "credentials key")
		if err != nil {
			t.Fatal(err)
		}
		keyring.MockInitWithError(errors.New("locked"))
		a := newAccount(&Upstream{Name: "web", URL: at}, &UpstreamOptions{Credentials: open()})
		if g := a.current(); g.Access != "" || !errors.Is(a.broken, credentials.ErrKeyring) {
			t.Fatal("the keyring is not locked")
		}
		keyring.MockInit()
		if err := keyring.Set("helve", "credentials key", key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if g := a.current(); g.Access != "token" || a.broken != nil {
			t.Errorf("the login is not found again: %v", a.broken)
		}
	})
}
