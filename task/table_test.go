package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/task"
)

var (
	ann = task.Owner{App: "a", User: "ann", Session: "s"}
	bob = task.Owner{App: "a", User: "bob", Session: "s"}
)

func add(t *testing.T, table *task.Table, o task.Owner, cancel func()) task.Task {
	t.Helper()
	k, err := table.Add(t.Context(), task.Task{Owner: o, Tool: "x.y"}, cancel)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func get(t *testing.T, table *task.Table, k task.Task) task.Task {
	t.Helper()
	got, err := table.Get(t.Context(), k.Owner, k.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestLifeOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(mem.Store)
		table := task.New(s, task.Options{})
		defer table.Close(t.Context())
		k := add(t, table, ann, nil)
		if got := get(t, table, k); got.Status != task.Working || got.Tool != "x.y" || got.ID != k.ID {
			t.Errorf("begun: %+v", got)
		}
		time.Sleep(time.Hour) // it says all the time that it runs
		if got := get(t, table, k); got.Status != task.Working {
			t.Errorf("after an hour: %+v", got)
		}
		for name, o := range map[string]task.Owner{"user": bob, "session": {App: "a", User: "ann", Session: "t"}, "app": {App: "b", User: "ann", Session: "s"}} {
			if _, err := table.Get(t.Context(), o, k.ID); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("for another %s: %v", name, err)
			}
			if err := table.Cancel(t.Context(), o, k.ID); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("cancelled by another %s: %v", name, err)
			}
		}
		k.Status, k.Result = task.Completed, json.RawMessage(`{"x":1}`)
		if err := table.Finish(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		for _, seen := range []*task.Table{table, task.New(s, task.Options{})} {
			if got := get(t, seen, k); got.Status != task.Completed || string(got.Result) != `{"x":1}` || got.Error != nil {
				t.Errorf("ended: %+v", got)
			}
		}
		if err := table.Cancel(t.Context(), ann, k.ID); err != nil || get(t, table, k).Status != task.Completed {
			t.Errorf("cancelled after its end: %v", err)
		}
		time.Sleep(task.DefaultKeep - time.Minute)
		get(t, table, k)
		time.Sleep(2 * time.Minute)
		if _, err := table.Get(t.Context(), ann, k.ID); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("after its time: %v", err)
		}
		last := add(t, table, bob, nil) // which looks for what is kept no longer
		n := 0
		err := s.View(t.Context(), func(r store.Reader) error {
			for _, bucket := range []string{"task", "result", "error"} {
				for range r.Scan(bucket, "") {
					n++
				}
			}
			return nil
		})
		if err != nil || n != 1 {
			t.Errorf("%d values are kept of one task, %v", n, err)
		}
		last.Status = task.Cancelled
		if err := table.Finish(t.Context(), last); err != nil {
			t.Fatal(err)
		}
	})
}

func TestInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(mem.Store)
		one, two := task.New(failing{s, nil}, task.Options{}), task.New(s, task.Options{})
		defer two.Close(t.Context())
		k := add(t, one, ann, nil)
		time.Sleep(time.Hour)
		if got := get(t, two, k); got.Status != task.Working {
			t.Errorf("while the other runs it: %+v", got)
		}
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := get(t, two, k); got.Status != task.Failed || got.Message != task.Interrupted {
			t.Errorf("after the other has ended: %+v", got)
		}
		// One that is killed says nothing.
		off := make(chan struct{})
		killed := task.New(failing{s, off}, task.Options{})
		k = add(t, killed, ann, nil)
		time.Sleep(time.Second)
		close(off)
		if got := get(t, two, k); got.Status != task.Working {
			t.Errorf("just killed: %+v", got)
		}
		time.Sleep(time.Minute)
		if got := get(t, two, k); got.Status != task.Failed || got.Message != task.Interrupted || got.Until.IsZero() {
			t.Errorf("long killed: %+v", got)
		}
		killed.Close(t.Context())
	})
}

// failing is a store that can be cut off.
type failing struct {
	store.Store
	off chan struct{}
}

func (f failing) Update(ctx context.Context, fn func(store.Writer) error) error {
	select {
	case <-f.off:
		return errors.New("cut off")
	default:
		return f.Store.Update(ctx, fn)
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(mem.Store)
		one, two := task.New(s, task.Options{}), task.New(s, task.Options{})
		defer one.Close(t.Context())
		defer two.Close(t.Context())
		for name, by := range map[string]*task.Table{"its own table": one, "another table": two} {
			cancelled := 0
			k := add(t, one, ann, func() { cancelled++ })
			for range 2 {
				if err := by.Cancel(t.Context(), ann, k.ID); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if cancelled != 1 {
				t.Errorf("%s: cancelled %d times", name, cancelled)
			}
			k.Status = task.Cancelled
			if err := one.Finish(t.Context(), k); err != nil || get(t, two, k).Status != task.Cancelled {
				t.Errorf("%s: %v, %+v", name, err, get(t, two, k))
			}
		}
	})
}

func TestMost(t *testing.T) {
	table := task.New(new(mem.Store), task.Options{Most: 2})
	defer table.Close(t.Context())
	add(t, table, ann, nil)
	add(t, table, ann, nil)
	if _, err := table.Add(t.Context(), task.Task{Owner: ann}, nil); !errors.Is(err, task.ErrFull) {
		t.Errorf("the third: %v", err)
	}
	add(t, table, bob, nil)
}
