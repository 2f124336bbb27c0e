package guard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// A Usage is what calls of one tool in one session on one UTC day used up.
type Usage struct {
	Day, App, User, Session, Tool string
	Calls, Errors                 int
	TokensIn, TokensOut           int // of arguments and results, estimated: bytes / 4 (SPEC I1); of a model, as its provider counted

	// Micros are millionths of US dollars that a model's answers cost; what
	// tools cost stands in the ledger.
	Micros int64 `json:",omitempty"`
}

// modelPrefix begins what stands for a tool's name in the usage of a model.
const modelPrefix = "model:"

// A Counter adds up what calls use, and writes it to the store every so often
// and when it is closed. A process that is killed loses the tokens of the last
// seconds; money is never lost, it stands in the ledger. It is safe for
// concurrent use.
type Counter struct {
	store store.Store
	log   *slog.Logger
	now   func() time.Time
	hook  func(Usage) // told of every call; nil: nobody is

	mu     sync.Mutex
	sums   map[usageKey]*Usage
	timer  *time.Timer
	closed bool

	writing sync.Mutex
}

type usageKey struct {
	day                      int64 // since 1970
	app, user, session, tool string
}

const (
	flushEvery = 2 * time.Second
	maxUnsaved = 20_000 // rows; more are not counted while the store cannot be written
	usageDays  = 90     // how long rows are kept
)

const usageBucket = store.Bucket[Usage]("usage")

// NewCounter returns a Counter. The hook is told of every call, for metrics;
// it may be nil, and so may log and now.
func NewCounter(s store.Store, log *slog.Logger, now func() time.Time, hook func(Usage)) *Counter {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if now == nil {
		now = time.Now
	}
	return &Counter{store: s, log: log, now: now, hook: hook, sums: map[usageKey]*Usage{}}
}

// Count returns the stage that counts calls and the tokens that they cost. A
// call that only made others is counted as those. A nil u counts nothing.
func Count(u *Counter) pipeline.Stage {
	return pipeline.Stage{
		Name: "usage", Doc: "count calls and tokens",
		Wrap: func(next tool.Handler) tool.Handler {
			if u == nil {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				res, err := next(ctx, c)
				if c.Tool == nil || c.Tool.Targets != nil && c.Trail.Decision != tool.Deny {
					return res, err
				}
				in, out := (len(c.Args)+3)/4, 0
				if res != nil {
					n := 0
					for i := range res.Content {
						n += len(res.Content[i].Text)
					}
					if res.Err != nil {
						n += len(res.Err.Message)
					}
					out = (n + 3) / 4
				}
				c.Trail.Tokens = in + out
				row := Usage{Calls: 1, TokensIn: in, TokensOut: out}
				if res == nil || res.Err != nil {
					row.Errors = 1
				}
				u.add(&c.From, c.Tool.Name, row)
				return res, err
			}
		},
	}
}

// Model counts one answer of a model: the tokens that it read and said, and
// what they cost in US dollars. A nil Counter counts nothing.
func (u *Counter) Model(from tool.Origin, name string, in, out int, dollars float64) {
	if u != nil {
		u.add(&from, modelPrefix+name, Usage{Calls: 1, TokensIn: in, TokensOut: out, Micros: int64(math.Round(dollars * 1e6))})
	}
}

func (u *Counter) add(from *tool.Origin, name string, what Usage) {
	now := u.now()
	key := usageKey{now.Unix() / 86400, from.App, from.User, from.Session, name}
	u.mu.Lock()
	defer u.mu.Unlock()
	row := u.sums[key]
	if row == nil {
		if u.closed || len(u.sums) >= maxUnsaved {
			return
		}
		row = &Usage{Day: dayOf(now), App: key.app, User: key.user, Session: key.session, Tool: key.tool}
		u.sums[key] = row
		if u.timer == nil && u.store != nil {
			u.timer = time.AfterFunc(flushEvery, u.flush)
		}
	}
	row.add(what)
	if u.hook != nil {
		what.Day, what.App, what.User, what.Session, what.Tool = row.Day, key.app, key.user, key.session, key.tool
		u.hook(what)
	}
}

// flush writes what was added up since the last time.
func (u *Counter) flush() {
	u.writing.Lock()
	defer u.writing.Unlock()
	u.mu.Lock()
	sums := u.sums
	u.sums, u.timer = map[usageKey]*Usage{}, nil
	u.mu.Unlock()
	if len(sums) == 0 || u.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	if err := u.store.Update(ctx, func(w store.Writer) error { return saveUsage(w, sums, u.now()) }); err != nil {
		u.log.Warn("what calls used could not be written; it is tried again with the next call", "error", err)
		u.mu.Lock()
		defer u.mu.Unlock()
		for key, row := range sums {
			if now := u.sums[key]; now != nil {
				now.add(*row)
			} else {
				u.sums[key] = row
			}
		}
	}
}

func (u *Usage) add(v Usage) {
	u.Calls += v.Calls
	u.Errors += v.Errors
	u.TokensIn += v.TokensIn
	u.TokensOut += v.TokensOut
	u.Micros += v.Micros
}

func saveUsage(w store.Writer, sums map[usageKey]*Usage, now time.Time) error {
	for _, row := range sums {
		sum := sha256.Sum256([]byte(row.User + "\x00" + row.Session))
		key := row.Day + "/" + row.App + "/" + hex.EncodeToString(sum[:12]) + "/" + row.Tool
		old, err := usageBucket.Get(w, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		all := *row
		all.add(old)
		if err := usageBucket.Put(w, key, all); err != nil {
			return err
		}
	}
	var over []string
	first := dayOf(now.AddDate(0, 0, -usageDays))
	for key := range w.Scan(string(usageBucket), "") {
		if key >= first || len(over) == 16*pruneAtOnce {
			break
		}
		over = append(over, key)
	}
	for _, key := range over {
		if err := usageBucket.Delete(w, key); err != nil {
			return err
		}
	}
	return nil
}

// Close writes what is left.
func (u *Counter) Close() error {
	u.mu.Lock()
	u.closed = true
	if u.timer != nil {
		u.timer.Stop()
	}
	u.mu.Unlock()
	u.flush()
	return nil
}

// A Cost is what calls cost that have something in common.
type Cost struct {
	Of        string            `json:"of"`
	Calls     int               `json:"calls"`
	Errors    int               `json:"errors"`
	TokensIn  int               `json:"tokens_in"`
	TokensOut int               `json:"tokens_out"`
	Metered   int               `json:"metered"`         // calls that were paid for, pending ones included
	Pending   int               `json:"pending"`         // of them, those without a known end
	Money     map[string]string `json:"money,omitempty"` // by currency
	micros    map[string]int64
}

// CostBy are the words that Costs groups by.
func CostBy() []string { return []string{"tool", "session", "app", "user", "day"} }

// Costs adds up what calls cost, by one of CostBy, dearest first. Calls and
// tokens are known by UTC day: those of the day of since count whole.
func Costs(ctx context.Context, usage, ledger store.Store, by string, since time.Time) ([]Cost, error) {
	if !slices.Contains(CostBy(), by) {
		return nil, fmt.Errorf("costs by %q: want one of %v", by, CostBy())
	}
	sums := map[string]*Cost{}
	of := func(day, app, user, session, toolName string) *Cost {
		key := map[string]string{"tool": toolName, "session": session, "app": app, "user": user, "day": day}[by]
		if sums[key] == nil {
			sums[key] = &Cost{Of: key, micros: map[string]int64{}}
		}
		return sums[key]
	}
	err := usage.View(ctx, func(r store.Reader) error {
		clear(sums)
		for _, row := range usageBucket.All(r) {
			if row.Day < dayOf(since) {
				continue
			}
			c := of(row.Day, row.App, row.User, row.Session, row.Tool)
			c.Calls += row.Calls
			c.Errors += row.Errors
			c.TokensIn += row.TokensIn
			c.TokensOut += row.TokensOut
			if row.Micros != 0 {
				c.micros["USD"] += row.Micros
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	spends, err := Spends(ctx, ledger, since)
	if err != nil {
		return nil, err
	}
	for _, s := range spends {
		c := of(dayOf(s.Time), s.App, s.User, s.Session, s.Tool)
		c.Metered++
		if s.State == Pending {
			c.Pending++
		}
		if s.Money.Micros != 0 {
			c.micros[s.Money.Currency] += s.Money.Micros
		}
	}
	return sorted(sums), nil
}

func sorted(sums map[string]*Cost) []Cost {
	out := make([]Cost, 0, len(sums))
	most := func(c Cost) (n int64) {
		for _, m := range c.micros {
			n = max(n, m)
		}
		return n
	}
	for _, c := range sums {
		if len(c.micros) > 0 {
			c.Money = map[string]string{}
		}
		for _, currency := range slices.Sorted(maps.Keys(c.micros)) {
			c.Money[currency] = Money{c.micros[currency], currency}.String()
		}
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(most(b), most(a)), cmp.Compare(b.TokensIn+b.TokensOut, a.TokensIn+a.TokensOut), cmp.Compare(a.Of, b.Of))
	})
	return out
}
