// Package habits remembers which tools were of use after which queries, and forgets it slowly.
package habits

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

const (
	halfLife   = 30 * 24 * time.Hour // after which a habit counts half
	faded      = .05                 // what counts less is forgotten
	lesson     = .5                  // the share of what is missing to 1 that one use adds
	leastAlike = .5                  // the share of words that queries must have in common
	maxHabits  = 500                 // of an app; of more, those that count least are forgotten
	patience   = 10 * time.Minute    // how long after a search a call is taken for what came of it
	maxRecent  = 3                   // searches of a session that calls are held against
	maxLines   = 1000                // sessions of which searches are remembered
	fresh      = 5 * time.Second     // how long what was read of the store is good: other processes write as well
)

// A habit says that a tool was of use after a query.
type habit struct {
	Words    []string  `json:"words,omitempty"`  // of the query, see search.Words
	Before   string    `json:"before,omitempty"` // in place of Words: the tool that was called before
	Tool     string    `json:"tool"`
	Strength float64   `json:"strength"` // from 0 to 1, as it was
	At       time.Time `json:"at"`
}

const bucket = store.Bucket[habit]("habits")

// now returns the strength that is left of a habit.
func (h *habit) now(t time.Time) float64 {
	return h.Strength * math.Exp2(-max(0, t.Sub(h.At).Hours())/halfLife.Hours())
}

// A Book is the habits of one app. What was searched for lives in the process;
// what was of use, in the store. It is safe for concurrent use.
//
// A tool gains by a call only if it succeeded, if the same user searched in the
// same session shortly before and was shown the tool, and once for each search.
type Book struct {
	store store.Store
	now   func() time.Time

	mu    sync.Mutex
	lines map[line][]*searched // oldest first
	kept  []habit
	read  time.Time       // when kept was read
	last  map[line]string // the tool that was called last, of lines
}

// A line of work: one user's in one session.
type line struct {
	kind                 tool.Kind
	agent, user, session string
}

type searched struct {
	words []string
	shown map[string]bool // tools that were shown, and have not been called yet
	at    time.Time
}

// New returns the habits that are kept in a store, which is the app's own.
func New(s store.Store, now func() time.Time) *Book {
	return &Book{store: s, now: now, lines: map[line][]*searched{}, last: map[line]string{}}
}

func lineOf(from *tool.Origin) line { return line{from.Kind, from.Agent, from.User, from.Session} }

// Searched notes what a search showed. Callers without a session teach nothing.
func (b *Book) Searched(from tool.Origin, query string, shown []string) {
	words := search.Words(query)
	if from.Session == "" || len(words) == 0 || len(shown) == 0 {
		return
	}
	s := &searched{words: words, shown: map[string]bool{}, at: b.now()}
	for _, name := range shown {
		s.shown[name] = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := lineOf(&from)
	if _, known := b.lines[key]; !known && len(b.lines) >= maxLines {
		b.dropOldest()
	}
	list := append(b.lines[key], s)
	b.lines[key] = list[max(0, len(list)-maxRecent):]
}

// dropOldest forgets the session that searched longest ago.
func (b *Book) dropOldest() {
	var oldest line
	var at time.Time
	for key, list := range b.lines {
		if last := list[len(list)-1].at; at.IsZero() || last.Before(at) {
			oldest, at = key, last
		}
	}
	delete(b.lines, oldest)
	delete(b.last, oldest)
}

// Called notes that a call of a tool succeeded.
func (b *Book) Called(ctx context.Context, from tool.Origin, name string) error {
	words, before := b.cameOf(from, name)
	if words == nil {
		return nil
	}
	err := b.store.Update(ctx, func(w store.Writer) error {
		if before != "" && before != name {
			if err := b.learn(w, habit{Before: before, Tool: name}); err != nil {
				return err
			}
		}
		return b.learn(w, habit{Words: words, Tool: name})
	})
	b.mu.Lock()
	b.read = time.Time{}
	b.mu.Unlock()
	return err
}

// cameOf returns the words of the latest search after which a call of the tool
// is of use, and takes it off that search, and the tool that was called before;
// nil if there is none.
func (b *Book) cameOf(from tool.Origin, name string) (words []string, before string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.lines[lineOf(&from)]; !known {
		return nil, ""
	}
	before = b.last[lineOf(&from)]
	b.last[lineOf(&from)] = name
	for _, s := range slices.Backward(b.lines[lineOf(&from)]) {
		if s.shown[name] && b.now().Sub(s.at) <= patience {
			delete(s.shown, name)
			return s.words, before
		}
	}
	return nil, ""
}

func (h *habit) key() string {
	sum := sha256.Sum256([]byte(strings.Join(h.Words, " ") + "\x00" + h.Before + "\x00" + h.Tool))
	return hex.EncodeToString(sum[:16])
}

func (b *Book) learn(w store.Writer, learnt habit) error {
	key, now := learnt.key(), b.now()
	was, left, weakest, least, n := 0.0, []string(nil), "", 2.0, 0
	for k, h := range bucket.All(w) {
		switch s := h.now(now); {
		case k == key:
			was = s
		case s < faded:
			left = append(left, k)
		default:
			if n++; s < least {
				weakest, least = k, s
			}
		}
	}
	if n >= maxHabits {
		left = append(left, weakest)
	}
	for _, k := range left {
		if err := bucket.Delete(w, k); err != nil {
			return err
		}
	}
	learnt.Strength, learnt.At = was+lesson*(1-was), now
	return bucket.Put(w, key, learnt)
}

// Like returns how far, from 0 to 1, tools were of use after queries like this
// one, by their names.
func (b *Book) Like(ctx context.Context, query string) (map[string]float32, error) {
	words := search.Words(query)
	if len(words) == 0 {
		return nil, nil
	}
	kept, err := b.load(ctx)
	if err != nil {
		return nil, err
	}
	var out map[string]float32
	for i := range kept {
		h := &kept[i]
		alike, s := overlap(words, h.Words), h.now(b.now())
		if alike < leastAlike || s < faded {
			continue
		}
		if out == nil {
			out = map[string]float32{}
		}
		out[h.Tool] = max(out[h.Tool], float32(alike*s))
	}
	return out, nil
}

// usual is how strong a habit is of tools that usually follow on each other:
// once is chance.
const usual = .6

// Around returns the tools that were usually called before the named one, and
// after it, after a search each. Names are in order.
func (b *Book) Around(ctx context.Context, name string) (before, after []string, err error) {
	kept, err := b.load(ctx)
	for i := range kept {
		h := &kept[i]
		if h.Before == "" || h.now(b.now()) < usual {
			continue
		}
		if h.Tool == name {
			before = append(before, h.Before)
		}
		if h.Before == name {
			after = append(after, h.Tool)
		}
	}
	slices.Sort(before)
	slices.Sort(after)
	return before, after, err
}

func (b *Book) load(ctx context.Context) ([]habit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.read.IsZero() && b.now().Sub(b.read) < fresh {
		return b.kept, nil
	}
	var kept []habit
	err := b.store.View(ctx, func(r store.Reader) error {
		kept = nil
		for _, h := range bucket.All(r) {
			kept = append(kept, h)
		}
		return nil
	})
	if err == nil {
		b.kept, b.read = kept, b.now()
	}
	return kept, err
}

// overlap returns the share that two sorted lists have in common of both (Jaccard).
func overlap(a, b []string) float64 {
	common := 0
	for _, w := range a {
		if _, ok := slices.BinarySearch(b, w); ok {
			common++
		}
	}
	return float64(common) / float64(max(1, len(a)+len(b)-common))
}

// Forget forgets all habits that are kept in a store, and returns how many there were.
func Forget(ctx context.Context, s store.Store) (int, error) {
	n := 0
	err := s.Update(ctx, func(w store.Writer) error {
		n = 0
		for key := range w.Scan(string(bucket), "") {
			n++
			if err := w.Delete(string(bucket), key); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
