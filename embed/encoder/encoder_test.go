package encoder

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/helve-ai/helve/embed/embedtest"
)

// texts are what models of letters and of the tokenizers' test vocabularies read.
var texts = []string{"read a file", "", "Lies die Datei, und schicke sie per E-Mail!", "файл 読む 파일", "a",
	strings.Repeat("a very long text that goes on ", 20)}

func folder(t testing.TB, m embedtest.Model) string {
	t.Helper()
	dir := t.TempDir()
	if err := embedtest.Write(dir, m); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, dir string) *Encoder {
	t.Helper()
	e, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func embed(t testing.TB, e *Encoder, texts ...string) [][]float32 {
	t.Helper()
	out, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func compare(t *testing.T, what string, got []float32, want []float64, within float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d components, want %d", what, len(got), len(want))
	}
	for i, x := range got {
		if !(math.Abs(float64(x)-want[i]) <= within) {
			t.Fatalf("%s: component %d is %v, want %v", what, i, x, want[i])
		}
	}
}

// The encoder computes what the model's equations, in double precision and
// written plainly, give.
func TestSameAsEquations(t *testing.T) {
	for _, m := range []embedtest.Model{
		{},
		{Format: "F16"},
		{Format: "BF16"},
		{Format: "onnx"},
		{Format: "onnx-named"},
		{Pooling: "cls", Seed: 1},
		{Type: "xlm-roberta", Seed: 2},
		{Hidden: 50, Heads: 5, Intermediate: 77, Layers: 3, Seed: 3},
		{Type: "xlm-roberta", Tokenizer: "../tokenizer/testdata/xlm-r.json", Vocabulary: 2000, Seed: 4, Format: "onnx"},
	} {
		t.Run(m.Type+m.Format+m.Pooling, func(t *testing.T) {
			e := open(t, folder(t, m))
			within := map[string]float64{"F16": 3e-3, "BF16": 3e-2}[m.Format]
			for i, got := range embed(t, e, texts...) {
				compare(t, texts[i], got, equations(m, e.tokens.Encode(texts[i], e.MaxTokens()).IDs), within+2e-6)
			}
		})
	}
}

// The ONNX files that the tests make are run by onnxruntime, and the whole way
// from text to vector by transformers.js; testdata/golden.mjs asked both, of
// the folders that "go test -run Golden -write DIR" writes.
var writeTo = flag.String("write", "", "write the folders of TestGolden here")

var golden = map[string]embedtest.Model{
	"wordpiece": {Tokenizer: "../tokenizer/testdata/bert-uncased.json", Vocabulary: 2000, Format: "onnx", Seed: 5},
	"unigram":   {Type: "xlm-roberta", Tokenizer: "../tokenizer/testdata/xlm-r.json", Vocabulary: 2000, Format: "onnx", Hidden: 32, Heads: 4, Seed: 6},
	"cls":       {Tokenizer: "../tokenizer/testdata/bert-uncased.json", Vocabulary: 2000, Format: "onnx-named", Pooling: "cls", Seed: 7},
}

func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil && *writeTo == "" {
		t.Fatal(err)
	}
	var want map[string][]struct {
		Text   string
		Vector []float64
	}
	if err := json.Unmarshal(data, &want); err != nil && *writeTo == "" {
		t.Fatal(err)
	}
	for name, m := range golden {
		if *writeTo != "" {
			if err := embedtest.Write(filepath.Join(*writeTo, name), m); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if len(want[name]) < 5 {
			t.Fatalf("%s: %d texts", name, len(want[name]))
		}
		e := open(t, folder(t, m))
		for _, w := range want[name] {
			compare(t, name+": "+w.Text, embed(t, e, w.Text)[0], w.Vector, 3e-6)
		}
	}
}

// equations are BERT, for one text.
func equations(m embedtest.Model, ids []int32) []float64 {
	weights := map[string]embedtest.Tensor{}
	for _, t := range m.Weights() {
		weights[t.Name] = t
	}
	at := func(name string, i ...int) float64 {
		t := weights[name]
		if len(i) == 2 {
			return float64(t.Values[i[0]*t.Shape[1]+i[1]])
		}
		return float64(t.Values[i[0]])
	}
	hidden := weights["embeddings.LayerNorm.weight"].Shape[0]
	heads, first := m.Heads, 0
	if heads == 0 {
		heads = 3
	}
	if m.Type == "xlm-roberta" {
		first = 2
	}
	norm := func(name string, v []float64) []float64 {
		var mean, variance float64
		for _, x := range v {
			mean += x / float64(len(v))
		}
		for _, x := range v {
			variance += (x - mean) * (x - mean) / float64(len(v))
		}
		out := make([]float64, len(v))
		for i, x := range v {
			out[i] = (x-mean)/math.Sqrt(variance+1e-12)*at(name+".weight", i) + at(name+".bias", i)
		}
		return out
	}
	linear := func(name string, v []float64) []float64 {
		out := make([]float64, weights[name+".bias"].Shape[0])
		for o := range out {
			out[o] = at(name+".bias", o)
			for i, x := range v {
				out[o] += x * at(name+".weight", o, i)
			}
		}
		return out
	}
	plus := func(a, b []float64) []float64 {
		out := slices.Clone(a)
		for i, x := range b {
			out[i] += x
		}
		return out
	}
	rows := make([][]float64, len(ids))
	for i, id := range ids {
		rows[i] = make([]float64, hidden)
		for j := range rows[i] {
			rows[i][j] = at("embeddings.word_embeddings.weight", int(id), j) + at("embeddings.position_embeddings.weight", i+first, j) +
				at("embeddings.token_type_embeddings.weight", 0, j)
		}
		rows[i] = norm("embeddings.LayerNorm", rows[i])
	}
	for l := 0; weights[layerName(l)+"output.dense.bias"].Shape != nil; l++ {
		name := layerName(l)
		q, k, v := make([][]float64, len(rows)), make([][]float64, len(rows)), make([][]float64, len(rows))
		for i, r := range rows {
			q[i], k[i], v[i] = linear(name+"attention.self.query", r), linear(name+"attention.self.key", r), linear(name+"attention.self.value", r)
		}
		next := make([][]float64, len(rows))
		for i := range rows {
			context := make([]float64, hidden)
			for h := range heads {
				from, to := h*hidden/heads, (h+1)*hidden/heads
				var sum float64
				for j := range rows {
					var dot float64
					for c := from; c < to; c++ {
						dot += q[i][c] * k[j][c]
					}
					w := math.Exp(dot / math.Sqrt(float64(to-from)))
					sum += w
					for c := from; c < to; c++ {
						context[c] += w * v[j][c]
					}
				}
				for c := from; c < to; c++ {
					context[c] /= sum
				}
			}
			r := norm(name+"attention.output.LayerNorm", plus(linear(name+"attention.output.dense", context), rows[i]))
			up := linear(name+"intermediate.dense", r)
			for j, x := range up {
				up[j] = x * .5 * math.Erfc(-x/math.Sqrt2)
			}
			next[i] = norm(name+"output.LayerNorm", plus(linear(name+"output.dense", up), r))
		}
		rows = next
	}
	if m.Pooling == "cls" {
		rows = rows[:1]
	}
	mean, length := make([]float64, hidden), 0.0
	for _, r := range rows {
		mean = plus(mean, r)
	}
	for _, x := range mean {
		length += x * x
	}
	for i := range mean {
		mean[i] /= math.Sqrt(length)
	}
	return mean
}

func layerName(l int) string { return "encoder.layer." + string(rune('0'+l)) + "." }

// A text's vector is the same, to the last bit, whichever texts it comes with.
func TestVectorsAreIndependent(t *testing.T) {
	e := open(t, folder(t, embedtest.Model{}))
	together := embed(t, e, texts...)
	for i, text := range texts {
		if alone := embed(t, e, text)[0]; !slices.Equal(alone, together[i]) {
			t.Errorf("%q: %v alone, %v among others", text, alone, together[i])
		}
	}
}

func TestEmbedEndsWithContext(t *testing.T) {
	e := open(t, folder(t, embedtest.Model{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, texts); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if out := embed(t, e); len(out) != 0 {
		t.Errorf("%d vectors of no text", len(out))
	}
}

// Many may ask at once.
func TestEmbedConcurrently(t *testing.T) {
	e := open(t, folder(t, embedtest.Model{}))
	want := embed(t, e, texts...)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				got, err := e.Embed(t.Context(), texts)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range got {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("%q: another vector beside others", texts[i])
					}
				}
			}
		})
	}
	all.Wait()
}

// A model with room for fewer tokens than frame a text reads those that fit.
func TestFewPositions(t *testing.T) {
	e := open(t, folder(t, embedtest.Model{Positions: 1}))
	if v := embed(t, e, "read a file")[0]; len(v) != 24 {
		t.Errorf("%d components", len(v))
	}
}

func TestIDTellsModelsApart(t *testing.T) {
	seen := map[string]string{}
	for name, m := range map[string]embedtest.Model{"plain": {}, "seed": {Seed: 9}, "cls": {Pooling: "cls"}, "words": {Words: [][]string{{"file"}}}, "format": {Format: "F16"}} {
		id := open(t, folder(t, m)).ID()
		if seen[id] != "" {
			t.Errorf("%s and %s have the same id", name, seen[id])
		}
		seen[id] = name
	}
	if a, b := open(t, folder(t, embedtest.Model{})).ID(), open(t, folder(t, embedtest.Model{})).ID(); a != b {
		t.Error("the same model has two ids")
	}
}

// Each folder is refused for the reason that stands beside it.
func TestRefusals(t *testing.T) {
	edit := func(file, old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(data), old, new, 1)
			if changed == string(data) {
				t.Fatalf("%s has no %q", file, old)
			}
			if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(file string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		do   func(t *testing.T, dir string)
		want string
	}{
		{remove("config.json"), "not the folder of a model"},
		{remove("tokenizer.json"), "tokenizer.json"},
		{remove("model.safetensors"), "there are no weights"},
		{edit("config.json", `"bert"`, `"mpnet"`), `model_type "mpnet" is not known`},
		{edit("config.json", `"gelu"`, `"silu"`), `hidden_act "silu" is not known`},
		{edit("config.json", `"absolute"`, `"relative_key"`), "relative_key"},
		{edit("config.json", `"num_attention_heads":3`, `"num_attention_heads":7`), "which no model has"},
		{edit("config.json", `"num_hidden_layers":2`, `"num_hidden_layers":3`), "there is no tensor encoder.layer.2.attention.self.query.weight"},
		{edit("config.json", `"intermediate_size":40`, `"intermediate_size":41`), "has the shape [40 24], want [41 24]"},
		{edit("config.json", `"num_hidden_layers":2`, `"num_hidden_layers":4000000`), "there is no tensor encoder.layer.2."},
		{edit("config.json", `"vocab_size":200`, `"vocab_size":70`), "the tokenizer gives ids up to 75, the model knows 70 words"},
		{edit("modules.json", "models.Normalize", "models.Dense"), "Dense is not known"},
		{edit("modules.json", `"1_Pooling"`, `"../elsewhere"`), "lies outside the folder"},
		{edit("1_Pooling/config.json", `"pooling_mode_max_tokens":false`, `"pooling_mode_max_tokens":true`), "either mean_tokens or cls_token is computed"},
		{edit("tokenizer.json", `"WordPiece"`, `"BPE"`), `type "BPE" is not known`},
		{edit("model.safetensors", `"F32"`, `"I64"`), "I64"},
	} {
		t.Run(c.want, func(t *testing.T) {
			dir := folder(t, embedtest.Model{})
			c.do(t, dir)
			if e, err := Open(dir); err == nil {
				e.Close()
				t.Error("the folder was opened")
			} else if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// miniLM is the size of paraphrase-multilingual-MiniLM-L12-v2, but for its
// 250,037 words, of which a text reads a few.
var miniLM = embedtest.Model{Vocabulary: 2000, Hidden: 384, Layers: 12, Heads: 12, Intermediate: 1536, Positions: 512}

func BenchmarkMiniLML12(b *testing.B) {
	e := open(b, folder(b, miniLM))
	for name, words := range map[string]int{"8 tokens": 6, "32 tokens": 30, "128 tokens": 126} {
		b.Run(name, func(b *testing.B) {
			text := strings.TrimSpace(strings.Repeat("a ", words))
			for b.Loop() {
				embed(b, e, text)
			}
		})
	}
}

func BenchmarkOpenMiniLML12(b *testing.B) {
	dir := folder(b, miniLM)
	for b.Loop() {
		e, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		e.Close()
	}
}
