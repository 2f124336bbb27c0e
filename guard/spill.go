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

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// Spilled holds the results that were too long to be shown whole, by id.
const Spilled = store.Bucket[Spill]("spilled")

// spilledOf tells which results were spilled by a session: keys are the
// session's and the result's id.
const spilledOf = "spilled_of"

// A Spill is a result that was too long to be shown whole, or binary data that
// stood in one. Only its own session, of its own app and user, may read it.
type Spill struct {
	App, User, Session string
	Tool, Call         string
	Time               time.Time
	Text               string
	MIME               string `json:",omitempty"` // of Data; "": Text is the result
	Data               []byte `json:",omitempty"` // what is not text
	Outside            bool   `json:",omitempty"` // it came from outside
}

// Binary reports whether it is data that stood in a result, not a text.
func (s *Spill) Binary() bool { return s.MIME != "" }

// Bytes returns what was kept, as it is written to a file.
func (s *Spill) Bytes() []byte {
	if s.Binary() {
		return s.Data
	}
	return []byte(s.Text)
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

// A keeper keeps what a result cannot show, bound to the session of its call.
type keeper struct {
	call  *tool.Call
	spill store.Store
	now   time.Time
}

// keep stores s under a fresh id.
func (k *keeper) keep(ctx context.Context, s Spill) (string, error) {
	if k.spill == nil {
		return "", fmt.Errorf("there is no store for results")
	}
	from := k.call.From
	id := spillID(k.now) + strings.ToLower(rand.Text())
	s.App, s.User, s.Session, s.Time = from.App, from.User, from.Session, k.now
	s.Tool, s.Call, s.Outside = k.call.Name, k.call.ID, k.call.Trail.Outside
	return id, k.spill.Update(ctx, func(w store.Writer) error {
		if err := prune(w, k.now); err != nil {
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
