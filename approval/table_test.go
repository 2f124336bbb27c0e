package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/approval"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/store/sqlite"
)

var owner = approval.Owner{App: "demo", User: "ann", Session: "s1"}

func about(tool string) approval.Question {
	return approval.Question{Owner: owner, Tool: tool, Call: "c", Args: json.RawMessage(`{"a":1}`), Reasons: []string{"it writes"},
		Scope: approval.Scope{Shown: "all", Key: "k"}}
}

type outcome struct {
	q   approval.Question
	err error
}

// ask asks in the background, and returns the question when it is kept.
func ask(t *testing.T, ctx context.Context, table *approval.Table, q approval.Question) (approval.Question, <-chan outcome) {
	t.Helper()
	ready, done := make(chan approval.Question, 1), make(chan outcome, 1)
	go func() {
		got, err := table.Ask(ctx, q, func(q approval.Question) { ready <- q })
		done <- outcome{got, err}
	}()
	select {
	case q := <-ready:
		return q, done
	case out := <-done:
		t.Fatalf("it could not be asked: %v", out.err)
	}
	return q, nil
}

func open(t *testing.T, s store.Store, runner string) *approval.Table {
	t.Helper()
	table := approval.New(s, approval.Options{Runner: runner})
	t.Cleanup(func() { table.Close() })
	return table
}

// Of many answers at once, in two processes, one counts.
func TestOneAnswerCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	var tables []*approval.Table
	for _, runner := range []string{"one", "two"} {
		s, err := sqlite.Open(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		tables = append(tables, open(t, s, runner))
	}
	q, done := ask(t, t.Context(), tables[0], about("x.y"))
	var mu sync.Mutex
	var won []string
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			by := string(rune('a' + i))
			_, err := tables[i%2].Answer(t.Context(), q.ID, approval.Answer{Approve: i%3 == 0, By: by, How: "test"})
			switch {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				won = append(won, by)
			case !errors.Is(err, approval.ErrOver) || !strings.Contains(err.Error(), "(test)"):
				t.Errorf("the loser %s is told %v", by, err)
			}
		})
	}
	all.Wait()
	out := <-done
	if out.err != nil || len(won) != 1 || out.q.Answer == nil || out.q.Answer.By != won[0] {
		t.Errorf("won: %v; the call learns %+v, %v", won, out.q, out.err)
	}
}

func TestAnswers(t *testing.T) {
	approve := approval.Answer{Approve: true, By: "ann"}
	for name, test := range map[string]struct {
		a     approval.Answer
		state approval.State
		err   error
	}{
		"approve":             {approve, approval.Approved, nil},
		"deny":                {approval.Answer{By: "ann", Feedback: "not there"}, approval.Denied, nil},
		"nobody":              {approval.Answer{Approve: true}, approval.Waiting, approval.ErrBad},
		"denied with edits":   {approval.Answer{By: "ann", Args: json.RawMessage(`{}`)}, approval.Waiting, approval.ErrBad},
		"edits of a session":  {approval.Answer{Approve: true, Session: true, By: "ann", Args: json.RawMessage(`{}`)}, approval.Waiting, approval.ErrBad},
		"edits of no object":  {approval.Answer{Approve: true, By: "ann", Args: json.RawMessage(`[1]`)}, approval.Waiting, approval.ErrBad},
		"edits of null":       {approval.Answer{Approve: true, By: "ann", Args: json.RawMessage(`null`)}, approval.Waiting, approval.ErrBad},
		"too long a feedback": {approval.Answer{By: "ann", Feedback: strings.Repeat("x", 5000)}, approval.Waiting, approval.ErrBad},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			table := open(t, new(mem.Store), "one")
			q, done := ask(t, ctx, table, about("x.y"))
			_, err := table.Answer(t.Context(), q.ID, test.a)
			if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("answered: %v", err)
			}
			if test.state == approval.Waiting {
				if now, err := table.Get(t.Context(), q.ID); err != nil || now.State != approval.Waiting {
					t.Errorf("after a bad answer: %s, %v", now.State, err)
				}
				cancel()
				if out := <-done; out.err == nil {
					t.Errorf("a withdrawn call has an answer: %+v", out.q)
				}
				return
			}
			cancel2 := cancel
			out := <-done
			cancel2()
			if out.err != nil || out.q.State != test.state || out.q.Answer.Feedback != test.a.Feedback {
				t.Errorf("the call learns %+v, %v", out.q, out.err)
			}
			if _, err := table.Answer(t.Context(), q.ID, approve); !errors.Is(err, approval.ErrOver) {
				t.Errorf("a second answer: %v", err)
			}
		})
	}
}

func TestUnknownIDs(t *testing.T) {
	table := open(t, new(mem.Store), "one")
	for _, id := range []string{"", "nothing", strings.Repeat("x", 5000), "a\x00b", "\xff"} {
		if _, err := table.Answer(t.Context(), id, approval.Answer{Approve: true, By: "ann"}); !errors.Is(err, approval.ErrNone) {
			t.Errorf("%.10q: %v", id, err)
		}
		if _, err := table.Get(t.Context(), id); !errors.Is(err, approval.ErrNone) {
			t.Errorf("%.10q: %v", id, err)
		}
	}
}

// A question that is not answered in time, and one whose process is gone, can
// be approved by nobody.
func TestTimeAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(mem.Store)
		one := approval.New(s, approval.Options{Runner: "one", Timeout: time.Minute})
		start := time.Now()
		q, done := ask(t, t.Context(), one, about("x.y"))
		out := <-done
		if out.err != nil || out.q.State != approval.TimedOut || time.Since(start) != time.Minute {
			t.Errorf("after %v: %+v, %v", time.Since(start), out.q, out.err)
		}
		if _, err := one.Answer(t.Context(), q.ID, approval.Answer{Approve: true, By: "ann"}); !errors.Is(err, approval.ErrOver) {
			t.Errorf("a late answer: %v", err)
		}
		// A question that nobody waits for is left as by a process that was killed.
		q.ID, q.Runner, q.State, q.Deadline = "left", "killed", approval.Waiting, time.Now().Add(time.Hour)
		err := s.Update(t.Context(), func(w store.Writer) error { return store.Bucket[approval.Question]("question").Put(w, q.ID, q) })
		if err != nil {
			t.Fatal(err)
		}
		if now, err := one.Get(t.Context(), q.ID); err != nil || now.State != approval.Restarted {
			t.Errorf("after a restart: %s, %v", now.State, err)
		}
		if _, err := one.Answer(t.Context(), q.ID, approval.Answer{Approve: true, By: "ann"}); !errors.Is(err, approval.ErrOver) {
			t.Errorf("an answer after a restart: %v", err)
		}
		if waiting, err := one.List(t.Context(), false); err != nil || len(waiting) != 0 {
			t.Errorf("waiting: %+v, %v", waiting, err)
		}
		one.Close()
	})
}

// A table that is closed denies what waits in it.
func TestClose(t *testing.T) {
	table := open(t, new(mem.Store), "one")
	_, done := ask(t, t.Context(), table, about("x.y"))
	table.Close()
	if out := <-done; out.err != nil || out.q.State != approval.Restarted {
		t.Errorf("after the end: %+v, %v", out.q, out.err)
	}
}

func TestSessionGrants(t *testing.T) {
	s := new(mem.Store)
	table, other := open(t, s, "one"), open(t, s, "two")
	q, done := ask(t, t.Context(), table, about("x.y"))
	if _, err := other.Answer(t.Context(), q.ID, approval.Answer{Approve: true, Session: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	<-done
	covered := func(table *approval.Table, o approval.Owner, tool, reason, key string) bool {
		t.Helper()
		g, err := table.Granted(t.Context(), o, tool, []string{reason}, approval.Scope{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return g != nil
	}
	if !covered(table, owner, "x.y", "it writes", "k") {
		t.Error("it is not covered by its own approval")
	}
	elsewhere := owner
	elsewhere.Session = "s2"
	bob := owner
	bob.User = "bob"
	if covered(table, elsewhere, "x.y", "it writes", "k") || covered(table, bob, "x.y", "it writes", "k") || covered(other, owner, "x.y", "it writes", "k") ||
		covered(table, owner, "x.z", "it writes", "k") || covered(table, owner, "x.y", "it deletes", "k") || covered(table, owner, "x.y", "it writes", "l") ||
		covered(table, owner, "x.y", "it writes", "") {
		t.Error("another session, user, process, tool, reason or scope is covered")
	}
	if all, err := other.Grants(t.Context()); err != nil || len(all) != 1 || all[0].ID != q.ID {
		t.Errorf("grants: %+v, %v", all, err)
	}
	if err := table.EndSession(t.Context(), elsewhere); err != nil || !covered(table, owner, "x.y", "it writes", "k") {
		t.Errorf("another session's end: %v", err)
	}
	if err := table.EndSession(t.Context(), owner); err != nil || covered(table, owner, "x.y", "it writes", "k") {
		t.Errorf("it outlives its session: %v", err)
	}
	if err := table.Revoke(t.Context(), q.ID); !errors.Is(err, approval.ErrNone) {
		t.Errorf("revoked: %v", err)
	}
}

// The arguments that an answer brings reach the process that waits, and nobody else.
func TestEditedArguments(t *testing.T) {
	s := new(mem.Store)
	table := open(t, s, "one")
	cli := approval.New(s, approval.Options{Runner: "two", Redact: func(json.RawMessage) json.RawMessage { return json.RawMessage(`{"t":"[redacted]"}`) }})
	q, done := ask(t, t.Context(), table, about("x.y"))
	if _, err := cli.Answer(t.Context(), q.ID, approval.Answer{Approve: true, By: "ann", Args: json.RawMessage(`{"t":"hush"}`)}); err != nil {
		t.Fatal(err)
	}
	if out := <-done; out.err != nil || string(out.q.Answer.Args) != `{"t":"hush"}` {
		t.Errorf("the call learns %+v, %v", out.q.Answer, out.err)
	}
	err := s.View(t.Context(), func(r store.Reader) error {
		for _, bucket := range []string{"question", "edited", "grant"} {
			for key, value := range r.Scan(bucket, "") {
				if strings.Contains(string(value), "hush") {
					t.Errorf("%s %s holds %s", bucket, key, value)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Somebody counts as watching as long as they do.
func TestAttend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := approval.New(new(mem.Store), approval.Options{})
		is := func() bool {
			t.Helper()
			is, err := table.Attended(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return is
		}
		if is() {
			t.Error("nobody watches")
		}
		ctx, leave := context.WithCancel(t.Context())
		if err := table.Attend(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if !is() {
			t.Error("somebody watches")
		}
		leave()
		synctest.Wait()
		if is() {
			t.Error("nobody watches any more")
		}
		table.Close()
	})
}
