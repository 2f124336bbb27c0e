package credentials_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/age"
	"github.com/zalando/go-keyring"

	"github.com/helve-ai/helve/credentials"
)

// TestMain runs the binary as a process that keeps secrets, where it is asked to.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CREDENTIALS_TEST_DIR"); dir != "" {
		s := credentials.New(credentials.Options{Backend: credentials.File, Dir: dir})
		for i := 0; ; i++ {
			name := fmt.Sprintf("%s-%d", os.Args[1], i)
			if err := s.Set(name, strings.Repeat(name, 500)); err != nil {
				fmt.Println("error:", err)
				os.Exit(1)
			}
			fmt.Println(name)
		}
	}
	os.Exit(m.Run())
}

func file(t *testing.T) (*credentials.Store, string) {
	dir := filepath.Join(t.TempDir(), "helve")
	return credentials.New(credentials.Options{Backend: credentials.File, Dir: dir}), dir
}

func set(t *testing.T, s *credentials.Store, name, value string) {
	t.Helper()
	if err := s.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, s *credentials.Store, name, value string) {
	t.Helper()
	if got, err := s.Get(name); err != nil || got != value {
		t.Errorf("Get(%s): %q, %v; want %q", name, got, err, value)
	}
}

// ring makes the keyring one of this process, which answers.
func ring(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	keyring.MockInit()
}

func TestStore(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]credentials.Options{
		"file": {Backend: credentials.File}, "keyring": {Backend: credentials.Keyring}, "auto": {}, "key": {Key: identity.String()},
	} {
		t.Run(name, func(t *testing.T) {
			ring(t)
			o.Dir = filepath.Join(t.TempDir(), "helve")
			s := credentials.New(o)
			if _, err := s.Get("a"); !errors.Is(err, credentials.ErrNotFound) {
				t.Errorf("Get of an empty store: %v", err)
			}
			if err := s.Delete("a"); !errors.Is(err, credentials.ErrNotFound) {
				t.Errorf("Delete of an empty store: %v", err)
			}
			if _, err := os.Stat(o.Dir); err == nil {
				t.Error("looking has made a folder")
			}
			set(t, s, "b", "two\nlines")
			stamp := s.Stamp()
			set(t, s, "a", "1")
			if s.Stamp() == stamp {
				t.Error("the stamp has not changed")
			}
			other := credentials.New(o)
			want(t, other, "a", "1")
			want(t, other, "b", "two\nlines")
			if err := other.Delete("b"); err != nil {
				t.Error(err)
			}
			if names, err := s.List(); err != nil || !slices.Equal(names, []string{"a"}) {
				t.Errorf("List: %v, %v", names, err)
			}
			for _, bad := range []string{"", "a\nb", strings.Repeat("x", credentials.MaxName+1)} {
				if s.Set(bad, "x") == nil {
					t.Errorf("the name %.20q is accepted", bad)
				}
			}
			if s.Set("big", strings.Repeat("x", credentials.MaxValue+1)) == nil {
				t.Error("a value that is too large is accepted")
			}
		})
	}
}

// Nothing in the folder holds a secret in clear, and only its user can read it.
func TestSealed(t *testing.T) {
	s, dir := file(t)
	set(t, s, "name-in-clear", "value-in-clear")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, _ := e.Info()
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", e.Name(), info.Mode())
		}
		data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		if strings.Contains(string(data), "in-clear") {
			t.Errorf("%s holds the secret in clear", e.Name())
		}
	}
}

// Auto stays with what there is: secrets do not vanish when a keyring comes or goes.
func TestAutoStays(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	keyring.MockInitWithError(errors.New("nobody answers"))
	dir := t.TempDir()
	auto := credentials.New(credentials.Options{Dir: dir})
	set(t, auto, "a", "1")
	ring(t)
	set(t, auto, "b", "2")
	want(t, credentials.New(credentials.Options{Backend: credentials.File, Dir: dir}), "b", "2")

	dir = t.TempDir()
	auto = credentials.New(credentials.Options{Dir: dir})
	set(t, auto, "a", "1")
	keyring.MockInitWithError(errors.New("nobody answers"))
	for _, err := range []error{second(auto.Get("a")), auto.Set("b", "2")} {
		if err == nil || !strings.Contains(err.Error(), "keyring does not answer") || !strings.Contains(err.Error(), "security.credentials: file") {
			t.Errorf("without its keyring: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// What cannot be read is an error that says what to do, and stays as it is.
func TestForeign(t *testing.T) {
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, file, content, want string }{
		{"text", "secrets.age", "not age", "damaged"},
		{"empty", "secrets.age", "", "damaged"},
		{"cut", "secrets.age", "age-encryption.org/v1\n-> X25519", "damaged"},
		{"key", "identity.txt", "AGE-SECRET-KEY-1NONE", "holds no age identity"},
		{"other key", "identity.txt", other.String(), "another key"},
		{"no key", "identity.txt", "-", "is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, dir := file(t)
			set(t, s, "a", "1")
			at := filepath.Join(dir, test.file)
			if test.content == "-" {
				os.Remove(at)
			} else if err := os.WriteFile(at, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(filepath.Join(dir, "secrets.age"))
			for what, err := range map[string]error{"Get": second(s.Get("a")), "List": second(s.List()), "Set": s.Set("b", "2"), "Delete": s.Delete("a")} {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "put ") {
					t.Errorf("%s: %v; want an error with %q, the file, and what to do", what, err, test.want)
				}
			}
			if after, _ := os.ReadFile(filepath.Join(dir, "secrets.age")); string(after) != string(before) {
				t.Error("the file has changed")
			}
		})
	}
	if err := credentials.New(credentials.Options{Key: "hunter2", Dir: t.TempDir()}).Set("a", "1"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad key: %v", err)
	}
	if err := credentials.New(credentials.Options{Backend: "vault", Dir: t.TempDir()}).Set("a", "1"); err == nil || !strings.Contains(err.Error(), "auto, keyring or file") {
		t.Errorf("a bad backend: %v", err)
	}
}

func TestOthersMayNotRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no mode bits")
	}
	s, dir := file(t)
	set(t, s, "a", "1")
	for _, f := range []string{"secrets.age", "identity.txt"} {
		at := filepath.Join(dir, f)
		if err := os.Chmod(at, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get("a"); err == nil || !strings.Contains(err.Error(), "chmod 600 "+at) {
			t.Errorf("%s readable by others: %v", f, err)
		}
		os.Chmod(at, 0o600)
	}
	want(t, s, "a", "1")
}

// Several processes keep secrets at once, and are killed: what each was told
// to be kept is there.
func TestProcesses(t *testing.T) {
	s, dir := file(t)
	type told struct {
		names []string
		err   error
	}
	const processes, each = 3, 12
	results := make(chan told, processes)
	for p := range processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0], fmt.Sprint("p", p))
		cmd.Env = append(os.Environ(), "CREDENTIALS_TEST_DIR="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			var r told
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "error") {
					r.err = errors.New(lines.Text())
				}
				if r.names = append(r.names, lines.Text()); len(r.names) == each {
					cmd.Process.Kill()
				}
			}
			cmd.Wait()
			results <- r
		}()
	}
	for range processes {
		r := <-results
		if r.err != nil || len(r.names) < each {
			t.Fatalf("%v, %d names", r.err, len(r.names))
		}
		for _, name := range r.names {
			want(t, s, name, strings.Repeat(name, 500))
		}
	}
	set(t, s, "last", "x")
	if left, _ := filepath.Glob(filepath.Join(dir, ".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLock(t *testing.T) {
	s, dir := file(t)
	unlock, err := s.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other := credentials.New(credentials.Options{Dir: dir})
	if free, err := other.Lock(t.Context(), "b"); err != nil {
		t.Error(err)
	} else {
		free()
	}
	late, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := other.Lock(late, "a"); err == nil || err.Error() != "enough" {
		t.Errorf("the lock of another: %v", err)
	}
	unlock()

	var all sync.WaitGroup
	held, most := 0, 0
	var mu sync.Mutex
	for range 8 {
		all.Go(func() {
			unlock, err := s.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			held++
			most = max(most, held)
			mu.Unlock()
			mu.Lock()
			held--
			mu.Unlock()
			unlock()
		})
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d held the lock at once", most)
	}
}

// A keyring that fails is asked once in a while, since each question may show
// its user a dialog; then secrets are there again without a new start.
func TestKeyringIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring(t)
		s := credentials.New(credentials.Options{Backend: credentials.Keyring, Dir: t.TempDir()})
		set(t, s, "a", "1")
		key, err := keyring.Get("helve", "credentials key")
		if err != nil {
			t.Fatal(err)
		}
		keyring.MockInitWithError(errors.New("nobody answers"))
		began := time.Now()
		if _, err := s.Get("a"); !errors.Is(err, credentials.ErrKeyring) || !strings.Contains(err.Error(), "nobody answers") {
			t.Fatal(err)
		}
		keyring.MockInit()
		if err := keyring.Set("helve", "credentials key", key); err != nil {
			t.Fatal(err)
		}
		for {
			value, err := s.Get("a")
			if err == nil && value == "1" {
				break
			}
			if !errors.Is(err, credentials.ErrKeyring) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if late := time.Since(began); late < 10*time.Second || late > time.Minute {
			t.Errorf("asked again after %s", late)
		}
	})
}
