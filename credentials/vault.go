package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
	"github.com/zalando/go-keyring"
)

// A vault is the file of secrets, and the key that opens it.
type vault struct {
	file string
	key  *age.X25519Identity
	from string // where the key is from
}

// vault returns where the secrets are, nil if there are none. With create it
// returns where they are to be, and the key is there; the caller holds the lock.
func (s *Store) vault(create bool) (*vault, error) {
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	own, ring := filepath.Join(dir, ownFile), filepath.Join(dir, ringFile)
	if s.o.Key != "" {
		key, err := age.ParseX25519Identity(strings.TrimSpace(s.o.Key))
		if err != nil {
			return nil, errors.New("HELVE_CREDENTIALS_KEY is not an age identity: it begins with AGE-SECRET-KEY-1; age-keygen makes one")
		}
		return &vault{own, key, "HELVE_CREDENTIALS_KEY"}, nil
	}
	switch backend := s.o.Backend; {
	case backend == File:
		return fileVault(dir, create)
	case backend == Keyring:
		return s.ringVault(ring, create)
	case backend != Auto && backend != "":
		return nil, fmt.Errorf("%q is no place for secrets: want auto, keyring or file", backend)
	case exists(own) || exists(filepath.Join(dir, keyFile)):
		return fileVault(dir, create)
	case exists(ring):
		return s.ringVault(ring, create)
	case !create:
		return nil, nil
	}
	if v, err := s.ringVault(ring, true); err == nil {
		return v, nil
	}
	return fileVault(dir, true)
}

// exists reports whether there is a file, or may be one.
func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, os.ErrNotExist)
}

// fileVault is for a key in a file.
func fileVault(dir string, create bool) (*vault, error) {
	file, at := filepath.Join(dir, ownFile), filepath.Join(dir, keyFile)
	data, err := readPrivate(at)
	switch {
	case err == nil:
		key, err := parseKey(data)
		if err != nil {
			return nil, fmt.Errorf("%s holds no age identity: put back the one that was in it, or move it and %s away and set the secrets again", at, file)
		}
		return &vault{file, key, at}, nil
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	case exists(file):
		return nil, fmt.Errorf("the key of %s is missing: put it back as %s or into HELVE_CREDENTIALS_KEY, or move the file away and set the secrets again", file, at)
	case !create:
		return nil, nil
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	text := "# This key opens secrets.age beside it. Whoever has both has the secrets.\n" + key.String() + "\n"
	return &vault{file, key, at}, writePrivate(at, []byte(text))
}

func parseKey(data []byte) (*age.X25519Identity, error) {
	all, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	key, ok := all[0].(*age.X25519Identity)
	if !ok || len(all) != 1 {
		return nil, errors.New("not one X25519 identity")
	}
	return key, nil
}

const (
	ringService = "helve"
	ringUser    = "credentials key"
	ringTime    = 20 * time.Second // for a keyring to answer: it may ask its user for a password
	ringPause   = 30 * time.Second // before one that failed is asked again
)

// ringVault is for a key in the keyring.
func (s *Store) ringVault(file string, create bool) (*vault, error) {
	text, err := s.ask(func() (string, error) { return keyring.Get(ringService, ringUser) })
	switch {
	case err == nil:
		key, err := parseKey([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("what the system's keyring holds as %s, %s is no age identity: delete it there, move %s away and set the secrets again", ringService, ringUser, file)
		}
		return &vault{file, key, "the system's keyring"}, nil
	case !errors.Is(err, keyring.ErrNotFound):
		return nil, err
	case exists(file):
		return nil, fmt.Errorf("the key of %s is not in the system's keyring any more: restore it there, or move the file away and set the secrets again", file)
	case !create:
		return nil, nil
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	if _, err = s.ask(func() (string, error) { return "", keyring.Set(ringService, ringUser, key.String()) }); err != nil {
		return nil, err
	}
	return &vault{file, key, "the system's keyring"}, nil
}

// ErrKeyring is the error of a keyring that gives no answer: there is none, or
// it is locked and its user did not unlock it. That may change at any time.
var ErrKeyring = errors.New("the system's keyring does not answer")

// A refusal is how the keyring failed last. For a while it is the answer to
// all that ask, since each question may show the user a dialog.
type refusal struct {
	mu     sync.Mutex
	err    error
	until  time.Time
	look   chan bool // nil, or what tells whether it is unlocked
	looked time.Time
}

// unlockLook is between two looks whether a keyring was unlocked.
const unlockLook = time.Second

// Unlocked reports whether a keyring that gave no answer may give one now,
// since it was unlocked. It asks nobody for that and returns at once: what it
// finds out is told by a later call.
func (s *Store) Unlocked() bool {
	r := &s.refused
	if !r.mu.TryLock() {
		return false // the keyring is being asked
	}
	defer r.mu.Unlock()
	select {
	case is := <-r.look:
		r.look = nil
		if is {
			r.until = time.Time{}
		}
		return is
	default:
	}
	if r.err == nil || r.look != nil || time.Since(r.looked) < unlockLook {
		return false
	}
	told := make(chan bool, 1)
	r.look, r.looked = told, time.Now()
	go func() { // as long as the bus takes to answer
		defer func() {
			if recover() != nil { // see answer
				told <- false
			}
		}()
		told <- unlocked()
	}()
	return false
}

// ask asks the keyring, one question at a time. The error is ErrKeyring, or
// that of a key which is not there.
func (s *Store) ask(fn func() (string, error)) (string, error) {
	r := &s.refused
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return "", r.err
	}
	text, err := answer(fn)
	if err == nil || errors.Is(err, keyring.ErrNotFound) {
		return text, err
	}
	why := err.Error()
	if strings.HasPrefix(why, "failed to unlock") {
		why = "it is locked, and was not unlocked"
	}
	r.err = fmt.Errorf("%w (%s); security.credentials: file keeps secrets without one", ErrKeyring, why)
	r.until = time.Now().Add(ringPause)
	return "", r.err
}

// answer returns what the keyring answers. One that does not in time has no
// answer; the goroutine that still waits for it ends with the process.
func answer(fn func() (string, error)) (string, error) {
	if runtime.GOOS == "linux" && !hasBus() {
		return "", errors.New("there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set")
	}
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		defer func() {
			if recover() != nil { // the library panics if the bus ends while the user is asked
				got <- answer{err: errors.New("it went away")}
			}
		}()
		text, err := fn()
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		return a.text, a.err
	case <-time.After(ringTime):
		return "", fmt.Errorf("no answer within %s", ringTime)
	}
}

// hasBus reports whether there is a session bus: one that the environment
// names, or that of systemd, for clients that start helve mcp without their
// environment. Without either the library would start a bus, and leave it.
func hasBus() bool {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" {
		return address != "autolaunch:"
	}
	info, err := os.Stat(fmt.Sprintf("/run/user/%d/bus", os.Getuid()))
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// open returns what is sealed.
func (v *vault) open(data []byte) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(data), v.key)
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		return nil, fmt.Errorf("%s is sealed with another key than that of %s: put the right key there, or move the file away and set the secrets again", v.file, v.from)
	}
	var plain []byte
	if err == nil {
		plain, err = io.ReadAll(io.LimitReader(r, maxFile+1))
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged, or not a file of age: put back a copy, or move it away and set the secrets again (%v)", v.file, err)
	}
	return plain, nil
}

func (v *vault) seal(plain []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := age.Encrypt(&b, v.key.Recipient())
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
