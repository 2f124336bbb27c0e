package measure_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/helve-ai/helve/search/measure"
)

func evals(t testing.TB) string {
	dir := os.Getenv("HELVE_EVALS")
	if dir == "" {
		t.Skip("set HELVE_EVALS to a folder with the evaluation data to run this")
	}
	return filepath.Join(dir, "retrieval")
}

func TestSets(t *testing.T) {
	dir := evals(t)
	sets, err := filepath.Glob(filepath.Join(dir, "*", "tools.jsonl"))
	if err != nil || len(sets) == 0 {
		t.Fatalf("no sets in %s: %v", dir, err)
	}
	var ndcg, r5 float64
	for _, file := range sets {
		name := filepath.Base(filepath.Dir(file))
		set, err := measure.LoadSet(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		ix, took, size, err := set.Index()
		if err != nil {
			t.Fatal(err)
		}
		m, err := measure.Measure(ix, set)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-22s n@10 %.3f  r@1 %.3f r@5 %.3f r@10 %.3f mrr %.3f  p50 %.0f p99 %.0f  build %d ms, %d B", name, m.NDCG10, m.Recall1, m.Recall5, m.Recall, m.MRR, m.P50, m.P99, took.Milliseconds(), int(size)/m.Tools)
		ndcg += m.NDCG10 / float64(len(sets))
		r5 += m.Recall5 / float64(len(sets))
	}
	t.Logf("macro %.4f %.4f", ndcg, r5)
}
