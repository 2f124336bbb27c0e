// Package tokens keeps the tokens by which clients are known, and what each of them may reach.
package tokens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/store"
)

// Prefix begins every token, so that scanners of secrets know one: a token is
// hlv_ID_SECRET, with 12 and 52 lower-case letters and digits.
const Prefix = "hlv_"

// The lengths of the parts of a token.
const (
	idLen     = 12
	secretLen = 52
)

// A Token is what is known of a token. Of the token itself only a hash is kept.
type Token struct {
	ID      string    `json:"id"`                // the part of the token that is no secret
	Name    string    `json:"name"`              // as audits name its user: token:NAME
	Hash    string    `json:"hash"`              // SHA-256 of the token, in hexadecimal digits
	App     string    `json:"app,omitempty"`     // the app that it reaches; "": all
	Profile string    `json:"profile,omitempty"` // what it may use; "": all that the app allows
	View    string    `json:"view,omitempty"`    // what every path shows: full, compact or discovery; "": what the path says
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Revoked time.Time `json:"revoked,omitzero"` // zero: it was not
}

// State says what has become of a token: active, expired or revoked.
func (t *Token) State(now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked"
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return "expired"
	}
	return "active"
}

// User is how audits name who calls with the token.
func (t *Token) User() string { return "token:" + t.Name }

// Errors that callers tell apart.
var (
	ErrName    = errors.New("bad name")
	ErrTaken   = errors.New("the name is taken")
	ErrUnknown = errors.New("no such token")
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// bucket holds the tokens, by their ids.
const bucket = store.Bucket[Token]("tokens")

// A Store is the tokens within a store, which several daemons may share. It is
// safe for concurrent use.
type Store struct{ s store.Store }

// In returns the tokens within s.
func In(s store.Store) *Store { return &Store{store.Sub(s, "access")} }

// Create keeps a new token with the name, the bounds and the end of t, and
// returns it with its text, which is told once and cannot be had again.
func (s *Store) Create(ctx context.Context, t Token, now time.Time) (Token, string, error) {
	if !nameForm.MatchString(t.Name) {
		return t, "", fmt.Errorf("%w %q: want 1 to 64 letters, digits and . _ @ -, a letter or digit first", ErrName, t.Name)
	}
	if !t.Expires.IsZero() && !now.Before(t.Expires) {
		return t, "", fmt.Errorf("expires %s: that is past", t.Expires.Format(time.RFC3339))
	}
	t.ID = strings.ToLower(rand.Text()[:idLen])
	text := Prefix + t.ID + "_" + strings.ToLower(rand.Text()+rand.Text())
	t.Hash, t.Created, t.Revoked = hash(text), now.UTC(), time.Time{}
	err := s.s.Update(ctx, func(w store.Writer) error {
		for _, old := range bucket.All(w) {
			if old.Name == t.Name && old.Revoked.IsZero() {
				return fmt.Errorf("%w: %q is the token %s%s; revoke it, or choose another name", ErrTaken, t.Name, Prefix, old.ID)
			}
		}
		return bucket.Put(w, t.ID, t)
	})
	return t, text, err
}

// All returns all tokens, the oldest first.
func (s *Store) All(ctx context.Context) ([]Token, error) {
	var all []Token
	err := s.s.View(ctx, func(r store.Reader) error {
		all = nil
		for _, t := range bucket.All(r) {
			all = append(all, t)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Token) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, err
}

// Revoke revokes the token of that name or id. One that was revoked before
// stays as it is; it is kept, so that a daemon whose last token was revoked
// does not become open to all.
func (s *Store) Revoke(ctx context.Context, which string, now time.Time) (Token, error) {
	which = strings.TrimPrefix(which, Prefix)
	var got Token
	err := s.s.Update(ctx, func(w store.Writer) error {
		got = Token{}
		for _, t := range bucket.All(w) {
			better := t.Revoked.IsZero() || got.ID == "" // a name may have been used before
			if (t.ID == which || t.Name == which) && better {
				got = t
			}
		}
		if got.ID == "" {
			return fmt.Errorf("%w: %.80q", ErrUnknown, which)
		}
		if got.Revoked.IsZero() {
			got.Revoked = now.UTC()
		}
		return bucket.Put(w, got.ID, got)
	})
	return got, err
}

// Prune forgets the tokens that were revoked or have expired, and returns them.
func (s *Store) Prune(ctx context.Context, now time.Time) ([]Token, error) {
	var gone []Token
	err := s.s.Update(ctx, func(w store.Writer) error {
		gone = nil
		for id, t := range bucket.All(w) {
			if t.State(now) != "active" {
				gone = append(gone, t)
				if err := bucket.Delete(w, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return gone, err
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// idOf returns the id in the text of a token; false: it does not have the form
// of one.
func idOf(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok || len(rest) != idLen+1+secretLen || rest[idLen] != '_' {
		return "", false
	}
	return rest[:idLen], true
}

// is reports whether text is the token, in a time that does not depend on how
// much of it is right.
func (t *Token) is(text string) bool {
	return subtle.ConstantTimeCompare([]byte(hash(text)), []byte(t.Hash)) == 1
}
