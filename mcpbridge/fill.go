package mcpbridge

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/helve-ai/helve/credentials"
)

// A fullUpstream is a server with the values to which its description refers.
type fullUpstream struct {
	Upstream
	account *account // nil: nobody signs in
	stamp   string   // of what was kept when it was filled in
}

// full returns the server as it was filled in last, or as it is described.
func (s *upstream) full() *fullUpstream {
	if w := s.filled.Load(); w != nil {
		return w
	}
	return &fullUpstream{Upstream: s.Upstream}
}

// unfilled is the error of a description that cannot be filled in.
type unfilled struct {
	error
	stamp string // of what was kept when it was tried
}

// Unwrap returns the error.
func (u *unfilled) Unwrap() error { return u.error }

func needsSetup(err error) bool {
	var u *unfilled
	return errors.As(err, &u)
}

// stamp changes when secrets are kept or forgotten.
func (s *upstream) stamp() string {
	if s.o.Credentials == nil {
		return ""
	}
	return s.o.Credentials.Stamp()
}

// fill fills in what the description refers to, unless nothing was kept or
// forgotten since. Of the goroutine that runs the server.
func (s *upstream) fill(ctx context.Context) error {
	stamp, old := s.stamp(), s.filled.Load()
	if s.Fill == nil || old != nil && old.stamp == stamp {
		return nil
	}
	up, err := s.askFill(ctx)
	if err == nil {
		err = up.check()
	}
	if err != nil {
		s.lack.Store(&unfilled{err, stamp})
		return s.lack.Load()
	}
	w := &fullUpstream{Upstream: up, stamp: stamp}
	if old != nil && reflect.DeepEqual(old.Upstream, up) {
		w.account = old.account // and what it knows
	} else {
		w.account = newAccount(&up, &s.o)
	}
	s.filled.Store(w)
	if old != nil && old.account != w.account {
		s.running.Go(old.account.close)
	}
	return nil
}

// askFill calls Fill. Where that waits for a keyring, it is left behind when
// ctx ends: keyrings cannot be told to stop asking.
func (s *upstream) askFill(ctx context.Context) (Upstream, error) {
	var up Upstream
	done := make(chan error, 1)
	go func() {
		filled, err := s.Fill()
		up = filled
		done <- err
	}()
	select {
	case err := <-done:
		return up, err
	case <-ctx.Done():
		return Upstream{}, context.Cause(ctx)
	}
}

// refill tries to fill in what is lacking, so that the state tells of it
// before the server is called.
func (s *upstream) refill(ctx context.Context) {
	if s.Fill == nil {
		return
	}
	if err := s.fill(ctx); err != nil {
		s.tried(ctx, nil, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.next = 0, time.Time{}
	if s.status.State != NeedsSetup {
		return
	}
	state := Configured
	if s.offered != nil {
		state = Known
	}
	s.enter(state, nil)
}

// mended reports whether what the description lacks may be there by now: a
// secret was kept since, or the keyring was unlocked.
func (s *upstream) mended() bool {
	lack := s.lack.Load()
	if lack == nil || s.o.Credentials == nil {
		return false
	}
	return s.stamp() != lack.stamp || errors.Is(lack, credentials.ErrKeyring) && s.o.Credentials.Unlocked()
}
