package search

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/helve-ai/helve/lexicon"
	"github.com/helve-ai/helve/tool"
)

// Options are how an Index is made. The zero Options are good.
type Options struct {
	Weights *Weights         // nil: those that Helve comes with
	Lexicon *lexicon.Lexicon // nil: lexicon.Default
	Meaning Meaning          // by which tools are found besides words; zero: by none
}

// An engine is what all snapshots of an index have in common.
type engine struct {
	*Weights
	lex   *lexicon.Lexicon
	deeds []deed // by concept
}

func (o Options) engine() *engine {
	e := &engine{Weights: o.Weights.filled(), lex: o.Lexicon}
	if e.lex == nil {
		e.lex = lexicon.Default()
	}
	e.deeds = deedsOf(e.lex)
	return e
}

// An Index finds the tools of a set. It is safe for concurrent use, and
// nothing that searches waits for anything that changes it. The zero Index is
// empty.
type Index struct {
	mu   sync.Mutex // serialises Sync
	opts Options
	snap atomic.Pointer[snapshot]

	meaning *meaning // nil: none
}

// New returns an empty index. One with a Meaning must be closed.
func New(o Options) *Index { return &Index{opts: o, meaning: newMeaning(o.Meaning)} }

func (ix *Index) load() *snapshot {
	if s := ix.snap.Load(); s != nil {
		return s
	}
	return &snapshot{engine: ix.opts.engine()}
}

// Sync makes the index hold exactly the tools of set. Tools with the same
// pointer as before cost no more than a comparison: a tool must not change
// once it is in a set. Searches under way go on with what was held before.
func (ix *Index) Sync(set *tool.Set) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.snap.Store(ix.load().next(set))
	ix.meaning.want(set)
}

// Len reports how many tools the index holds.
func (ix *Index) Len() int { return len(ix.load().places) }

// defaultLimit is how many hits a query asks for that does not say.
const defaultLimit = 10

// Search returns the tools that suit the query, best first, none where nothing
// suits. Equal scores are ordered by name. It fails only if ctx is done.
//
// How rare a word is, is counted over all tools, those that q.Accept rejects
// included.
func (ix *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	s := ix.load()
	if len(s.places) == 0 {
		return nil, nil
	}
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	sc.verdicts = zeroed(sc.verdicts, s.docs)
	r := ranker{snap: s, accept: q.Accept, verdicts: sc.verdicts}
	text := cut(q.Text, maxQuery)
	parsed := r.parse(text, sc)
	channels := r.score(&parsed, sc)
	scores, most := r.fuse(channels)
	if r.unrelated(&parsed, &channels[0], sc) {
		clear(scores)
		most = 0
	}
	brought := r.bringAlong(scores, most, &parsed, sc)
	brought = r.raiseIntents(scores, most, sc, brought)
	most = r.heedNames(&parsed, scores, most, sc)
	most = r.shun(scores, most, sc)
	alike := ix.meaning.near(ctx, text, q.Lexical, &r)
	most = alike.add(scores, most)
	used, most := r.addHabits(q.Habits, scores, most)
	named := r.named(&parsed, strings.TrimSpace(text))
	for doc, bonus := range named {
		scores[doc] += bonus
	}
	top := r.rank(scores, r.w(kFloor)*most, min(max(limit, coverWindow), s.docs))
	top, repeated := r.cover(&parsed, top, sc)
	top = top[:min(limit, len(top))]
	hits := make([]Hit, len(top))
	for i, c := range top {
		hits[i] = Hit{Tool: c.tool, Score: float64(c.score), Why: alike.why(c.doc, s.why(c.doc, &parsed, named[c.doc], q.Explain, sc), q.Explain)}
		if q.Explain {
			hits[i].Parts = r.parts(c, &parsed, 1-sc.named[c.doc], channels, named[c.doc], brought[c.doc], alike[c.doc].part, used[c.doc], repeated[c.doc])
		}
	}
	return hits, nil
}

// named returns the bonuses of the documents that the query names.
func (r *ranker) named(q *query, text string) map[int]float32 {
	out := map[int]float32{}
	for _, n := range q.names {
		r.snap.eachPosting(n.term, func(doc uint32, _ uint8) {
			if r.sees(int(doc)) {
				out[int(doc)] = max(out[int(doc)], n.bonus)
			}
		})
	}
	for doc, bonus := range out {
		if t := r.snap.at(doc); bonus == bonusForm && (t.Name == text || tool.Wire(t.Name) == text) {
			out[doc] = bonusName
		}
	}
	return out
}

// Suggest returns up to n names of tools, among those that accept does not
// reject, that somebody may have meant who called a tool by an unknown name.
func (ix *Index) Suggest(name string, n int, accept func(*tool.Tool) bool) []string {
	if n <= 0 {
		return nil
	}
	hits, err := ix.Search(context.Background(), Query{Text: name, Limit: n, Accept: accept, Lexical: true})
	if err != nil {
		return nil
	}
	var out []string
	for _, h := range hits {
		if !slices.Contains(out, h.Tool.Name) {
			out = append(out, h.Tool.Name)
		}
	}
	return out
}
