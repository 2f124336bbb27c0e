package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// A Tuning looks for weights that rank some sets better, one weight at a time:
// it tries each at some multiples of what it is, takes the best, and goes on to
// the next, until a round changes nothing. The same sets give the same weights.
type Tuning struct {
	Start   search.Weights
	Queries int                                  // the most queries of a set, evenly spaced; zero: 500
	Rounds  int                                  // the most rounds; zero: 3
	Least   float64                              // the least gain for which a weight is changed; zero: .0005
	Only    []string                             // the weights that may change; empty: all
	Report  func(name string, value, sc float64) // is told of each change, if not nil
}

// multiples are what is tried of each weight. They are coarse: what differs
// less is not worth telling apart by some hundred queries.
var multiples = []float64{0, .5, .75, 1.5, 2}

// A Change is a weight that was changed, and what that gained.
type Change struct {
	Name string  `json:"name"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Gain float64 `json:"gain"`
}

// A Tuned is what a Tuning found. A score is the macro average over the sets of
// the mean of nDCG@10 and recall@5.
type Tuned struct {
	Before  float64        `json:"before"`
	After   float64        `json:"after"`
	Changes []Change       `json:"changes"`
	Weights search.Weights `json:"weights"`
	LeftOut []LeftOut      `json:"left_out,omitempty"`
}

// A LeftOut tells what weights are worth on a set that they were not tuned on.
type LeftOut struct {
	Set    string  `json:"set"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// A trial is a set, ready to be run with many weights.
type trial struct {
	tools   *tool.Set
	queries []Query
}

// A tuner is a Tuning at work. It remembers what weights are worth on each set.
type tuner struct {
	Tuning
	trials []trial
	known  map[search.Weights][]float64
}

// Run tunes on the sets. With leaveOut it also tunes on all sets but one, for
// each in turn, and measures what that is worth on that one.
func (t Tuning) Run(ctx context.Context, sets []*EvalSet, names []string, leaveOut bool) (*Tuned, error) {
	if len(sets) == 0 {
		return nil, errors.New("there is no set to tune on")
	}
	t.Queries, t.Rounds, t.Least = cmp.Or(t.Queries, 500), cmp.Or(t.Rounds, 3), cmp.Or(t.Least, .0005)
	u := &tuner{Tuning: t, known: map[search.Weights][]float64{}}
	for _, s := range sets {
		var reg tool.Registry
		if err := reg.Add(s.registrable()...); err != nil {
			return nil, err
		}
		u.trials = append(u.trials, trial{reg.Set(), thinned(s.Queries, t.Queries)})
	}
	all := make([]int, len(sets))
	for i := range all {
		all[i] = i
	}
	out, err := u.climb(ctx, all)
	if err != nil || !leaveOut || len(sets) < 2 {
		return out, err
	}
	u.Report = nil
	for i := range sets {
		rest, err := u.climb(ctx, slices.Delete(slices.Clone(all), i, i+1))
		if err != nil {
			return nil, err
		}
		out.LeftOut = append(out.LeftOut, LeftOut{names[i], u.score(u.Start, []int{i}), u.score(rest.Weights, []int{i})})
	}
	return out, ctx.Err()
}

// thinned returns n of the queries at most, evenly spaced.
func thinned(queries []Query, n int) []Query {
	if len(queries) <= n {
		return queries
	}
	out := make([]Query, n)
	for i := range out {
		out[i] = queries[i*len(queries)/n]
	}
	return out
}

// climb tunes on some of the sets.
func (u *tuner) climb(ctx context.Context, on []int) (*Tuned, error) {
	now := u.Start
	before := u.score(now, on)
	out := &Tuned{Before: before}
	best := before
	for range u.Rounds {
		changed := false
		for _, k := range search.Knobs() {
			if len(u.Only) > 0 && !slices.Contains(u.Only, k.Name) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			from := now.Get(k.Name)
			next, score := u.bestOf(now, k, on)
			if score < best+u.Least {
				continue
			}
			out.Changes = append(out.Changes, Change{k.Name, from, next.Get(k.Name), score - best})
			now, best, changed = next, score, true
			if u.Report != nil {
				u.Report(k.Name, now.Get(k.Name), best)
			}
		}
		if !changed {
			break
		}
	}
	out.After, out.Weights = best, now
	return out, nil
}

// bestOf returns the best weights that differ from w in k only.
func (u *tuner) bestOf(w search.Weights, k search.Knob, on []int) (best search.Weights, score float64) {
	from := cmp.Or(w.Get(k.Name), k.Default, .1)
	for _, m := range multiples {
		next := w
		if next.Set(k.Name, round(from*m)) != nil {
			continue
		}
		if s := u.score(next, on); s > score {
			best, score = next, s
		}
	}
	return best, score
}

// round keeps two digits, so that weights can be read.
func round(x float64) float64 {
	if x == 0 {
		return 0
	}
	var out float64
	fmt.Sscanf(fmt.Sprintf("%.2g", x), "%g", &out)
	return out
}

// score returns what weights are worth on some of the sets.
func (u *tuner) score(w search.Weights, on []int) float64 {
	all, ok := u.known[w]
	if !ok {
		all = u.measure(w)
		u.known[w] = all
	}
	var sum float64
	for _, i := range on {
		sum += all[i]
	}
	return sum / float64(len(on))
}

// measure returns what weights are worth on each of the sets.
func (u *tuner) measure(w search.Weights) []float64 {
	out := make([]float64, len(u.trials))
	next := make(chan int, len(out))
	for i := range out {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				out[i] = u.trials[i].run(w)
			}
		})
	}
	all.Wait()
	return out
}

func (t *trial) run(w search.Weights) float64 {
	ix := search.New(search.Options{Weights: &w})
	ix.Sync(t.tools)
	var sum float64
	var names []string
	for _, q := range t.queries {
		hits, err := ix.Search(context.Background(), search.Query{Text: q.Text, Limit: 10})
		if err != nil {
			panic(err) // the context is never done
		}
		names = names[:0]
		for _, h := range hits {
			names = append(names, h.Tool.Name)
		}
		m := Judge(names, q.Groups)
		sum += (m.NDCG10 + m.Recall5) / 2
	}
	return sum / float64(max(1, len(t.queries)))
}
