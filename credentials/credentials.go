// Package credentials keeps one user's named secrets, sealed on the disk.
//
// They stand in one file, which age seals with a key that the system's keyring
// holds, or where none answers a file that only the user can read. The file
// and not the keyring holds the secrets themselves, because keyrings take no
// more than 2.5 kB of each and cannot list them.
package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A Backend says who holds the key.
type Backend string

// The backends. Auto is where secrets are kept already, and for the first one
// the keyring if one answers, else a file.
const (
	Auto    Backend = "auto"
	Keyring Backend = "keyring"
	File    Backend = "file"
)

// Limits of what is kept, in bytes.
const (
	MaxName  = 2 << 10
	MaxValue = 256 << 10
	maxFile  = 16 << 20
)

// ErrNotFound is the error of a name that has no secret.
var ErrNotFound = errors.New("there is no such secret")

// ErrNoFolder is the error of a user who has no folder for configuration.
var ErrNoFolder = errors.New("there is no folder for secrets")

// Options say where secrets are kept.
type Options struct {
	Backend Backend // "": Auto
	Dir     string  // "": the folder helve in the user's configuration folder
	// Key is an age identity (AGE-SECRET-KEY-1…) that seals the file in place of
	// what Backend says; "": none.
	Key string
}

// A Store keeps secrets. Several processes may use the same one at once; it is
// safe for concurrent use.
type Store struct {
	o       Options
	refused refusal
}

// New returns the store. Nothing is read or made before it is used.
func New(o Options) *Store { return &Store{o: o} }

// Get returns the named secret, or [ErrNotFound].
func (s *Store) Get(name string) (string, error) {
	all, _, err := s.load(false)
	if err != nil {
		return "", err
	}
	value, ok := all[name]
	if !ok {
		return "", ErrNotFound
	}
	return value, nil
}

// List returns the names, sorted.
func (s *Store) List() ([]string, error) {
	all, _, err := s.load(false)
	return slices.Sorted(maps.Keys(all)), err
}

// Set keeps a secret. When it returns nil the secret is on the disk.
func (s *Store) Set(name, value string) error {
	switch {
	case name == "" || len(name) > MaxName || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the secret's name must have 1 to %d bytes, and no control characters", MaxName)
	case len(value) > MaxValue:
		return fmt.Errorf("the secret %s has %d bytes; %d can be kept", name, len(value), MaxValue)
	}
	return s.change(true, func(all map[string]string) error {
		all[name] = value
		return nil
	})
}

// Delete forgets a secret; [ErrNotFound] says that there was none.
func (s *Store) Delete(name string) error {
	return s.change(false, func(all map[string]string) error {
		if _, ok := all[name]; !ok {
			return ErrNotFound
		}
		delete(all, name)
		return nil
	})
}

// Place returns the file in which secrets are kept, and where its key is; ""
// where there are none.
func (s *Store) Place() (file, key string) {
	v, err := s.vault(false)
	if err != nil || v == nil || !exists(v.file) {
		return "", ""
	}
	return v.file, v.from
}

// Stamp changes whenever something is kept or forgotten, in whatever process.
func (s *Store) Stamp() string {
	var b strings.Builder
	for _, f := range []string{ownFile, ringFile} {
		dir, err := s.dir()
		if err != nil {
			return ""
		}
		if info, err := os.Stat(filepath.Join(dir, f)); err == nil {
			fmt.Fprintf(&b, "%s %d %d;", f, info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}

// Lock waits until nobody else, in this process or another, holds the lock of
// that name, or ctx ends. The end of the process releases it.
func (s *Store) Lock(ctx context.Context, name string) (unlock func(), err error) {
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	return lock(ctx, filepath.Join(dir, "locks"), name)
}

// The files in the folder.
const (
	ownFile  = "secrets.age"         // sealed with the key in keyFile, or Options.Key
	ringFile = "secrets.keyring.age" // sealed with the key in the keyring
	keyFile  = "identity.txt"
)

func (s *Store) dir() (string, error) {
	if s.o.Dir != "" {
		return s.o.Dir, nil
	}
	base, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("%w: %w; HELVE_CREDENTIALS_DIR can name one", ErrNoFolder, err)
	}
	return filepath.Join(base, "helve"), nil
}

// content is what is sealed.
type content struct {
	Version int               `json:"version"` // 1
	Secrets map[string]string `json:"secrets"`
}

// load reads all secrets. Without a file there are none; with create, the key
// is there afterwards to make one.
func (s *Store) load(create bool) (map[string]string, *vault, error) {
	v, err := s.vault(create)
	if err != nil || v == nil {
		return map[string]string{}, nil, err
	}
	data, err := readPrivate(v.file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return map[string]string{}, v, nil
	case err != nil:
		return nil, nil, err
	}
	plain, err := v.open(data)
	if err != nil {
		return nil, nil, err
	}
	var c content
	if err := json.Unmarshal(plain, &c); err != nil || c.Version != 1 || c.Secrets == nil {
		return nil, nil, fmt.Errorf("%s holds something else than Helve's secrets; move it away, and set them again", v.file)
	}
	return c.Secrets, v, nil
}

// change replaces the file by one with what fn changes, unless fn fails.
func (s *Store) change(create bool, fn func(map[string]string) error) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	} else if _, err := os.Stat(dir); err != nil {
		return fn(map[string]string{}) // there is nothing to change
	}
	unlock, err := lock(context.Background(), dir, "")
	if err != nil {
		return err
	}
	defer unlock()
	sweep(dir)
	all, v, err := s.load(create)
	if err != nil {
		return err
	}
	if err := fn(all); err != nil {
		return err
	}
	plain, err := json.Marshal(content{1, all})
	if err != nil {
		return err
	}
	sealed, err := v.seal(plain)
	if err != nil {
		return err
	}
	if len(sealed) > maxFile {
		return fmt.Errorf("%s would have more than %d MiB", v.file, maxFile>>20)
	}
	return writePrivate(v.file, sealed)
}
