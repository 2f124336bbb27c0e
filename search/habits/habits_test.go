package habits_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/helve-ai/helve/search/habits"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

type world struct {
	*habits.Book
	t     *testing.T
	now   time.Time
	store store.Store
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Unix(1e9, 0), store: new(mem.Store)}
	w.Book = habits.New(w.store, func() time.Time { return w.now })
	return w
}

func (w *world) like(query string) map[string]float32 {
	w.t.Helper()
	out, err := w.Like(w.t.Context(), query)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) called(from tool.Origin, name string) {
	w.t.Helper()
	if err := w.Called(w.t.Context(), from, name); err != nil {
		w.t.Fatal(err)
	}
}

var anna = tool.Origin{App: "a", User: "anna", Session: "1", Kind: tool.KindMCP}

func TestLearnDecayForget(t *testing.T) {
	w := newWorld(t)
	w.Searched(anna, "make the queries faster", []string{"db.index", "db.query"})
	w.called(anna, "db.index")
	for query, want := range map[string]float32{"make the queries faster": .5, "Make query faster!": .5, "faster queries": .5 * 2 / 3, "send a mail": 0, "": 0} {
		if got := w.like(query)["db.index"]; got < want-.001 || got > want+.001 {
			t.Errorf("after %q it was of use by %v, want %v", query, got, want)
		}
	}
	for range 20 { // the same search teaches once
		w.called(anna, "db.index")
	}
	if got := w.like("make the queries faster"); got["db.index"] != .5 || len(got) != 1 {
		t.Errorf("after one search and many calls: %v", got)
	}
	for range 20 {
		w.Searched(anna, "make the queries faster", []string{"db.index"})
		w.called(anna, "db.index")
	}
	if got := w.like("make the queries faster")["db.index"]; got < .99 || got > 1 {
		t.Errorf("after many searches: %v", got)
	}
	w.now = w.now.Add(30 * 24 * time.Hour)
	if got := w.like("make the queries faster")["db.index"]; got < .49 || got > .51 {
		t.Errorf("after a month: %v", got)
	}
	w.now = w.now.Add(365 * 24 * time.Hour)
	if got := w.like("make the queries faster"); len(got) > 0 {
		t.Errorf("after a year: %v", got)
	}
	if n, err := habits.Forget(t.Context(), w.store); n != 1 || err != nil {
		t.Errorf("%d were forgotten, %v", n, err)
	}
}

// A call that is nobody's answer to a search teaches nothing.
func TestWhatTeachesNothing(t *testing.T) {
	other := func(change func(*tool.Origin)) tool.Origin { o := anna; change(&o); return o }
	for name, from := range map[string]tool.Origin{
		"another user":    other(func(o *tool.Origin) { o.User = "bob" }),
		"another session": other(func(o *tool.Origin) { o.Session = "2" }),
		"another agent":   other(func(o *tool.Origin) { o.Agent = "x" }),
		"another kind":    other(func(o *tool.Origin) { o.Kind = tool.KindHook }),
	} {
		w := newWorld(t)
		w.Searched(anna, "delete a file", []string{"f.delete"})
		w.called(from, "f.delete")
		if got := w.like("delete a file"); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	w := newWorld(t)
	w.Searched(anna, "delete a file", []string{"f.delete"})
	w.called(anna, "mcp.evil.push") // was not shown
	w.now = w.now.Add(11 * time.Minute)
	w.called(anna, "f.delete") // too late
	nobody := anna
	nobody.Session = ""
	w.Searched(nobody, "delete a file", []string{"f.delete"})
	w.called(nobody, "f.delete")
	if got := w.like("delete a file"); len(got) > 0 {
		t.Errorf("learnt: %v", got)
	}
}

func TestHabitsAreBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 510 {
		w.now = w.now.Add(time.Minute)
		w.Searched(anna, fmt.Sprintf("thing number%d", i), []string{"t"})
		w.called(anna, "t")
	}
	if len(w.like("thing number0")) > 0 || len(w.like("thing number509")) == 0 {
		t.Error("the weakest do not go first")
	}
	if n, _ := habits.Forget(t.Context(), w.store); n != 500 {
		t.Errorf("%d are kept", n)
	}
}

// Tools that were called one after the other, twice after searches, usually
// follow on each other.
func TestAround(t *testing.T) {
	w := newWorld(t)
	for i := range 2 {
		w.Searched(anna, "find a movie and its actors", []string{"f.search", "f.credits"})
		w.called(anna, "f.search")
		w.called(anna, "f.credits")
		before, _, err := w.Around(t.Context(), "f.credits")
		if err != nil || len(before) != i {
			t.Errorf("after %d times: %q, %v", i+1, before, err)
		}
	}
	if before, after, _ := w.Around(t.Context(), "f.search"); len(before) != 0 || fmt.Sprint(after) != "[f.credits]" {
		t.Errorf("around the first: %q and %q", before, after)
	}
	if got := w.like("send a mail"); len(got) > 0 {
		t.Errorf("steps count as queries: %v", got)
	}
}
