package tokens

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// Stale is how old a daemon's knowledge of the tokens may be: so long,
	// at most, a token works that was revoked elsewhere.
	Stale = time.Second
	// again is how soon after a look an unknown token makes a daemon look again:
	// one that was just created works at once, and guessing costs the store
	// little.
	again = 50 * time.Millisecond
	// patience is how long the store may take to answer.
	patience = 5 * time.Second
)

// ErrRefused is wrapped by the errors that say why a token is not accepted.
var ErrRefused = errors.New("the token is not accepted")

// A Book is what a daemon knows of the tokens: never more than Stale behind the
// store. It is safe for concurrent use.
type Book struct {
	s   *Store
	now func() time.Time

	mu   sync.Mutex
	read time.Time // when; zero: never
	all  map[string]Token
	lost time.Time // when the store could not be read; zero: it could
	err  error     // why
}

// NewBook returns a Book of the tokens in s.
func NewBook(s *Store) *Book { return &Book{s: s, now: time.Now} }

// snapshot returns the tokens as they were at most so long ago. The map is not
// to be changed.
func (b *Book) snapshot(ctx context.Context, most time.Duration) (map[string]Token, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.read.IsZero() && b.now().Sub(b.read) < most {
		return b.all, nil
	}
	if !b.lost.IsZero() && b.now().Sub(b.lost) < again { // let not everybody wait for it in turn
		return nil, b.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	at := b.now()
	list, err := b.s.All(ctx)
	if err != nil {
		b.lost, b.err = b.now(), fmt.Errorf("the tokens cannot be read: %w", err)
		return nil, b.err
	}
	b.lost, b.err = time.Time{}, nil
	b.all = make(map[string]Token, len(list))
	for _, t := range list {
		b.all[t.ID] = t
	}
	b.read = at
	return b.all, nil
}

// since returns the tokens as they were at that time or later. Those who wait
// for it share one reading.
func (b *Book) since(ctx context.Context, at time.Time) (map[string]Token, error) {
	b.mu.Lock()
	wait := again - b.now().Sub(b.read)
	b.mu.Unlock()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return b.snapshot(ctx, b.now().Sub(at))
}

// Any reports whether there are tokens, were they revoked or expired: then
// clients must present one.
func (b *Book) Any(ctx context.Context) (bool, error) {
	all, err := b.snapshot(ctx, Stale)
	return len(all) > 0, err
}

// Check returns the token of that text. An error that wraps ErrRefused says
// why it is none, or is not accepted any more; any other, that it cannot be told.
func (b *Book) Check(ctx context.Context, text string) (Token, error) {
	id, ok := idOf(text)
	if !ok {
		return Token{}, fmt.Errorf("%w: it is not one of helve tokens create", ErrRefused)
	}
	came := b.now()
	all, err := b.snapshot(ctx, Stale)
	t, known := all[id]
	if err == nil && !known { // it may have been made since
		all, err = b.since(ctx, came)
		t, known = all[id]
	}
	switch {
	case err != nil:
		return Token{}, err
	case !known || !t.is(text):
		return Token{}, fmt.Errorf("%w: it is unknown", ErrRefused)
	}
	if state := t.State(b.now()); state != "active" {
		return Token{}, fmt.Errorf("%w: it is %s", ErrRefused, state)
	}
	return t, nil
}

// Active reports whether the token of that id is still accepted.
func (b *Book) Active(ctx context.Context, id string) (bool, error) {
	all, err := b.snapshot(ctx, Stale)
	t, known := all[id]
	return known && t.State(b.now()) == "active", err
}
