package task

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/helve-ai/helve/store"
)

const (
	// DefaultKeep is how long a task is kept after its end.
	DefaultKeep = time.Hour
	// DefaultMost is how many tasks of one owner are kept.
	DefaultMost = 200

	beat  = 3 * time.Second  // how often a table says that it still runs its tasks
	lease = 15 * time.Second // after how long without a word its tasks count as interrupted
	tidy  = time.Minute      // how often what is kept no longer is looked for

	abandoned = 24 * time.Hour // after which nobody will ask about a table that is gone
)

// Options say how a Table keeps tasks.
type Options struct {
	Most int          // of one owner, those that have ended included; 0: DefaultMost
	Log  *slog.Logger // nil: nothing is logged
}

// A Table keeps tasks in a store, which tables of other processes may use at
// the same time: each runs the tasks that it began, and shows and cancels those
// of the others. It is safe for concurrent use.
type Table struct {
	store store.Store
	o     Options
	id    string

	mu      sync.Mutex
	running map[string]live // by key
	beating bool
	tidied  time.Time
	stop    chan struct{} // closed by Close
	stopped bool
	done    sync.WaitGroup
}

// live is a task that this table runs.
type live struct {
	id     string
	cancel func()
}

// New returns a table of the tasks in s. Close ends it, and not s.
func New(s store.Store, o Options) *Table {
	if o.Most <= 0 {
		o.Most = DefaultMost
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Table{store: s, o: o, id: rand.Text(), running: map[string]live{}, stop: make(chan struct{})}
}

const (
	tasks   store.Bucket[Task]      = "task"
	runners store.Bucket[time.Time] = "runner" // until when a table's tasks count as running
	results                         = "result"
	faults                          = "error"
)

// prefix is the same for all tasks of an owner, and for no other's.
func (o Owner) prefix() string {
	data, _ := json.Marshal(o)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12]) + "/"
}

func key(o Owner, id string) string { return o.prefix() + id }

// Add begins a task: when it returns, the task is kept, and a Get finds it. The
// table sets the id and the times. From then on cancel is called, once at most,
// when the owner wants the task cancelled, until Finish. ErrFull: the owner has
// as many tasks as one may.
func (t *Table) Add(ctx context.Context, k Task, cancel func()) (Task, error) {
	now := time.Now().UTC()
	k.ID, k.Runner, k.Status = rand.Text(), t.id, Working
	k.Created, k.Updated, k.Until, k.Stop = now, now, time.Time{}, false
	if k.Keep <= 0 {
		k.Keep = DefaultKeep
	}
	t.tidy(ctx, now)
	at := key(k.Owner, k.ID)
	t.mu.Lock()
	t.running[at] = live{k.ID, cancel}
	t.mu.Unlock()
	err := t.store.Update(ctx, func(w store.Writer) error {
		n := 0
		for _, other := range tasks.Scan(w, k.Owner.prefix()) {
			if !other.gone(now) {
				n++
			}
		}
		if n >= t.o.Most {
			return ErrFull
		}
		if err := runners.Put(w, t.id, now.Add(lease)); err != nil {
			return err
		}
		return tasks.Put(w, at, k)
	})
	if err != nil {
		t.forget(at)
		return Task{}, err
	}
	t.beat()
	return k, nil
}

func (k *Task) gone(now time.Time) bool { return !k.Until.IsZero() && now.After(k.Until) }

// Finish keeps how a task of this table ended: k's status, message, result and
// error.
func (t *Table) Finish(ctx context.Context, k Task) error {
	at := key(k.Owner, k.ID)
	err := t.store.Update(ctx, func(w store.Writer) error {
		old, err := tasks.Get(w, at)
		if err != nil {
			return err
		}
		old.Status, old.Message = k.Status, k.Message
		return t.end(w, at, &old, k.Result, k.Error)
	})
	if err == nil {
		t.forget(at)
	}
	return err
}

// end writes that a task is over.
func (t *Table) end(w store.Writer, at string, k *Task, result, fault json.RawMessage) error {
	k.Updated = time.Now().UTC()
	k.Until = k.Updated.Add(k.Keep)
	for bucket, data := range map[string]json.RawMessage{results: result, faults: fault} {
		if data != nil {
			if err := w.Put(bucket, at, data); err != nil {
				return err
			}
		}
	}
	return tasks.Put(w, at, *k)
}

func (t *Table) forget(at string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, at)
}

// Get returns an owner's task. A task whose process is gone has failed.
func (t *Table) Get(ctx context.Context, o Owner, id string) (k Task, err error) {
	at, now := key(o, id), time.Now()
	lost := false
	err = t.store.View(ctx, func(r store.Reader) error {
		if k, err = read(r, at); err != nil {
			return err
		}
		lost, err = t.lost(r, k, now)
		return err
	})
	if err == nil && lost {
		k, err = t.interrupt(ctx, at)
	}
	if err == nil && k.gone(now) || errors.Is(err, store.ErrNotFound) {
		return Task{}, ErrNotFound
	}
	return k, err
}

func read(r store.Reader, at string) (k Task, err error) {
	if k, err = tasks.Get(r, at); err != nil {
		return k, err
	}
	for bucket, to := range map[string]*json.RawMessage{results: &k.Result, faults: &k.Error} {
		data, err := r.Get(bucket, at)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return k, err
		}
		*to = data
	}
	return k, nil
}

// lost reports whether nobody runs a task that has not ended.
func (t *Table) lost(r store.Reader, k Task, now time.Time) (bool, error) {
	if k.Status.Over() {
		return false, nil
	}
	if k.Runner == t.id {
		t.mu.Lock()
		defer t.mu.Unlock()
		_, runs := t.running[key(k.Owner, k.ID)]
		return !runs, nil
	}
	until, err := runners.Get(r, k.Runner)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return now.After(until), err
}

// interrupt notes that nobody runs a task, unless somebody ended it meanwhile.
func (t *Table) interrupt(ctx context.Context, at string) (k Task, err error) {
	err = t.store.Update(ctx, func(w store.Writer) error {
		if k, err = read(w, at); err != nil {
			return err
		}
		lost, err := t.lost(w, k, time.Now())
		if err != nil || !lost {
			return err
		}
		k.Status, k.Message = Failed, Interrupted
		return t.end(w, at, &k, nil, nil)
	})
	return k, err
}

// Cancel tells whoever runs an owner's task that it is not wanted any more. A
// task that has ended stays as it is.
func (t *Table) Cancel(ctx context.Context, o Owner, id string) error {
	at := key(o, id)
	k, err := t.Get(ctx, o, id)
	if err != nil || k.Status.Over() {
		return err
	}
	if k.Runner == t.id {
		t.cancel(at)
		return nil
	}
	return t.store.Update(ctx, func(w store.Writer) error {
		k, err := tasks.Get(w, at)
		if err != nil || k.Status.Over() {
			return err
		}
		k.Stop = true
		return tasks.Put(w, at, k)
	})
}

// cancel cancels a task of this table, unless that was done before.
func (t *Table) cancel(at string) {
	t.mu.Lock()
	l, runs := t.running[at]
	if runs {
		t.running[at] = live{id: l.id}
	}
	t.mu.Unlock()
	if runs && l.cancel != nil {
		l.cancel()
	}
}

// Close forgets the tasks that this table still runs: to others they are
// interrupted.
func (t *Table) Close(ctx context.Context) error {
	t.mu.Lock()
	left := t.running
	t.running = map[string]live{}
	ran := t.beating
	if !t.stopped {
		t.stopped = true
		close(t.stop)
	}
	t.mu.Unlock()
	t.done.Wait()
	if !ran && len(left) == 0 {
		return nil
	}
	return t.store.Update(ctx, func(w store.Writer) error {
		for at := range left {
			k, err := tasks.Get(w, at)
			if errors.Is(err, store.ErrNotFound) || k.Status.Over() {
				continue
			}
			if err != nil {
				return err
			}
			k.Status, k.Message = Failed, Interrupted
			if err := t.end(w, at, &k, nil, nil); err != nil {
				return err
			}
		}
		return runners.Delete(w, t.id)
	})
}

// beat says from time to time that the tasks of this table run, as long as
// there are any.
func (t *Table) beat() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.beating || t.stopped {
		return
	}
	t.beating = true
	t.done.Go(func() {
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-t.stop:
				return
			}
			if t.rests() {
				return
			}
			if err := t.renew(); err != nil {
				t.o.Log.Error("the tasks that run cannot be kept", "error", err)
			}
		}
	})
}

// rests reports whether the table runs nothing: then it says no more.
func (t *Table) rests() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beating = len(t.running) > 0
	return !t.beating
}

// renew says that the tasks of this table run, and cancels those that others
// were told to cancel.
func (t *Table) renew() error {
	t.mu.Lock()
	var all []string
	for at := range t.running {
		all = append(all, at)
	}
	t.mu.Unlock()
	var unwanted []string
	ctx, end := context.WithTimeout(context.Background(), lease)
	defer end()
	err := t.store.Update(ctx, func(w store.Writer) error {
		unwanted = nil
		for _, at := range all {
			k, err := tasks.Get(w, at)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if k.Stop {
				unwanted = append(unwanted, at)
			}
		}
		return runners.Put(w, t.id, time.Now().Add(lease).UTC())
	})
	for _, at := range unwanted {
		t.cancel(at)
	}
	return err
}

// tidy deletes what is kept no longer.
func (t *Table) tidy(ctx context.Context, now time.Time) {
	t.mu.Lock()
	early := now.Sub(t.tidied) < tidy
	if !early {
		t.tidied = now
	}
	t.mu.Unlock()
	if early {
		return
	}
	err := t.store.Update(ctx, func(w store.Writer) error {
		for at, k := range tasks.All(w) {
			lost, err := t.lost(w, k, now.Add(-k.Keep))
			if err != nil {
				return err
			}
			if !lost && !k.gone(now) {
				continue
			}
			for _, bucket := range []string{string(tasks), results, faults} {
				if err := w.Delete(bucket, at); err != nil {
					return err
				}
			}
		}
		for id, until := range runners.All(w) {
			if now.After(until.Add(abandoned)) {
				if err := runners.Delete(w, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.o.Log.Warn("old tasks cannot be deleted", "error", err)
	}
}
