package search

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/helve-ai/helve/tool"
)

// Options are how an Index is made. The zero Options are good.
type Options struct{}

// An Index finds the tools of a set. It is safe for concurrent use, and
// nothing that searches waits for anything that changes it. The zero Index is
// empty.
type Index struct {
	mu   sync.Mutex // serialises Sync
	snap atomic.Pointer[snapshot]
}

// New returns an empty index.
func New(Options) *Index { return &Index{} }

func (ix *Index) load() *snapshot {
	if s := ix.snap.Load(); s != nil {
		return s
	}
	return &snapshot{}
}

// Sync makes the index hold exactly the tools of set. Tools with the same
// pointer as before cost no more than a comparison: a tool must not change
// once it is in a set. Searches under way go on with what was held before.
func (ix *Index) Sync(set *tool.Set) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.snap.Store(ix.load().next(set))
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
	scores, most := r.fuse(s.score(&parsed, sc))
	named := r.named(&parsed, strings.TrimSpace(text))
	for doc, bonus := range named {
		scores[doc] += bonus
	}
	top := r.rank(scores, relativeFloor*most, min(limit, s.docs))
	hits := make([]Hit, len(top))
	for i, c := range top {
		hits[i] = Hit{Tool: c.tool, Score: float64(c.score), Why: s.why(c.doc, &parsed, named[c.doc], q.Explain, sc)}
	}
	return hits, nil
}

// named returns the bonuses of the documents that the query names.
func (r *ranker) named(q *query, text string) map[int]float32 {
	out := map[int]float32{}
	for _, n := range q.names {
		r.snap.eachPosting(n.term, func(doc uint32, _ uint8) {
			out[int(doc)] = max(out[int(doc)], n.bonus)
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
	hits, err := ix.Search(context.Background(), Query{Text: name, Limit: n, Accept: accept})
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
