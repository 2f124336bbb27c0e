package search

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helve-ai/helve/tool"
	"github.com/helve-ai/helve/vector"
)

// A Meaning is a model by which tools are found whose words are other than the
// query's. Until all tools have had vectors once, and while the model fails,
// they are found by words alone.
type Meaning struct {
	Embedder Embedder      // nil: there is none
	Queries  Embedder      // the same model, for queries; nil: Embedder
	Patience time.Duration // how long a search waits for the query's vector; zero: a second
	Query    string        // what the model wants before queries
	Document string        // what it wants before other texts
	Log      *slog.Logger  // told once when the model fails, and once when it is back; nil: nobody is

	// Settled, if it is there, is called with the texts of all tools whenever
	// all of them have vectors. No search waits for it.
	Settled func(ctx context.Context, texts []string)
}

const (
	defaultPatience = time.Second
	firstRest       = 30 * time.Second // how long a model that failed is let alone
	longestRest     = 10 * time.Minute
	breadth         = 64  // how many tools the model may bring into an answer
	keptQueries     = 256 // how many queries' vectors are remembered
)

// A meaning gives tools vectors, in a goroutine of its own, and finds those
// nearest to queries. A nil meaning finds nothing.
type meaning struct {
	Meaning
	end   context.CancelFunc
	ended chan struct{}
	wake  chan struct{}

	vectors atomic.Pointer[vector.Index] // of tools, by name; nil: of none yet
	level   atomic.Uint64                // bits of the likeness of any two tools
	ready   atomic.Bool                  // all tools have had vectors once
	failing atomic.Bool                  // a failure was told
	resting atomic.Int64                 // until when queries do not ask the model, in Unix nanoseconds

	mu      sync.Mutex
	wanted  *tool.Set
	settled chan struct{} // closed when all wanted tools have vectors, or the model failed; nil: they have
	broken  error         // why they have not; nil: the model did not fail
	queries map[string][]float32
}

func newMeaning(o Meaning) *meaning {
	if o.Embedder == nil {
		return nil
	}
	if o.Queries == nil {
		o.Queries = o.Embedder
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, end := context.WithCancel(context.Background())
	m := &meaning{Meaning: o, end: end, ended: make(chan struct{}), wake: make(chan struct{}, 1), queries: map[string][]float32{}}
	go m.run(ctx)
	return m
}

// Close ends what the index does by itself. An index without a Meaning does
// nothing.
func (ix *Index) Close() error {
	if m := ix.meaning; m != nil {
		m.end()
		<-m.ended
	}
	return nil
}

// WaitVectors waits until all tools have vectors. It fails if the model does,
// if ctx ends first, and with the index; without a Meaning it has nothing to
// wait for.
func (ix *Index) WaitVectors(ctx context.Context) error {
	m := ix.meaning
	if m == nil {
		return nil
	}
	for {
		m.mu.Lock()
		settled, broken := m.settled, m.broken
		m.mu.Unlock()
		if settled == nil || broken != nil {
			return broken
		}
		select {
		case <-settled:
		case <-m.ended:
			return fmt.Errorf("search: the index is closed")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Vectors returns how many tools have vectors.
func (ix *Index) Vectors() int {
	if m := ix.meaning; m != nil {
		if v := m.vectors.Load(); v != nil {
			return v.Len()
		}
	}
	return 0
}

// A likeness is what the model says of a tool.
type likeness struct {
	cosine float64 // of the query's vector and the tool's
	part   float32 // of the score
}

// likenesses are those of documents that the model brings into the answer.
type likenesses map[int]likeness

// near returns the documents that are nearest to the query, or none where
// there is no model, or none that answers in time.
func (m *meaning) near(ctx context.Context, text string, lexical bool, r *ranker) likenesses {
	if m == nil || lexical || text == "" || !m.ready.Load() {
		return nil
	}
	vectors := m.vectors.Load()
	q := m.vectorOf(ctx, text)
	if q == nil {
		return nil
	}
	hits, err := vectors.Search(ctx, q, breadth, func(name string) bool {
		doc, ok := r.snap.docOf(name)
		return ok && r.sees(doc)
	})
	if err != nil { // ctx is done, or the query's vector is not one
		return nil
	}
	out, level := likenesses{}, math.Float64frombits(m.level.Load())
	for _, h := range hits {
		x := float32((h.Score - level) / (1 - level))
		if doc, ok := r.snap.docOf(h.ID); ok && x >= r.w(kMeaningLeast) {
			out[doc] = likeness{h.Score, r.w(kMeaning) * x}
		}
	}
	return out
}

// vectorOf returns the vector of a query, nil if the model does not give it in
// time.
func (m *meaning) vectorOf(ctx context.Context, text string) []float32 {
	m.mu.Lock()
	v := m.queries[text]
	m.mu.Unlock()
	if v != nil || time.Now().UnixNano() < m.resting.Load() {
		return v
	}
	asked, cancel := context.WithTimeout(ctx, m.Patience)
	defer cancel()
	out, err := ask(asked, m.Queries, []string{m.Query + text})
	if err != nil {
		if ctx.Err() == nil { // it was the model, not the caller
			m.resting.Store(time.Now().Add(firstRest).UnixNano())
			m.failed(err)
		}
		return nil
	}
	m.worked()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queries) >= keptQueries {
		clear(m.queries)
	}
	m.queries[text] = out[0]
	return out[0]
}

// ask asks a model, and holds it to one vector for each text.
func ask(ctx context.Context, e Embedder, texts []string) ([][]float32, error) {
	out, err := e.Embed(ctx, texts)
	if err == nil && len(out) != len(texts) {
		err = fmt.Errorf("%d vectors of %d texts", len(out), len(texts))
	}
	return out, err
}

func (m *meaning) failed(err error) {
	if !m.failing.Swap(true) {
		m.Log.Warn("the model of search fails; until it answers again, tools are found by their words alone", "error", err)
	}
}

func (m *meaning) worked() {
	if m.failing.Swap(false) {
		m.Log.Info("the model of search answers again")
	}
}

// docOf returns the document of the tool of a name.
func (s *snapshot) docOf(name string) (int, bool) {
	from, to := 0, len(s.places)
	for from < to {
		mid := (from + to) / 2
		if s.tool(s.places[mid]).Name < name {
			from = mid + 1
		} else {
			to = mid
		}
	}
	if from == len(s.places) || s.tool(s.places[from]).Name != name {
		return 0, false
	}
	p := s.places[from]
	return s.views[p.view].base + int(p.doc), true
}

// add adds the parts to the scores, and returns the greatest score.
func (l likenesses) add(scores []float32, most float32) float32 {
	for doc, x := range l {
		scores[doc] += x.part
		most = max(most, scores[doc])
	}
	return most
}

// why adds to what is said of a document.
func (l likenesses) why(doc int, said string, full bool) string {
	x, ok := l[doc]
	switch {
	case !ok:
		return said
	case full && said != "":
		said += "; "
	case !full && said != "":
		return said
	case !full:
		return "similar meaning"
	}
	return fmt.Sprintf("%smeaning: %.2f alike, +%.2f", said, x.cosine, x.part)
}
