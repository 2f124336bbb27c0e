package search_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// A knower is a model that knows what a few made-up words mean. Texts without
// any of them mean nothing to it.
type knower struct {
	mu    sync.Mutex
	asked []string
	do    func(ctx context.Context, texts []string) error
}

var meant = [][]string{{"zorble", "delete"}, {"quixate", "mail"}, {"frumious", "weather"}, {"numbers"}}

func (k *knower) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, texts...)
	if k.do != nil {
		if err := k.do(ctx, texts); err != nil {
			return nil, err
		}
	}
	var out [][]float32
	for _, text := range texts {
		v := make([]float32, len(meant)+1)
		v[len(meant)] = .2
		for i, words := range meant {
			for _, w := range words {
				if strings.Contains(strings.ToLower(text), w) {
					v[i] = 1
				}
			}
		}
		var n float64
		for _, x := range v {
			n += float64(x) * float64(x)
		}
		for i := range v {
			v[i] /= float32(math.Sqrt(n))
		}
		out = append(out, v)
	}
	return out, nil
}

func (k *knower) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.asked)
}

func meantTools(extra ...string) *tool.Registry {
	var reg tool.Registry
	var tools []*tool.Tool
	for _, d := range append([]string{"files.delete: Delete a file.", "post.send: Send a mail to people.", "sky.report: Tell the weather in a place.", "maths.add: Add two numbers."}, extra...) {
		name, about, _ := strings.Cut(d, ": ")
		tools = append(tools, tool.New(tool.Definition{Name: name, Description: about}, func(context.Context, struct{}) (string, error) { return "", nil }))
	}
	if err := reg.Add(tools...); err != nil {
		panic(err)
	}
	return &reg
}

func meaningIndex(t *testing.T, m search.Meaning) *search.Index {
	ix := search.New(search.Options{Meaning: m})
	t.Cleanup(func() { ix.Close() })
	return ix
}

func found(t *testing.T, ix *search.Index, q search.Query) []string {
	t.Helper()
	hits, err := ix.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range hits {
		out = append(out, h.Tool.Name)
	}
	return out
}

func settle(t *testing.T, ix *search.Index) {
	t.Helper()
	if err := ix.WaitVectors(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestFoundByMeaning(t *testing.T) {
	k := &knower{}
	ix := meaningIndex(t, search.Meaning{Embedder: k, Query: "query: ", Document: "passage: "})
	ix.Sync(meantTools().Set())
	settle(t, ix)
	for query, want := range map[string]string{"please zorble it": "files.delete", "quixate": "post.send", "the frumious of tomorrow": "sky.report"} {
		got := found(t, ix, search.Query{Text: query})
		if len(got) == 0 || got[0] != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
		if got := found(t, ix, search.Query{Text: query, Lexical: true}); slices.Contains(got, want) {
			t.Errorf("%s: found by words: %v", query, got)
		}
	}
	// What means nothing to the model brings nothing into the answer.
	if got := found(t, ix, search.Query{Text: "xylograph"}); len(got) != 0 {
		t.Errorf("xylograph: %v", got)
	}
	// What a caller may not see is not found by its meaning either.
	if got := found(t, ix, search.Query{Text: "zorble", Accept: func(t *tool.Tool) bool { return t.Name != "files.delete" }}); len(got) != 0 {
		t.Errorf("a hidden tool was found, or another in its place: %v", got)
	}
	hits, err := ix.Search(t.Context(), search.Query{Text: "zorble", Explain: true})
	if err != nil || len(hits) == 0 || !strings.Contains(hits[0].Why, "meaning: 1.00 alike, +1.00") {
		t.Errorf("%v %v", hits, err)
	}
	if hits, _ := ix.Search(t.Context(), search.Query{Text: "zorble"}); len(hits) == 0 || hits[0].Why != "similar meaning" {
		t.Errorf("%v", hits)
	}
	if !slices.Contains(k.asked, "query: zorble") || !slices.ContainsFunc(k.asked, func(s string) bool { return strings.HasPrefix(s, "passage: files delete. Delete a file") }) {
		t.Errorf("asked %q", k.asked)
	}
	asked := k.count()
	found(t, ix, search.Query{Text: "zorble"})
	ix.Suggest("files.delite", 3, nil)
	if k.count() != asked {
		t.Error("the model was asked again for a query that it knew, or for a name")
	}
}

// Tools that come, change and go have vectors, do anew, and have none.
func TestVectorsFollowTools(t *testing.T) {
	k := &knower{}
	var settled []int
	ix := meaningIndex(t, search.Meaning{Embedder: k, Settled: func(_ context.Context, texts []string) { settled = append(settled, len(texts)) }})
	ix.Sync(meantTools().Set())
	settle(t, ix)
	if ix.Vectors() != 4 || k.count() != 4 {
		t.Errorf("%d vectors, %d texts", ix.Vectors(), k.count())
	}
	ix.Sync(meantTools("bin.empty: delete all").Set())
	settle(t, ix)
	if ix.Vectors() != 5 || k.count() != 5 {
		t.Errorf("%d vectors, %d texts: what did not change was asked again", ix.Vectors(), k.count())
	}
	if got := found(t, ix, search.Query{Text: "zorble"}); !slices.Equal(got, []string{"bin.empty", "files.delete"}) {
		t.Error(got)
	}
	ix.Sync(meantTools("bin.empty: weather").Set())
	settle(t, ix)
	if got := found(t, ix, search.Query{Text: "zorble"}); !slices.Equal(got, []string{"files.delete"}) || k.count() != 7 {
		t.Error(got, k.count())
	}
	ix.Sync(new(tool.Registry).Set())
	settle(t, ix)
	if ix.Vectors() != 0 {
		t.Errorf("%d vectors of no tools", ix.Vectors())
	}
	ix.Close()
	if want := []int{4, 5, 5, 0}; !slices.Equal(settled, want) {
		t.Errorf("settled with %v tools, want %v", settled, want)
	}
}

var errDown = errors.New("the model is down")

// A search waits for the model no longer than it has patience, finds by words,
// and lets it alone for a while. That is told once.
func TestModelThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &knower{}
		var told bytes.Buffer
		ix := meaningIndex(t, search.Meaning{Embedder: k, Patience: 300 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&told, nil))})
		ix.Sync(meantTools().Set())
		settle(t, ix)
		k.do = func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		finds := func(want time.Duration, wanted ...string) {
			t.Helper()
			began := time.Now()
			if got := found(t, ix, search.Query{Text: "zorble the weather"}); !slices.Equal(got, wanted) || time.Since(began) != want {
				t.Errorf("after %v: %v, want %v after %v", time.Since(began), got, wanted, want)
			}
		}
		finds(300*time.Millisecond, "sky.report")
		finds(0, "sky.report")
		time.Sleep(31 * time.Second)
		finds(300*time.Millisecond, "sky.report")
		k.do = nil
		time.Sleep(31 * time.Second)
		finds(0, "sky.report", "files.delete")
		if n := strings.Count(told.String(), "level=WARN"); n != 1 {
			t.Errorf("told %d times: %s", n, told.String())
		}
		ix.Close()
	})
}

// A model that fails when tools are loaded is asked again later; until then
// words alone count.
func TestModelThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &knower{do: func(context.Context, []string) error { return errDown }}
		var told bytes.Buffer
		ix := meaningIndex(t, search.Meaning{Embedder: k, Log: slog.New(slog.NewTextHandler(&told, nil))})
		ix.Sync(meantTools().Set())
		time.Sleep(25 * time.Second)
		if got := found(t, ix, search.Query{Text: "delete"}); !slices.Equal(got, []string{"files.delete"}) || k.count() != 4 {
			t.Error(got, k.count())
		}
		time.Sleep(10 * time.Second)
		k.mu.Lock()
		k.do = nil
		k.mu.Unlock()
		if err := ix.WaitVectors(t.Context()); !errors.Is(err, errDown) {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		settle(t, ix)
		if got := found(t, ix, search.Query{Text: "zorble"}); !slices.Equal(got, []string{"files.delete"}) {
			t.Error(got)
		}
		if n := strings.Count(told.String(), "level=WARN"); n != 1 || !strings.Contains(told.String(), "the model is down") {
			t.Errorf("told %d times: %s", n, told.String())
		}
		ix.Close()
	})
}

func TestCloseEndsTheModel(t *testing.T) {
	k := &knower{do: func(ctx context.Context, _ []string) error { <-ctx.Done(); return ctx.Err() }}
	ix := search.New(search.Options{Meaning: search.Meaning{Embedder: k}})
	ix.Sync(meantTools().Set())
	ix.Close()
	if err := ix.WaitVectors(t.Context()); err == nil {
		t.Error("a closed index has all vectors")
	}
	if err := search.New(search.Options{}).Close(); err != nil {
		t.Error(err)
	}
}
