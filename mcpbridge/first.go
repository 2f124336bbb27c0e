package mcpbridge

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/helve-ai/helve/store"
)

// The tools of a server that was never asked are not in any list before it has
// answered. Lists wait for it, since clients may list once only; but not for
// long, since a server that says nothing must not keep the tools of the others
// from them.
const (
	listsWait  = 4 * time.Second // from when all servers are started, for one of which nothing is known
	listsBusy  = 8 * time.Second // the same, while others go on answering
	listsPause = time.Second     // the longest time between two answers of those
	muteWait   = time.Second     // for one that had not answered by then the last time either

	muteBucket = "mute" // names of servers that were waited for in vain, with their identities
)

// An opening is how far servers that were started together have come.
type opening struct {
	began    time.Time
	answered atomic.Int64 // when one of them has, last: so long after it began
}

// note notes that a server has answered, or failed.
func (o *opening) note() {
	if o != nil {
		o.answered.Store(int64(time.Since(o.began)))
	}
}

// patience returns how long lists still wait for the server to answer for the
// first time; 0, or less: they do not.
func (s *upstream) patience() time.Duration {
	wait := max(listsWait, min(time.Duration(s.opening.answered.Load())+listsPause, listsBusy))
	switch {
	case s.ListsWait > 0:
		wait = s.ListsWait
	case s.mute.Load():
		wait = muteWait
	}
	return wait - time.Since(s.opening.began)
}

// awhile waits until the tools of the server are known or it has failed once,
// for as long as lists wait for that.
func (s *upstream) awhile(ctx context.Context) {
	for {
		select {
		case <-s.first:
			return
		default:
		}
		left := s.patience()
		if left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-s.first:
		case <-timer.C:
		case <-ctx.Done():
			left = 0
		}
		timer.Stop()
		if left == 0 {
			return
		}
	}
}

// heedSilence notes that lists have waited for the server in vain, if they
// come to. Of a goroutine that Close waits for.
func (s *upstream) heedSilence(ctx context.Context) {
	s.awhile(ctx)
	select {
	case <-s.first:
		return
	default:
	}
	if ctx.Err() != nil {
		return
	}
	s.log.Warn("the MCP server has not answered yet; lists of tools do not wait for it any longer",
		"waited", time.Since(s.opening.began).Round(100*time.Millisecond))
	if !s.mute.Swap(true) {
		s.remember(ctx)
	}
}

// spoke notes that the server has listed its tools.
func (s *upstream) spoke(ctx context.Context) {
	if s.mute.Swap(false) {
		s.remember(ctx)
	}
}

// remember has the store know, for the next start, whether the server was
// waited for in vain.
func (s *upstream) remember(ctx context.Context) {
	if s.o.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := s.o.Store.Update(ctx, func(w store.Writer) error {
		if s.mute.Load() {
			return w.Put(muteBucket, s.Name, []byte(s.identity()))
		}
		return w.Delete(muteBucket, s.Name)
	})
	if err != nil {
		s.log.Debug("the store does not keep whether the MCP server answers", "error", err)
	}
}

// silent waits as lists of tools do, and reports whether nothing is known of
// the server all the same, so that there is nobody to be asked.
func (s *upstream) silent(ctx context.Context) bool {
	s.awhile(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last == nil && s.link == nil && (s.status.State == Configured || s.status.State == Failed)
}

// WaitAwhile waits as Wait does, but as long as a list of tools should: at
// most listsBusy from the start of the servers, and for those that are silent
// while the others have answered no longer than listsWait, unless a server says
// how long.
func (u *Upstreams) WaitAwhile(ctx context.Context) {
	if u == nil {
		return
	}
	for _, s := range u.servers {
		s.awhile(ctx)
	}
}

// Unanswered returns the names of the servers that have neither said which
// tools they have nor failed, those for which shows is true.
func (u *Upstreams) Unanswered(shows func(server string) bool) (names []string) {
	if u == nil {
		return nil
	}
	for _, s := range u.servers {
		select {
		case <-s.first:
			continue
		default:
		}
		if shows(s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}
