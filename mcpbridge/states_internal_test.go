package mcpbridge

import (
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A server that has been asked for its tools for long says so, before it counts
// as failed.
func TestSlowStart(t *testing.T) {
	s := newUpstream(Upstream{Name: "mute", Command: "x"}, UpstreamOptions{Log: slog.New(slog.DiscardHandler)})
	if st := s.now(); st.Error != "" {
		t.Errorf("before it was asked: %+v", st)
	}
	s.began = time.Now()
	if st := s.now(); st.Error != "" {
		t.Errorf("when it has just been asked: %+v", st)
	}
	s.began = time.Now().Add(-listsWait - time.Second)
	s.opening.began = s.began
	if st := s.now(); st.State != Configured || st.Error != "it has not answered for 5s, and lists of tools do not wait for it any longer; after 30s it counts as failed" {
		t.Errorf("%+v", st)
	}
	ups := &Upstreams{servers: []*upstream{s}}
	all := func(string) bool { return true }
	if why := ups.Missing("mcp.mute.get_it", all); why == nil || !strings.Contains(why.Message, "not known (configured): it has not answered for 5s") {
		t.Errorf("%v", why)
	}
	for _, other := range []string{"mcp.muted.get_it", "mcp.mute", "mute.get_it", "get_it"} {
		if why := ups.Missing(other, all); why != nil {
			t.Errorf("%s: %v", other, why)
		}
	}
	if why := ups.Missing("mcp.mute.get_it", func(string) bool { return false }); why != nil {
		t.Errorf("who may not know of the server is told of it: %v", why)
	}
	s.enter(Known, nil)
	s.last = new(record)
	if st, why := s.now(), ups.Missing("mcp.mute.get_it", all); st.Error != "" || why != nil {
		t.Errorf("%+v, %v", st, why)
	}
}

// Errors are told without the words of the library and of the system's calls,
// and with what the server printed in place of messages.
func TestErrorsForPeople(t *testing.T) {
	err := errors.New(`calling "initialize": sending "initialize": rejected by transport: Post "http://x/mcp": connection refused`)
	if got := plain(err); got != `Post "http://x/mcp": connection refused` {
		t.Error(got)
	}
	if got := plain(errors.New(`the server says: calling "x": no`)); got != `the server says: calling "x": no` {
		t.Error(got)
	}
	p := &process{exited: make(chan struct{})}
	close(p.exited)
	p.strayed("Welcome")
	p.strayed("and more")
	if got := p.epitaph(); got != "the process ended (exit status 0); it printed what is no message: Welcome" {
		t.Error(got)
	}
	p = &process{exited: p.exited}
	p.logLines(strings.NewReader("loader:1\n  throw err;\n  ^\n\nError: Cannot find module 'x.js'\n  at a\n  at b\n  at c\n  at d\n  at e\n{}\nNode.js\n"), slog.New(slog.DiscardHandler))
	if got := p.epitaph(); got != "the process ended (exit status 0), saying: Error: Cannot find module 'x.js' | … | at c | at d | at e | {} | Node.js" {
		t.Error(got)
	}
	p = &process{exited: p.exited}
	p.logLines(strings.NewReader("starting\nfatal: no licence\n"), slog.New(slog.DiscardHandler))
	if got := p.epitaph(); got != "the process ended (exit status 0), saying: starting | fatal: no licence" {
		t.Error(got)
	}
	s := newUpstream(Upstream{Name: "gone", Command: "/no/such/program"}, UpstreamOptions{Log: slog.New(slog.DiscardHandler)})
	s.keeper = &keeper{}
	_, err = new(link).transport(s, nil, false)
	if err == nil || err.Error() != "the server cannot be started: /no/such/program: no such file or directory" || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A server that waits for somebody rests between two looks, however long ago
// it could have been tried again.
func TestNap(t *testing.T) {
	for _, test := range []struct {
		early                  time.Duration
		wanted, lacking, login bool
		want                   time.Duration
	}{
		{-time.Hour, false, true, false, loginLook},
		{time.Hour, false, true, false, loginLook},
		{time.Millisecond, true, true, false, time.Millisecond},
		{time.Hour, true, true, false, loginLook},
		{time.Hour, true, false, true, loginLook},
		{time.Hour, true, false, false, time.Hour},
		{-time.Hour, false, false, false, 0},
		{time.Hour, false, false, true, 0},
	} {
		if got := nap(test.early, test.wanted, test.lacking, test.login); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
