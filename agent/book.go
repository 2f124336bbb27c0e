package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/store"
)

// A Book keeps conversations, so that they can be taken up again after the
// process has ended. Messages are kept as they were said, also those that were
// summarized for the model.
type Book struct {
	Store store.Store
	Now   func() time.Time
}

// A Kept is what is known of a conversation beside its messages.
type Kept struct {
	ID      string       `json:"id"`
	App     string       `json:"app"`
	Agent   string       `json:"agent"`
	Above   []string     `json:"handed_over_by,omitempty"` // the agents that had it before and bound the present one, the first one first
	User    string       `json:"user"`
	Parent  string       `json:"parent,omitempty"` // the session in which it was set to work; "": a user began it
	Title   string       `json:"title"`            // how it began
	Began   time.Time    `json:"began"`
	Last    time.Time    `json:"last"`
	Count   int          `json:"messages"`
	Usage   llm.Usage    `json:"usage"`
	Money   float64      `json:"money,omitempty"`
	Base    int          `json:"base,omitempty"` // see Conversation
	Head    *llm.Message `json:"head,omitempty"` // what stands in place of the messages up to Base
	Outcome string       `json:"outcome,omitempty"`
	Active  []string     `json:"active,omitempty"` // tools in sight beside those of the mode, in the order in which they came
}

const (
	keptBucket = store.Bucket[Kept]("conversations")
	saidBucket = store.Bucket[llm.Message]("said")
	maxTitle   = 80 // characters
)

// ErrNoConversation is the error, wrapped, for an id under which nothing is kept.
var ErrNoConversation = errors.New("no such session")

// NewID returns the id of a new conversation. Ids sort by time.
func (b *Book) NewID() string {
	return b.now().UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:6])
}

func (b *Book) now() time.Time {
	if b.Now == nil {
		return time.Now()
	}
	return b.Now()
}

func saidKey(id string, n int) string { return fmt.Sprintf("%s/%08d", id, n) }

// Save keeps what was added to a conversation since it was last saved or
// loaded. A power failure may take the last turns, the end of the process takes
// nothing. Who it is by and what it came to stands in k, of which the rest is
// filled in.
func (b *Book) Save(ctx context.Context, c *Conversation, k Kept) error {
	end := c.Base + len(c.Messages)
	err := b.Store.Update(store.Unsynced(ctx), func(w store.Writer) error {
		old, err := keptBucket.Get(w, c.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			k.Began = b.now()
		case err != nil:
			return err
		case old.App != k.App || old.User != k.User:
			return fmt.Errorf("session %q belongs to somebody else", c.ID)
		default:
			k.Began, k.Title = old.Began, old.Title
		}
		k.Usage, k.Money = old.Usage.Add(c.used), old.Money+c.paid
		k.ID, k.Last, k.Count, k.Base, k.Head = c.ID, b.now(), end, c.Base, nil
		if c.Base > 0 {
			k.Head = &c.Messages[0]
		}
		for n := max(c.saved, c.Base); n < end; n++ {
			if k.Title == "" && c.Messages[n-c.Base].Role == llm.User {
				k.Title = title(&c.Messages[n-c.Base])
			}
			if err := saidBucket.Put(w, saidKey(c.ID, n), c.Messages[n-c.Base]); err != nil {
				return err
			}
		}
		return keptBucket.Put(w, c.ID, k)
	})
	if err == nil {
		c.saved, c.used, c.paid = end, llm.Usage{}, 0
	}
	return err
}

func title(m *llm.Message) string {
	text := strings.Join(strings.Fields(m.Text()), " ")
	if utf8.RuneCountInString(text) > maxTitle {
		text = string([]rune(text)[:maxTitle-1]) + "…"
	}
	return text
}

// Load returns a conversation as a model has it. An id may be cut short as
// long as it means one conversation.
func (b *Book) Load(ctx context.Context, id string, mine func(Kept) bool) (*Conversation, Kept, error) {
	k, err := b.find(ctx, id, mine)
	if err != nil {
		return nil, Kept{}, err
	}
	c := &Conversation{ID: k.ID, Base: k.Base, saved: k.Count}
	all, err := b.said(ctx, k.ID, k.Base)
	if err != nil {
		return nil, k, err
	}
	if k.Head != nil && len(all) > 0 {
		all[0] = *k.Head
	}
	c.Messages = all
	return c, k, nil
}

// Said returns all that was said in a conversation.
func (b *Book) Said(ctx context.Context, id string) ([]llm.Message, error) { return b.said(ctx, id, 0) }

func (b *Book) said(ctx context.Context, id string, from int) (all []llm.Message, err error) {
	err = b.Store.View(ctx, func(r store.Reader) error {
		all = nil
		first := saidKey(id, from)
		for key, m := range saidBucket.Scan(r, id+"/") {
			if key >= first {
				all = append(all, m)
			}
		}
		return nil
	})
	return all, err
}

// List returns the conversations that mine accepts, the latest first. Nil
// accepts all.
func (b *Book) List(ctx context.Context, mine func(Kept) bool) (all []Kept, err error) {
	err = b.Store.View(ctx, func(r store.Reader) error {
		all = nil
		for _, k := range keptBucket.Scan(r, "") {
			if mine == nil || mine(k) {
				all = append(all, k)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(x, y Kept) int { return y.Last.Compare(x.Last) })
	return all, err
}

// find returns the conversation that an id, or the beginning of one, means.
func (b *Book) find(ctx context.Context, id string, mine func(Kept) bool) (Kept, error) {
	all, err := b.List(ctx, func(k Kept) bool { return strings.HasPrefix(k.ID, id) && (mine == nil || mine(k)) })
	switch {
	case err != nil:
		return Kept{}, err
	case len(all) == 0:
		return Kept{}, fmt.Errorf("%w: %q", ErrNoConversation, id)
	case len(all) == 1:
		return all[0], nil
	}
	for _, k := range all {
		if k.ID == id {
			return k, nil
		}
	}
	return Kept{}, fmt.Errorf("%q means %d sessions, as %s and %s; write more of it", id, len(all), all[0].ID, all[1].ID)
}

// Delete forgets a conversation.
func (b *Book) Delete(ctx context.Context, id string) error {
	return b.Store.Update(ctx, func(w store.Writer) error {
		for key := range w.Scan(string(saidBucket), id+"/") {
			if err := saidBucket.Delete(w, key); err != nil {
				return err
			}
		}
		return keptBucket.Delete(w, id)
	})
}
