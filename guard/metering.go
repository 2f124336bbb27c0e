package guard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// Budgets are how many metered calls an app may make (SPEC M2). What is not
// declared is denied.
type Budgets struct {
	PaidPerDay, PremiumPerDay *int // by UTC day; nil: no budget is declared
	PerTask                   int  // by session and UTC day; zero: 1
}

func (b Budgets) of(class tool.CostClass) (*int, string) {
	if class == tool.PremiumCloud {
		return b.PremiumPerDay, "premium_cloud_per_day"
	}
	return b.PaidPerDay, "paid_cloud_per_day"
}

// A Meter authorises calls that cost money, before they spend. It is safe for
// concurrent use.
//
// Its ledger is in the store, so that the caps hold for all processes that
// share it. Whatever it cannot tell, it denies.
type Meter struct {
	App      string
	Budgets  Budgets
	Prices   map[string]Money // of a call, by tool; for the reports only
	Store    store.Store
	Root     *root.Root // where inputs lie; nil: there are none
	Redactor *Redactor
	Log      *slog.Logger
	Now      func() time.Time

	mu      sync.Mutex
	flights map[*tool.Call]*flight
}

// A flight is a call that was authorised and has not ended.
type flight struct {
	inputs []Input
	spent  bool
}

// An Input is a file that a metered call works on, as it was reviewed.
type Input struct {
	Path   string `json:"path"` // from the root
	Digest string `json:"digest"`
}

// The states of a Spend.
const (
	Pending = "pending" // authorised; if the process ends now, it counts as spent
	Settled = "settled" // the tool ran and succeeded
	Failed  = "failed"  // the tool ran and failed, and may have spent
)

// A Spend is a metered call on record.
type Spend struct {
	Time    time.Time      `json:"time"`
	Expires time.Time      `json:"expires"` // until then a pending one may be under way
	State   string         `json:"state"`
	App     string         `json:"app,omitempty"`
	Session string         `json:"session,omitempty"`
	User    string         `json:"user,omitempty"`
	Tool    string         `json:"tool"`
	Class   tool.CostClass `json:"class"`
	Money   Money          `json:"money,omitzero"`
	Call    string         `json:"call"`
	Inputs  []Input        `json:"inputs,omitempty"`
}

// A replay is a spend and its result, by which the same call is answered again.
type replay struct {
	Spend  string       `json:"spend"` // its key
	Result *tool.Result `json:"result,omitempty"`
}

// Buckets of the ledger. Days and tasks count what was authorised.
const (
	spendsBucket  = store.Bucket[Spend]("spends")
	replaysBucket = store.Bucket[replay]("replays")
	countsBucket  = store.Bucket[int]("counts")
	reviewsBucket = store.Bucket[Review]("reviews")
)

// maxKept is the size of a result that is kept to be replayed.
const maxKept = 4 << 20

func (m *Meter) now() time.Time {
	if m.Now != nil {
		return m.Now().UTC()
	}
	return time.Now().UTC()
}

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Metering returns the stage that refuses metered calls that may not be paid
// for whatever the ledger says: of an unknown class, without a declared budget,
// with arguments that are more than references to reviewed files and bounded
// options (SPEC M1, M3). A nil m denies every metered call.
func Metering(m *Meter) pipeline.Stage {
	const name = "metering"
	return pipeline.Stage{
		Name: name, Doc: "refuse calls that may not cost money", Judges: true,
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if !metered(c.Tool) {
					return next(ctx, c)
				}
				if _, err := m.judge(ctx, c); err != nil {
					return nil, c.Trail.Deny(name, err)
				}
				return next(ctx, c)
			}
		},
	}
}

// judge says why a metered call may not be made; or returns its inputs.
func (m *Meter) judge(ctx context.Context, c *tool.Call) ([]Input, *tool.Error) {
	class := c.Tool.CostClass
	switch {
	case class != tool.PaidCloud && class != tool.PremiumCloud:
		return nil, tool.Errorf(tool.CodeBudget, "%s has the cost class %q, which is not known, so it is not called", c.Name, class)
	case m == nil || m.Store == nil:
		return nil, tool.Errorf(tool.CodeBudget, "%s costs money (%s), and nobody is there to authorise it", c.Name, class)
	}
	if most, key := m.Budgets.of(class); most == nil {
		return nil, tool.Errorf(tool.CodeBudget, "%s costs money (%s), and the app declares no budget for it; the operator sets tools.capabilities.budgets.%s", c.Name, class, key)
	}
	references := map[string]bool{}
	for _, v := range c.Trail.Values {
		if v.Role == schema.Artifact || v.Role.IsPath() {
			references[v.Pointer] = true
		}
	}
	if at, why := wide(c.Args, references); why != "" {
		return nil, tool.Errorf(tool.CodePermission, "%s: %s; a call of %s, which costs money, takes references to artifacts and short options only", orRoot(at), why, c.Name)
	}
	return m.inputs(ctx, c)
}

func orRoot(pointer string) string {
	if pointer == "" {
		return "(arguments)"
	}
	return pointer
}

// inputs returns the files that a call works on, which must be as they were
// reviewed.
func (m *Meter) inputs(ctx context.Context, c *tool.Call) ([]Input, *tool.Error) {
	var out []Input
	for _, v := range c.Trail.Values {
		if v.Role != schema.Artifact && v.Role != schema.PathRead {
			continue
		}
		if !v.IsString || m.Root == nil {
			return nil, tool.Errorf(tool.CodePermission, "%s: is no reference to a file in the root", v.Pointer)
		}
		in, err := DigestOf(m.Root, v.Text)
		if err != nil {
			return nil, PathError(v.Pointer, err)
		}
		out = append(out, in)
	}
	if len(out) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	var refused *tool.Error
	err := m.Store.View(ctx, func(r store.Reader) error {
		refused = nil
		for _, in := range out {
			review, err := reviewsBucket.Get(r, m.App+"/"+in.Path)
			switch {
			case errors.Is(err, store.ErrNotFound):
				refused = tool.Errorf(tool.CodePermission, "%s has not been reviewed, and %s costs money: the operator looks at it and runs `helve ledger review %s`", in.Path, c.Name, in.Path)
			case err != nil:
				return err
			case review.Digest != in.Digest:
				refused = tool.Errorf(tool.CodePermission, "%s has changed since it was reviewed at %s, and %s costs money: the operator looks at it again and runs `helve ledger review %s`", in.Path, review.Time.Format(time.RFC3339), c.Name, in.Path)
			}
		}
		return nil
	})
	if err != nil {
		return nil, tool.Errorf(tool.CodeBudget, "%s was not authorised because the review ledger cannot be read: %v", c.Name, err).Retry()
	}
	return out, refused
}

// maxInput is the size of a file that may be reviewed.
const maxInput = 1 << 30

// DigestOf returns the file of that path in the root, and the SHA-256 of what it holds.
func DigestOf(r *root.Root, path string) (Input, error) {
	p, err := r.Resolve(path, root.ToRead)
	if err != nil {
		return Input{}, err
	}
	f, err := r.Open(p)
	if err != nil {
		return Input{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return Input{}, err
	case !info.Mode().IsRegular():
		return Input{}, fmt.Errorf("path %q: is not a file", path)
	case info.Size() > maxInput:
		return Input{}, fmt.Errorf("path %q: is larger than 1 GiB", path)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return Input{}, err
	}
	return Input{Path: p.Rel, Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil))}, nil
}

// Budget returns the stage that authorises metered calls: it takes the call
// from the budgets, durably, before the next stage. The same call of the same
// task is answered from the first one's result, free. A call that a later
// stage refuses is given back; one that ran, or whose end is not known, is not.
func Budget(m *Meter) pipeline.Stage {
	const name = "budget"
	return pipeline.Stage{
		Name: name, Doc: "authorise calls that cost money",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if !metered(c.Tool) {
					return next(ctx, c)
				}
				inputs, err := m.judge(ctx, c)
				if err != nil {
					return nil, c.Trail.Deny(name, err)
				}
				a, free, err := m.authorise(ctx, c, inputs)
				switch {
				case err != nil:
					return nil, c.Trail.Deny(name, err)
				case free != nil:
					c.Trail.Reason = "answered from the same call of the task, free"
					return withNote(free, "this is the result of the same call, made before in this task; nothing was spent"), nil
				}
				f := m.begin(c, inputs)
				defer m.forget(c)
				res, _ := next(ctx, c)
				m.settle(context.WithoutCancel(ctx), c, a, f, res)
				return res, nil
			}
		},
	}
}

// An authorisation is what Budget took, by the keys under which it is on record.
type authorisation struct {
	spend, replay, day, task string
	record                   Spend
}

func (m *Meter) authorise(ctx context.Context, c *tool.Call, inputs []Input) (a authorisation, free *tool.Result, refused *tool.Error) {
	args, err := canonical(c.Args)
	if err != nil {
		return a, nil, tool.Errorf(tool.CodeBudget, "%s was not authorised: %v", c.Name, err)
	}
	pinned, err := json.Marshal([]any{c.Tool.Name, args, inputs})
	if err != nil {
		return a, nil, tool.Errorf(tool.CodeBudget, "%s was not authorised: %v", c.Name, err)
	}
	now := m.now()
	who := sha256.Sum256([]byte(c.From.App + "\x00" + c.From.User + "\x00" + c.From.Session))
	call := sha256.Sum256(pinned)
	day, class := dayOf(now), c.Tool.CostClass
	a = authorisation{
		spend: day + "/" + m.App + "/" + rand.Text(),
		day:   day + "/" + m.App + "/" + string(class), task: day + "/" + m.App + "/task/" + hex.EncodeToString(who[:16]),
		record: Spend{Time: now, Expires: now.Add(underWay), State: Pending, App: m.App, Session: c.From.Session, User: c.From.User,
			Tool: c.Tool.Name, Class: class, Money: m.Prices[c.Tool.Name], Call: c.ID, Inputs: inputs},
	}
	a.replay = a.task + "/" + hex.EncodeToString(call[:16])
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	err = m.Store.Update(ctx, func(w store.Writer) error {
		free, refused = nil, nil
		if free, refused, err = earlier(w, a, c, now); err != nil || free != nil || refused != nil {
			return err
		}
		if refused, err = m.fits(w, a, c, now); err != nil || refused != nil {
			return err
		}
		return errors.Join(add(w, a.day, 1), add(w, a.task, 1), spendsBucket.Put(w, a.spend, a.record), replaysBucket.Put(w, a.replay, replay{Spend: a.spend}))
	})
	if err != nil {
		return a, nil, tool.Errorf(tool.CodeBudget, "%s was not authorised because the ledger cannot be written: %v", c.Name, err).Retry()
	}
	return a, free, refused
}

// underWay is how long a call without an end may still be under way, and its
// like must wait; afterwards its process counts as dead.
const underWay = 30 * time.Minute

// earlier returns what the same call of the task was answered, or why it must wait.
func earlier(r store.Reader, a authorisation, c *tool.Call, now time.Time) (*tool.Result, *tool.Error, error) {
	old, err := replaysBucket.Get(r, a.replay)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if old.Result != nil {
		return old.Result, nil, nil
	}
	spend, err := spendsBucket.Get(r, old.Spend)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err == nil && spend.State == Pending && now.Before(spend.Expires) {
		return nil, tool.Errorf(tool.CodeBudget, "the same call of %s was authorised at %s in this task and has no result yet; if its process has died, what it spent is counted", c.Name, spend.Time.Format(time.RFC3339)).Retry(), nil
	}
	return nil, nil, err
}

// fits says which budget has no room for a call.
func (m *Meter) fits(r store.Reader, a authorisation, c *tool.Call, now time.Time) (*tool.Error, error) {
	most, key := m.Budgets.of(c.Tool.CostClass)
	perTask := m.Budgets.PerTask
	if perTask == 0 {
		perTask = 1
	}
	task, err := count(r, a.task)
	if err != nil {
		return nil, err
	}
	day, err := count(r, a.day)
	if err != nil {
		return nil, err
	}
	switch {
	case day >= *most:
		wait := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
		return tool.Errorf(tool.CodeBudget, "%s costs money (%s), and the app has made the %d such calls of its day (budgets.%s); the next day begins at midnight UTC, in %v", c.Name, c.Tool.CostClass, *most, key, wait.Round(time.Minute)).
			With(map[string]any{"budget": key, "limit": *most, "wait_seconds": int(wait.Seconds())}), nil
	case task >= perTask:
		return tool.Errorf(tool.CodeBudget, "%s costs money (%s), and this task has made the %d such calls that it may (budgets.per_task)", c.Name, c.Tool.CostClass, perTask).
			With(map[string]any{"budget": "per_task", "limit": perTask}), nil
	}
	return nil, nil
}

func count(r store.Reader, key string) (int, error) {
	n, err := countsBucket.Get(r, key)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	return n, err
}

func add(w store.Writer, key string, d int) error {
	n, err := count(w, key)
	if err != nil {
		return err
	}
	return countsBucket.Put(w, key, max(n+d, 0))
}

func (m *Meter) begin(c *tool.Call, inputs []Input) *flight {
	f := &flight{inputs: inputs}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.flights == nil {
		m.flights = map[*tool.Call]*flight{}
	}
	m.flights[c] = f
	return f
}

func (m *Meter) forget(c *tool.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.flights, c)
}

// settle notes how a call ended, or gives it back if it never ran. If that
// cannot be written, it stays counted as spent.
func (m *Meter) settle(ctx context.Context, c *tool.Call, a authorisation, f *flight, res *tool.Result) {
	m.mu.Lock()
	ran := f.spent
	m.mu.Unlock()
	if ran {
		c.Trail.Money = a.record.Money.String()
	}
	kept := replay{Spend: a.spend}
	a.record.State = Failed
	if res != nil && res.Err == nil {
		a.record.State = Settled
		clean := res
		if m.Redactor != nil {
			clean = m.Redactor.result(res, c.Tool)
		}
		if data, err := json.Marshal(clean); err == nil && len(data) <= maxKept {
			kept.Result = clean
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	err := m.Store.Update(ctx, func(w store.Writer) error {
		if !ran {
			return errors.Join(add(w, a.day, -1), add(w, a.task, -1), spendsBucket.Delete(w, a.spend), replaysBucket.Delete(w, a.replay))
		}
		return errors.Join(spendsBucket.Put(w, a.spend, a.record), replaysBucket.Put(w, a.replay, kept), m.prune(w))
	})
	if err != nil && m.Log != nil {
		m.Log.Error("a metered call could not be settled; it stays counted as spent", "tool", c.Name, "call", c.ID, "error", err)
	}
}

// replayDays is how long results and counts are kept: a task ends with its
// day, and a call may last over midnight.
const replayDays = 2

func (m *Meter) prune(w store.Writer) error {
	first := dayOf(m.now().AddDate(0, 0, -replayDays))
	for _, bucket := range []string{string(replaysBucket), string(countsBucket)} {
		var old []string
		for key := range w.Scan(bucket, "") {
			if key >= first || len(old) == pruneAtOnce {
				break
			}
			old = append(old, key)
		}
		for _, key := range old {
			if err := w.Delete(bucket, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// Spending returns the stage by which every run of a metered tool passes: it
// lets through the first run of a call that Budget authorised, with its inputs
// as they were, and no other.
func Spending(m *Meter) pipeline.Stage {
	const name = "spending"
	return pipeline.Stage{
		Name: name, Doc: "let each authorised call spend once",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if !metered(c.Tool) {
					return next(ctx, c)
				}
				if err := m.spend(ctx, c); err != nil {
					return nil, c.Trail.Deny(name, err)
				}
				return next(ctx, c)
			}
		},
	}
}

func (m *Meter) spend(ctx context.Context, c *tool.Call) *tool.Error {
	var f *flight
	if m != nil {
		m.mu.Lock()
		f = m.flights[c]
		m.mu.Unlock()
	}
	if f == nil {
		return tool.Errorf(tool.CodeBudget, "%s costs money, and nobody authorised the call", c.Name)
	}
	now, err := m.inputs(ctx, c)
	if err != nil {
		return err
	}
	for i := range now {
		if now[i] != f.inputs[i] {
			return tool.Errorf(tool.CodePermission, "%s changed while the call waited", now[i].Path)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.spent {
		return tool.Errorf(tool.CodeBudget, "%s costs money, and a call of it runs once", c.Name)
	}
	f.spent = true
	return nil
}

// A Review says that somebody looked at a file as it was then.
type Review struct {
	Path   string    `json:"path"`
	Digest string    `json:"digest"`
	By     string    `json:"by"`
	Time   time.Time `json:"time"`
	Note   string    `json:"note,omitempty"`
}

// SignOff puts reviews into an app's ledger, in place of earlier ones of the
// same files.
func SignOff(ctx context.Context, s store.Store, app string, reviews ...Review) error {
	return s.Update(ctx, func(w store.Writer) error {
		for _, r := range reviews {
			if err := reviewsBucket.Put(w, app+"/"+r.Path, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Reviews lists an app's reviews, by path.
func Reviews(ctx context.Context, s store.Store, app string) (out []Review, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		out = nil
		for _, review := range reviewsBucket.Scan(r, app+"/") {
			out = append(out, review)
		}
		return nil
	})
	return out, err
}

// Revoke takes the reviews of files out of an app's ledger, and returns those
// that had none.
func Revoke(ctx context.Context, s store.Store, app string, paths ...string) (missing []string, err error) {
	err = s.Update(ctx, func(w store.Writer) error {
		missing = nil
		for _, p := range paths {
			if _, err := reviewsBucket.Get(w, app+"/"+p); errors.Is(err, store.ErrNotFound) {
				missing = append(missing, p)
				continue
			} else if err != nil {
				return err
			}
			if err := reviewsBucket.Delete(w, app+"/"+p); err != nil {
				return err
			}
		}
		return nil
	})
	return missing, err
}

// Spends lists the metered calls on record since a day, the oldest first.
func Spends(ctx context.Context, s store.Store, since time.Time) (out []Spend, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		out = nil
		for key, spend := range spendsBucket.All(r) {
			if strings.Compare(key, dayOf(since)) >= 0 && !spend.Time.Before(since) {
				out = append(out, spend)
			}
		}
		return nil
	})
	return out, err
}
