package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// A fact is what was remembered.
type fact struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`
	Tags    []string  `json:"tags,omitempty"`
	Made    time.Time `json:"made"`
	Session string    `json:"session,omitempty"`
	Outside string    `json:"outside,omitempty"` // why it may be another's; "": it is not
	Gone    time.Time `json:"gone,omitzero"`     // when it was forgotten; zero: it is not
}

// An entry is a text and whose it may be.
type entry struct {
	Text    string `json:"text,omitempty"`
	Session string `json:"session,omitempty"`
	Outside string `json:"outside,omitempty"`
}

// A task is something to be done.
type task struct {
	ID int `json:"id"`
	entry
	Status string `json:"status"`
}

// work is what a user's agents are to do, and the numbers that were given out.
type work struct {
	Goal     entry  `json:"goal,omitzero"`
	Tasks    []task `json:"tasks,omitempty"`
	NextTask int    `json:"next_task,omitempty"`
	NextFact int    `json:"next_fact,omitempty"`
}

const (
	facts = store.Bucket[fact]("facts")
	works = store.Bucket[work]("work")

	goneAge = 30 * 24 * time.Hour
)

// keyOf returns the key of a user, which is the beginning of those of the
// user's facts: nobody reaches another's.
func keyOf(from tool.Origin) string {
	sum := sha256.Sum256([]byte(from.User))
	return hex.EncodeToString(sum[:16]) + "/"
}

// workOf returns what a user's agents are to do; the zero work if they are to do nothing.
func workOf(r store.Reader, key string) (work, error) {
	w, err := works.Get(r, key)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return w, err
}

// change changes what a user's agents are to do.
func (m *memory) change(ctx context.Context, from tool.Origin, edit func(*work) error) error {
	key := keyOf(from)
	return m.host.Store.Update(ctx, func(w store.Writer) error {
		now, err := workOf(w, key)
		if err != nil {
			return err
		}
		if err := edit(&now); err != nil {
			return err
		}
		return works.Put(w, key, now)
	})
}

// add keeps a fact, and returns its id; known says that it was kept already.
func (m *memory) add(ctx context.Context, from tool.Origin, f fact) (id string, known bool, _ error) {
	key := keyOf(from)
	err := m.host.Store.Update(ctx, func(w store.Writer) error {
		known = false
		n := 0
		for k, old := range facts.Scan(w, key) {
			switch {
			case !old.Gone.IsZero():
				if f.Made.Sub(old.Gone) > goneAge {
					if err := facts.Delete(w, k); err != nil {
						return err
					}
				}
			case old.Text == f.Text && (old.Outside == "" || f.Outside != ""):
				id, known = old.ID, true
				return nil
			default:
				n++
			}
		}
		if n >= m.cfg.MaxFacts {
			return tool.Errorf(tool.CodeValidation, "the memory holds %d facts, which is its limit; forget what is no longer true first", n)
		}
		now, err := workOf(w, key)
		if err != nil {
			return err
		}
		now.NextFact++
		id = strconv.Itoa(now.NextFact)
		f.ID = id
		if err := works.Put(w, key, now); err != nil {
			return err
		}
		return facts.Put(w, factKey(key, id), f)
	})
	return id, known, err
}

// factKey returns the key of a fact: in the order of their numbers.
func factKey(user, id string) string { return fmt.Sprintf("%s%08s", user, id) }

// facts returns what a user's agents remember, the oldest first.
func (m *memory) facts(ctx context.Context, from tool.Origin) (all []fact, err error) {
	err = m.host.Store.View(ctx, func(r store.Reader) error {
		all = nil
		for _, f := range facts.Scan(r, keyOf(from)) {
			if f.Gone.IsZero() {
				all = append(all, f)
			}
		}
		return nil
	})
	return all, err
}

// forget has facts forgotten, or remembered again: all of them or none.
func (m *memory) forget(ctx context.Context, from tool.Origin, ids []string, undo bool) error {
	user, now := keyOf(from), m.host.Now().UTC()
	return m.host.Store.Update(ctx, func(w store.Writer) error {
		for _, id := range ids {
			f, err := facts.Get(w, factKey(user, id))
			if errors.Is(err, store.ErrNotFound) || err == nil && f.Gone.IsZero() == undo {
				return tool.Errorf(tool.CodeValidation, "there is no fact %q to do that with; memory.recall lists them", id)
			}
			if err != nil {
				return err
			}
			if f.Gone = now; undo {
				f.Gone = time.Time{}
			}
			if err := facts.Put(w, factKey(user, id), f); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxDone is how many tasks are kept that are done or dropped.
const maxDone = 20

// update adds tasks and changes them. Those that have long been done are left out.
func (w *work) update(in tasksInput, session, outside string, most int) error {
	for _, u := range in.Update {
		i := slices.IndexFunc(w.Tasks, func(t task) bool { return t.ID == u.ID })
		if i < 0 {
			return tool.Errorf(tool.CodeValidation, "there is no task %d; without arguments the list is returned", u.ID)
		}
		t := &w.Tasks[i]
		t.Status = cmp.Or(u.Status, t.Status)
		if u.Text != "" && u.Text != t.Text {
			t.entry = entry{u.Text, session, outside}
		}
	}
	for _, text := range in.Add {
		w.NextTask++
		w.Tasks = append(w.Tasks, task{w.NextTask, entry{text, session, outside}, "open"})
	}
	open := 0
	for _, t := range w.Tasks {
		if !t.over() {
			open++
		}
	}
	if open > most {
		return tool.Errorf(tool.CodeValidation, "%d tasks would be open, the limit is %d; end some first", open, most)
	}
	done := len(w.Tasks) - open
	w.Tasks = slices.DeleteFunc(w.Tasks, func(t task) bool {
		if t.over() && done > maxDone {
			done--
			return true
		}
		return false
	})
	return nil
}

func (t task) over() bool { return t.Status == "done" || t.Status == "dropped" }
