package mcpbridge

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/store/mem"
)

// started returns servers that were started together, and answer when told to.
func started(o UpstreamOptions, n int) *Upstreams {
	u, together := &Upstreams{}, &opening{began: time.Now()}
	o.Log = slog.New(slog.DiscardHandler)
	for i := range n {
		s := newUpstream(Upstream{Name: fmt.Sprintf("s%d", i), Command: "x"}, o)
		s.opening = together
		u.servers = append(u.servers, s)
	}
	return u
}

func (s *upstream) answersAfter(d time.Duration) {
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.settle()
	})
}

func TestHowLongListsWait(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		what    string
		answers []time.Duration // 0: none
		mute    bool            // the last of them, the last time
		own     time.Duration   // how long lists wait for the last of them, as it says; 0: it does not
		want    time.Duration
	}{
		{"all answer", []time.Duration{100 * ms, 3000 * ms}, false, 0, 3000 * ms},
		{"one is silent", []time.Duration{100 * ms, 200 * ms, 0}, false, 0, 4000 * ms},
		{"others go on answering", []time.Duration{900 * ms, 1800 * ms, 2700 * ms, 3600 * ms, 4500 * ms, 5400 * ms, 0}, false, 0, 6400 * ms},
		{"others do not cease to", []time.Duration{900 * ms, 1800 * ms, 2700 * ms, 3600 * ms, 4500 * ms, 5400 * ms, 6300 * ms, 7200 * ms, 8100 * ms, 0}, false, 0, 8000 * ms},
		{"one was silent the last time", []time.Duration{100 * ms, 200 * ms, 0}, true, 0, 1000 * ms},
		{"and answers now", []time.Duration{100 * ms, 700 * ms}, true, 0, 700 * ms},
		{"one says how long", []time.Duration{100 * ms, 200 * ms, 0}, false, time.Minute, time.Minute},
		{"one that was silent says how long, and answers", []time.Duration{100 * ms, 9000 * ms}, true, time.Minute, 9000 * ms},
		{"one says that it is soon", []time.Duration{100 * ms, 0}, false, time.Second, 1000 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			u := started(UpstreamOptions{}, len(row.answers))
			u.servers[len(row.answers)-1].ListsWait = row.own
			for i, d := range row.answers {
				if d > 0 {
					u.servers[i].answersAfter(d)
				}
			}
			u.servers[len(row.answers)-1].mute.Store(row.mute)
			began := time.Now()
			u.WaitAwhile(t.Context())
			if took := time.Since(began); took != row.want {
				t.Errorf("%s: the list waited for %s, not %s", row.what, took, row.want)
			}
			again := time.Now()
			u.WaitAwhile(t.Context())
			if took := time.Since(again); took != 0 {
				t.Errorf("%s: a second list waited for %s", row.what, took)
			}
			time.Sleep(10 * time.Second) // of the bubble: all have answered
		})
	}
}

// A server that was waited for in vain is known as such until it answers, or
// is described otherwise.
func TestSilenceIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := UpstreamOptions{Store: new(mem.Store)}
		knownMute := func(change func(*upstream)) bool {
			s := started(o, 1).servers[0]
			if change != nil {
				change(s)
			}
			recall(t.Context(), s.o, []*upstream{s})
			return s.mute.Load()
		}
		if knownMute(nil) {
			t.Error("before it was asked")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		first := started(o, 1).servers[0]
		first.heedSilence(ctx)
		if knownMute(nil) {
			t.Error("when Helve ended before it could answer")
		}
		first.heedSilence(t.Context())
		if !knownMute(nil) {
			t.Error("after it was waited for in vain")
		}
		if knownMute(func(s *upstream) { s.Args = []string{"-other"} }) {
			t.Error("when it is described otherwise")
		}
		first.spoke(t.Context())
		if knownMute(nil) {
			t.Error("after it has answered")
		}
	})
}
