package guard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// DefaultMaxResult is how many characters of a result the caller sees (SPEC X6).
const DefaultMaxResult = 10_000

// Spilled holds the results that were too long to be shown whole, by id.
const Spilled = store.Bucket[Spill]("spilled")

// spilledOf tells which results were spilled by a session: keys are the
// session's and the result's id.
const spilledOf = "spilled_of"

// A Spill is a result that was too long to be shown whole. Only its own
// session, of its own app and user, may read it.
type Spill struct {
	App, User, Session string
	Tool, Call         string
	Time               time.Time
	Text               string
	Outside            bool `json:",omitempty"` // it came from outside
}

// Readable reports whether a caller may read the spill.
func (s *Spill) Readable(from tool.Origin) bool {
	return s.App == from.App && s.User == from.User && s.Session == from.Session
}

// sessionKey begins the keys of what a session has in an index.
func sessionKey(app, user, session string) string {
	sum := sha256.Sum256([]byte(app + "\x00" + user + "\x00" + session))
	return hex.EncodeToString(sum[:16]) + "/"
}

func (s *Spill) key(id string) string { return sessionKey(s.App, s.User, s.Session) + id }

// forgetAtOnce bounds what one transaction of Forget deletes.
const forgetAtOnce = 200

// Forget deletes what was spilled by the session of that origin.
func Forget(ctx context.Context, spill store.Store, from tool.Origin) error {
	prefix := sessionKey(from.App, from.User, from.Session)
	for {
		var keys []string
		if err := spill.View(ctx, func(r store.Reader) error {
			keys = nil
			for key := range r.Scan(spilledOf, prefix) {
				if keys = append(keys, key); len(keys) == forgetAtOnce {
					break
				}
			}
			return nil
		}); err != nil || len(keys) == 0 {
			return err
		}
		if err := spill.Update(ctx, func(w store.Writer) error {
			for _, key := range keys {
				if err := errors.Join(w.Delete(spilledOf, key), Spilled.Delete(w, strings.TrimPrefix(key, prefix))); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
}

// Truncate returns the stage that holds a result's text to most characters
// (zero: DefaultMaxResult). The whole text is kept under a fresh id, with
// which results.read returns any part of it.
func Truncate(most int, spill store.Store, now func() time.Time) pipeline.Stage {
	if most == 0 {
		most = DefaultMaxResult
	}
	return pipeline.Stage{
		Name: "truncate", Doc: "cut long results, and keep the whole",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				res, err := next(ctx, c)
				limit := most
				if c.Tool != nil && c.Tool.MaxResult > 0 {
					limit = c.Tool.MaxResult
				}
				if err != nil || !tooLarge(res, limit) {
					return res, err
				}
				return cut(ctx, c, res, limit, spill, now()), nil
			}
		},
	}
}

func tooLarge(res *tool.Result, most int) bool {
	n := 0
	for _, c := range res.Content {
		n += len(c.Text)
	}
	if res.Err != nil {
		n = max(n, len(res.Err.Message))
	}
	return n > most && characters(res) > most
}

func characters(res *tool.Result) int {
	n := 0
	for _, c := range res.Content {
		n += utf8.RuneCountInString(c.Text)
	}
	if res.Err != nil {
		n = max(n, utf8.RuneCountInString(res.Err.Message))
	}
	return n
}

func cut(ctx context.Context, c *tool.Call, res *tool.Result, most int, spill store.Store, now time.Time) *tool.Result {
	out := *res
	if res.Err != nil && utf8.RuneCountInString(res.Err.Message) > most {
		e := *res.Err
		e.Message = shorten(ctx, c, e.Message, most, spill, now)
		e.Details = nil
		out.Err = &e
	}
	var texts []string
	var rest []tool.Content // what is not text stays as it is
	for _, content := range res.Content {
		if content.Text != "" {
			texts = append(texts, content.Text)
		} else {
			rest = append(rest, content)
		}
	}
	whole := strings.Join(texts, "\n")
	if utf8.RuneCountInString(whole) > most {
		out.Content = append([]tool.Content{{Text: shorten(ctx, c, whole, most, spill, now)}}, rest...)
		c.Trail.Bytes = len(whole)
		if c.Tool == nil || c.Tool.Output == nil {
			out.Structured = nil
		}
	}
	c.Trail.Truncated = true
	return &out
}

// shorten keeps the whole text in the store, and returns its head and tail
// around a marker that says how to read the rest.
func shorten(ctx context.Context, c *tool.Call, whole string, most int, spill store.Store, now time.Time) string {
	total := utf8.RuneCountInString(whole)
	id, err := keep(ctx, c, whole, spill, now)
	how := fmt.Sprintf(`call results.read with {"id": %q, "offset": N} or {"id": %q, "search": "…"} for any part`, id, id)
	if err != nil {
		how = "the whole could not be kept: " + err.Error()
	}
	const markerRoom = 300
	keepRunes := max(most-markerRoom, most/2)
	head := runes(whole, keepRunes*2/3)
	tail := lastRunes(whole, keepRunes-keepRunes*2/3)
	left := total - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	return fmt.Sprintf("%s\n\n[… %d of %d characters left out; %s …]\n\n%s", head, left, total, how, tail)
}

func keep(ctx context.Context, c *tool.Call, whole string, spill store.Store, now time.Time) (string, error) {
	if spill == nil {
		return "", fmt.Errorf("there is no store for results")
	}
	id := spillID(now) + strings.ToLower(rand.Text())
	s := Spill{App: c.From.App, User: c.From.User, Session: c.From.Session, Tool: c.Name, Call: c.ID, Time: now, Text: whole, Outside: c.Trail.Outside}
	return id, spill.Update(ctx, func(w store.Writer) error {
		if err := prune(w, now); err != nil {
			return err
		}
		if err := w.Put(spilledOf, s.key(id), nil); err != nil {
			return err
		}
		return Spilled.Put(w, id, s)
	})
}

// spillID returns how the ids of results of that time begin: they sort by time.
func spillID(t time.Time) string { return fmt.Sprintf("r_%09x", t.Unix()) }

// spillAge is how long a result that was cut stays readable; pruneAtOnce
// bounds what one call clears away.
const (
	spillAge    = 7 * 24 * time.Hour
	pruneAtOnce = 16
)

// prune deletes the oldest results that are past their age.
func prune(w store.Writer, now time.Time) error {
	type entry struct{ id, key string }
	var old []entry
	first := spillID(now.Add(-spillAge))
	for id, data := range w.Scan(string(Spilled), "r_") {
		if id >= first || len(old) == pruneAtOnce {
			break
		}
		var s Spill
		_ = json.Unmarshal(data, &s) // what cannot be read goes, too
		old = append(old, entry{id, s.key(id)})
	}
	for _, e := range old {
		if err := errors.Join(w.Delete(string(Spilled), e.id), w.Delete(spilledOf, e.key)); err != nil {
			return err
		}
	}
	return nil
}

// runes returns the first n characters of s.
func runes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// lastRunes returns the last n characters of s.
func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}
