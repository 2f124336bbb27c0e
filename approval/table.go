package approval

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/store"
)

const (
	// DefaultTimeout is how long a question waits for its answer.
	DefaultTimeout = 300 * time.Second
	// GrantFor is how long an approval for a session holds at most.
	GrantFor = 12 * time.Hour

	poll  = 300 * time.Millisecond // how often answers of other processes are looked for
	beat  = 2 * time.Second        // how often a table says that its process is there
	lease = 15 * time.Second       // after how long without a word the process counts as gone

	maxWaiting = 200            // questions at one time
	keepOver   = 24 * time.Hour // how long what was answered is shown
	maxOver    = 500            // of them
)

const (
	questions store.Bucket[Question]  = "question"
	grants    store.Bucket[Grant]     = "grant"
	runners   store.Bucket[time.Time] = "runner"   // until when a process counts as there
	watchers  store.Bucket[time.Time] = "attached" // until when somebody counts as watching
	edited                            = "edited"   // arguments that the process that waits has not taken yet
)

// process tells this process from all others.
var process = rand.Text()

// Options say how a Table keeps questions.
type Options struct {
	Timeout time.Duration // for an answer; 0: DefaultTimeout
	Runner  string        // the process; "": this one
	Log     *slog.Logger  // nil: nothing is logged
	// Redact takes secrets out of arguments that an answer brings, which are kept
	// for all to see. Nil: nothing is left of them.
	Redact func(json.RawMessage) json.RawMessage
	// Peek is the store, read without making one where there is none. Nil: the store itself.
	Peek store.Store
}

// A Table keeps questions in a store, which tables of other processes may use
// at the same time: a question is asked in one and may be answered in any. It
// is safe for concurrent use.
type Table struct {
	store, peek store.Store
	o           Options

	mu      sync.Mutex
	waiting int
	news    chan struct{} // closed when this table changes something
	beating bool
	stopped bool
	stop    chan struct{}
	done    sync.WaitGroup
}

// New returns a table of the questions in s. Close ends it, and not s.
func New(s store.Store, o Options) *Table {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Runner == "" {
		o.Runner = process
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Redact == nil {
		o.Redact = func(json.RawMessage) json.RawMessage { return json.RawMessage(`{}`) }
	}
	if o.Peek == nil {
		o.Peek = s
	}
	return &Table{store: s, peek: o.Peek, o: o, news: make(chan struct{}), stop: make(chan struct{})}
}

// Ask keeps a question and waits for its answer, which is a denial if none
// comes in time (TimedOut). When it returns, nobody can answer any more. ready
// is told the question as it is kept; nil: nobody is. The error says that
// there is no answer: the call must not run.
func (t *Table) Ask(ctx context.Context, q Question, ready func(Question)) (Question, error) {
	now := time.Now().UTC()
	q.ID, q.Runner, q.State, q.Answer = rand.Text(), t.o.Runner, Waiting, nil
	q.Asked, q.Deadline = now, now.Add(t.o.Timeout)
	err := t.store.Update(ctx, func(w store.Writer) error {
		n, err := t.tidy(w, now)
		if err != nil {
			return err
		}
		if n >= maxWaiting {
			return ErrMany
		}
		return errors.Join(runners.Put(w, t.o.Runner, now.Add(lease)), questions.Put(w, q.ID, q))
	})
	if err != nil {
		return q, fmt.Errorf("the question cannot be kept: %w", err)
	}
	t.mu.Lock()
	t.waiting++
	t.mu.Unlock()
	t.beat()
	defer func() {
		t.mu.Lock()
		t.waiting--
		t.mu.Unlock()
	}()
	if ready != nil {
		ready(q)
	}
	return t.wait(ctx, q)
}

// wait waits until a question is not waiting any more.
func (t *Table) wait(ctx context.Context, q Question) (Question, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	late := time.NewTimer(time.Until(q.Deadline))
	defer late.Stop()
	end := TimedOut
	for over := false; !over; {
		news := t.hear()
		if now, err := t.Get(ctx, q.ID); err == nil && now.State != Waiting {
			return t.taken(ctx, now)
		} else if errors.Is(err, ErrNone) {
			return q, fmt.Errorf("the question was deleted")
		}
		select {
		case <-tick.C:
		case <-news:
		case <-late.C:
			over = true
		case <-ctx.Done():
			over, end = true, Withdrawn
		case <-t.stop:
			over, end = true, Restarted
		}
	}
	now, err := t.end(context.WithoutCancel(ctx), q.ID, end)
	switch {
	case ctx.Err() != nil:
		return now, context.Cause(ctx)
	case err != nil: // what cannot be read approves nothing
		q.State = end
		return q, err
	}
	return t.taken(ctx, now)
}

// taken completes a question by the arguments that its answer brings, which
// are raw: nobody else gets them.
func (t *Table) taken(ctx context.Context, q Question) (Question, error) {
	if q.Answer == nil || q.Answer.Args == nil {
		return q, nil
	}
	err := t.store.Update(context.WithoutCancel(ctx), func(w store.Writer) error {
		raw, err := w.Get(edited, q.ID)
		if err != nil {
			return err
		}
		own := *q.Answer
		own.Args = raw
		q.Answer = &own
		return w.Delete(edited, q.ID)
	})
	return q, err
}

// end ends a question that waits, and returns what it came to: somebody may
// have answered just before.
func (t *Table) end(ctx context.Context, id string, as State) (q Question, err error) {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	err = t.store.Update(ctx, func(w store.Writer) error {
		if q, err = questions.Get(w, id); err != nil || q.State != Waiting {
			return err
		}
		q.State = as
		return questions.Put(w, id, q)
	})
	t.tell()
	return q, err
}

// Answer answers a question, of owner's app if it names one. Of several answers
// the first counts: the error of the others wraps ErrOver and says who was
// first. ErrNone: there is no such question; ErrBad: the answer makes no sense.
// An answer that is an error changed nothing.
func (t *Table) Answer(ctx context.Context, id string, a Answer) (q Question, err error) {
	if err := a.check(); err != nil {
		return q, fmt.Errorf("%w: %w", ErrBad, err)
	}
	if id == "" || store.CheckName(id) != nil {
		return q, ErrNone
	}
	err = t.store.Update(ctx, func(w store.Writer) error {
		now := time.Now().UTC()
		if q, err = questions.Get(w, id); errors.Is(err, store.ErrNotFound) {
			return ErrNone
		} else if err != nil {
			return err
		}
		if q.State, err = t.stateOf(w, q, now); err != nil {
			return err
		}
		if q.State != Waiting {
			return over(q)
		}
		if a.Session && q.Scope.Key == "" {
			return fmt.Errorf("%w: this call cannot be approved for the session; approve it alone", ErrBad)
		}
		kept := a
		kept.At = now
		if a.Args != nil {
			kept.Args = t.o.Redact(a.Args)
			if err := w.Put(edited, id, a.Args); err != nil {
				return err
			}
		}
		q.Answer, q.State = &kept, Denied
		if a.Approve {
			q.State = Approved
		}
		if a.Session {
			if err := grants.Put(w, grantKey(q.Owner, q.ID), grantOf(q, kept)); err != nil {
				return err
			}
		}
		return questions.Put(w, id, q)
	})
	t.tell()
	return q, err
}

func grantOf(q Question, a Answer) Grant {
	return Grant{ID: q.ID, Owner: q.Owner, Tool: q.Tool, Scope: q.Scope, Reasons: q.Reasons, By: a.By, Since: a.At, Until: a.At.Add(GrantFor), Runner: q.Runner}
}

// over is the error of an answer that comes too late.
func over(q Question) error {
	if q.Answer != nil {
		return fmt.Errorf("%w: %s by %s", ErrOver, q.State, q.Answer.Who())
	}
	return fmt.Errorf("%w: %s", ErrOver, q.State)
}

// stateOf returns the state of a question as it is now, whatever was written.
func (t *Table) stateOf(r store.Reader, q Question, now time.Time) (State, error) {
	if q.State != Waiting {
		return q.State, nil
	}
	there, err := t.alive(r, q.Runner, now)
	switch {
	case err != nil:
		return q.State, err
	case !there:
		return Restarted, nil
	case now.After(q.Deadline):
		return TimedOut, nil
	}
	return Waiting, nil
}

// alive reports whether a process is there.
func (t *Table) alive(r store.Reader, runner string, now time.Time) (bool, error) {
	if runner == t.o.Runner {
		return true, nil
	}
	until, err := runners.Get(r, runner)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return now.Before(until), err
}

// Get returns a question. ErrNone: there is none.
func (t *Table) Get(ctx context.Context, id string) (q Question, err error) {
	if id == "" || store.CheckName(id) != nil {
		return q, ErrNone
	}
	err = t.peek.View(ctx, func(r store.Reader) error {
		if q, err = questions.Get(r, id); errors.Is(err, store.ErrNotFound) {
			return ErrNone
		} else if err != nil {
			return err
		}
		q.State, err = t.stateOf(r, q, time.Now())
		return err
	})
	return q, err
}

// List returns the questions that wait, the oldest first; all: those of the
// last day that do not, too.
func (t *Table) List(ctx context.Context, all bool) (out []Question, err error) {
	err = t.peek.View(ctx, func(r store.Reader) error {
		out = nil
		for _, q := range questions.All(r) {
			if q.State, err = t.stateOf(r, q, time.Now()); err != nil {
				return err
			}
			if all || q.State == Waiting {
				out = append(out, q)
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b Question) int { return a.Asked.Compare(b.Asked) })
	return out, err
}

// Changed returns a channel that is closed when this table changes something.
// What other processes change it does not tell.
func (t *Table) Changed() <-chan struct{} { return t.hear() }

func (t *Table) hear() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.news
}

func (t *Table) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.news)
	t.news = make(chan struct{})
}

// tidy deletes what is shown no longer, and counts the questions that wait.
func (t *Table) tidy(w store.Writer, now time.Time) (waiting int, err error) {
	var done []Question
	for _, q := range questions.All(w) {
		state, err := t.stateOf(w, q, now)
		if err != nil {
			return 0, err
		}
		if state == Waiting {
			waiting++
			continue
		}
		done = append(done, q)
	}
	slices.SortFunc(done, func(a, b Question) int { return b.Asked.Compare(a.Asked) })
	for i, q := range done {
		if i >= maxOver || now.Sub(q.Asked) > keepOver {
			err = errors.Join(err, questions.Delete(w, q.ID), w.Delete(edited, q.ID))
		}
	}
	for key, g := range grants.All(w) {
		there, lost := t.alive(w, g.Runner, now)
		if err = errors.Join(err, lost); !there || now.After(g.Until) {
			err = errors.Join(err, grants.Delete(w, key))
		}
	}
	for _, b := range []store.Bucket[time.Time]{runners, watchers} {
		for key, until := range b.All(w) {
			if now.Sub(until) > keepOver {
				err = errors.Join(err, b.Delete(w, key))
			}
		}
	}
	return waiting, err
}

// ownerKey is the same for all that is one owner's, and for nothing else.
func ownerKey(o Owner) string {
	data, _ := json.Marshal(o)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func grantKey(o Owner, id string) string { return ownerKey(o) + "/" + id }

// Granted returns the approval for the session that covers a call of this
// scope; nil: there is none.
func (t *Table) Granted(ctx context.Context, o Owner, tool string, reasons []string, scope Scope) (found *Grant, err error) {
	if scope.Key == "" {
		return nil, nil
	}
	now := time.Now()
	err = t.peek.View(ctx, func(r store.Reader) error {
		found = nil
		for _, g := range grants.Scan(r, ownerKey(o)+"/") {
			if g.Runner == t.o.Runner && g.Owner == o && g.Tool == tool && g.Scope.Key == scope.Key && slices.Equal(g.Reasons, reasons) && now.Before(g.Until) {
				found = &g
				return nil
			}
		}
		return nil
	})
	return found, err
}

// Grants lists the approvals for sessions that hold.
func (t *Table) Grants(ctx context.Context) (out []Grant, err error) {
	now := time.Now()
	err = t.peek.View(ctx, func(r store.Reader) error {
		out = nil
		for _, g := range grants.All(r) {
			there, err := t.alive(r, g.Runner, now)
			if err != nil {
				return err
			}
			if there && now.Before(g.Until) {
				out = append(out, g)
			}
		}
		return nil
	})
	return out, err
}

// Revoke ends an approval for a session. ErrNone: there is none of that id.
func (t *Table) Revoke(ctx context.Context, id string) error {
	return t.store.Update(ctx, func(w store.Writer) error {
		for key, g := range grants.All(w) {
			if g.ID == id {
				return grants.Delete(w, key)
			}
		}
		return ErrNone
	})
}

// EndSession ends what was approved for the sessions of an origin: no call of
// theirs will come.
func (t *Table) EndSession(ctx context.Context, o Owner) error {
	held := false
	err := t.peek.View(ctx, func(r store.Reader) error {
		held = false
		for _, g := range grants.All(r) {
			held = held || sameSession(g.Owner, o)
		}
		return nil
	})
	if err != nil || !held {
		return err
	}
	return t.store.Update(ctx, func(w store.Writer) error {
		for key, g := range grants.All(w) {
			if sameSession(g.Owner, o) {
				if err := grants.Delete(w, key); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func sameSession(a, b Owner) bool {
	return a.App == b.App && a.User == b.User && a.Session == b.Session
}

// Attend says that somebody watches for questions, until ctx ends or for so
// long after the last word.
func (t *Table) Attend(ctx context.Context) error {
	id := rand.Text()
	say := func() error {
		return t.store.Update(ctx, func(w store.Writer) error { return watchers.Put(w, id, time.Now().Add(lease).UTC()) })
	}
	if err := say(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return nil
	}
	t.done.Go(func() {
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := say(); err != nil && ctx.Err() == nil {
					t.o.Log.Warn("it cannot be noted that somebody watches for questions", "error", err)
				}
				continue
			case <-ctx.Done():
			case <-t.stop:
			}
			gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), beat)
			defer cancel()
			err := t.store.Update(gone, func(w store.Writer) error { return watchers.Delete(w, id) })
			if err != nil {
				t.o.Log.Debug("a watcher counts as there for a while", "error", err)
			}
			return
		}
	})
	return nil
}

// AttendFor says that a watcher of that name is there for a while from now on.
func (t *Table) AttendFor(ctx context.Context, name string, d time.Duration) error {
	return t.store.Update(ctx, func(w store.Writer) error { return watchers.Put(w, name, time.Now().Add(d).UTC()) })
}

// Attended reports whether somebody watches for questions.
func (t *Table) Attended(ctx context.Context) (is bool, err error) {
	now := time.Now()
	err = t.peek.View(ctx, func(r store.Reader) error {
		is = false
		for _, until := range watchers.All(r) {
			is = is || now.Before(until)
		}
		return nil
	})
	return is, err
}

// Find returns the id of the one question, waiting or not, that begins so.
func (t *Table) Find(ctx context.Context, begun string) (string, error) {
	all, err := t.List(ctx, true)
	if err != nil {
		return "", err
	}
	var found []string
	for _, q := range all {
		if begun != "" && strings.HasPrefix(strings.ToLower(q.ID), strings.ToLower(begun)) {
			found = append(found, q.ID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", ErrNone
	}
	return "", fmt.Errorf("%w: %d of them begin with %q", ErrNone, len(found), begun)
}

// Close denies the questions that still wait in this table.
func (t *Table) Close() error {
	t.mu.Lock()
	if !t.stopped {
		t.stopped = true
		close(t.stop)
	}
	t.mu.Unlock()
	t.done.Wait()
	return nil
}

// beat says from time to time that the process is there, as long as questions
// wait or approvals for sessions hold.
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
			rests, err := t.renew()
			if err != nil {
				t.o.Log.Error("the questions that wait cannot be kept", "error", err)
			}
			if rests {
				return
			}
		}
	})
}

// renew says that the process is there, unless it has nothing to say it for.
func (t *Table) renew() (rests bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lease)
	defer cancel()
	held := false
	err = t.store.Update(ctx, func(w store.Writer) error {
		held = false
		now := time.Now().UTC()
		for _, g := range grants.All(w) {
			held = held || g.Runner == t.o.Runner && now.Before(g.Until)
		}
		return runners.Put(w, t.o.Runner, now.Add(lease))
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && !held && t.waiting == 0 {
		t.beating = false
		return true, nil
	}
	return false, err
}

// Timeout is how long questions wait.
func (t *Table) Timeout() time.Duration { return t.o.Timeout }
