// Package encoder turns texts into vectors by a sentence model that lies in a
// folder.
package encoder

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/helve-ai/helve/embed/matrix"
	"github.com/helve-ai/helve/embed/tensors"
	"github.com/helve-ai/helve/embed/tokenizer"
	"github.com/helve-ai/helve/vector"
)

// An Encoder is a sentence model of BERT's kind: paraphrase-multilingual-MiniLM
// and its like. It is safe for concurrent use until it is closed. One call of
// Embed keeps one processor busy.
type Encoder struct {
	settings settings
	id       string
	weights  *tensors.File
	tokens   *tokenizer.Tokenizer
	words    *tensors.Tensor // stays in the file: it is most of a model
	places   []float32       // of each position
	kinds    []float32       // of each type of token
	norm     matrix.Norm
	layers   []layer
	spaces   sync.Pool // of *space
}

// A layer is one of the transformer's.
type layer struct {
	attend, out, up, down *matrix.Packed
	attendNorm, downNorm  matrix.Norm
}

// A space is the memory of one pass.
type space struct {
	hidden, qkv, context, out, up matrix.Matrix
	attention                     matrix.Attention
}

// Dims returns the length of the vectors.
func (e *Encoder) Dims() int { return e.settings.HiddenSize }

// ID returns a name for what the model computes: folders with the same content
// have the same.
func (e *Encoder) ID() string { return e.id }

// MaxTokens returns how many tokens of a text are read; what follows is not.
func (e *Encoder) MaxTokens() int { return e.settings.maxTokens }

// Close gives back what the encoder holds. Embed fails afterwards.
func (e *Encoder) Close() error { return e.weights.Close() }

// maxRows is how many tokens of several texts are computed in one pass: enough
// that the weights are read for many, and few enough that a pass stays in the
// processor's cache.
const maxRows = 192

// Embed returns the vector of each text, of length 1. The vector of a text does
// not depend on the others.
func (e *Encoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	var batch []tokenizer.Tokens
	rows := 0
	flush := func() error {
		vectors, err := e.pass(ctx, batch, rows)
		out, batch, rows = append(out, vectors...), batch[:0], 0
		return err
	}
	for _, text := range texts {
		if e.settings.lowercase {
			text = strings.ToLower(text)
		}
		t := e.tokens.Encode(text, e.settings.maxTokens)
		n := min(len(t.IDs), e.settings.maxTokens) // what frames a text may be longer
		t.IDs, t.Types = t.IDs[:n], t.Types[:n]
		if rows > 0 && rows+len(t.IDs) > maxRows {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		batch, rows = append(batch, t), rows+len(t.IDs)
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return out, nil
}

// pass computes the vectors of a batch, whose tokens are rows one below the other.
func (e *Encoder) pass(ctx context.Context, batch []tokenizer.Tokens, rows int) ([][]float32, error) {
	if err := ctx.Err(); err != nil || len(batch) == 0 {
		return nil, err
	}
	s, _ := e.spaces.Get().(*space)
	if s == nil {
		s = &space{}
	}
	defer e.spaces.Put(s)
	if rows > 0 {
		if err := e.embed(s, batch, rows); err != nil {
			return nil, err
		}
		for i := range e.layers {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e.layer(s, &e.layers[i], batch)
		}
	}
	return e.pool(s, batch), nil
}

// embed writes the sum of what stands for each token, its place and its type.
func (e *Encoder) embed(s *space, batch []tokenizer.Tokens, rows int) error {
	n := e.settings.HiddenSize
	s.hidden.Reshape(rows, n)
	r := 0
	for _, t := range batch {
		for i, id := range t.IDs {
			row := s.hidden.Row(r)
			if err := e.words.Row(int(id), row); err != nil {
				return err
			}
			place, kind := e.places[(i+e.settings.firstPlace)*n:], e.kinds[min(int(t.Types[i]), e.settings.Types-1)*n:]
			for j := range row {
				row[j] += place[j] + kind[j]
			}
			e.norm.Row(row)
			r++
		}
	}
	return nil
}

func (e *Encoder) layer(s *space, l *layer, batch []tokenizer.Tokens) {
	heads := e.settings.Heads
	l.attend.Apply(&s.qkv, &s.hidden)
	s.context.Reshape(s.hidden.Rows, s.hidden.Cols)
	from := 0
	for _, t := range batch {
		if len(t.IDs) > 0 {
			s.attention.Run(&s.context, &s.qkv, from, len(t.IDs), heads, s.hidden.Cols/heads)
		}
		from += len(t.IDs)
	}
	l.out.Apply(&s.out, &s.context)
	l.attendNorm.AddNorm(&s.hidden, &s.out)
	l.up.Apply(&s.up, &s.hidden)
	e.settings.activate(&s.up)
	l.down.Apply(&s.out, &s.up)
	l.downNorm.AddNorm(&s.hidden, &s.out)
}

// pool makes one vector of each text's rows. That of a text without tokens is
// zeros.
func (e *Encoder) pool(s *space, batch []tokenizer.Tokens) [][]float32 {
	var out [][]float32
	from := 0
	for _, t := range batch {
		v, n := make([]float32, e.settings.HiddenSize), len(t.IDs)
		if e.settings.firstToken {
			n = min(n, 1)
		}
		for r := from; r < from+n; r++ {
			for j, x := range s.hidden.Row(r) {
				v[j] += x
			}
		}
		vector.Normalize(v) // a mean and a sum differ in length alone
		out = append(out, v)
		from += len(t.IDs)
	}
	return out
}

// Open reads the model in a folder as Hugging Face lays it out: config.json,
// tokenizer.json, weights in model.safetensors, model.onnx or onnx/model.onnx,
// and, where there are, modules.json, 1_Pooling/config.json and
// sentence_bert_config.json. It fails, saying on what, where the folder asks
// for anything that this package does not compute.
func Open(dir string) (*Encoder, error) {
	e := &Encoder{}
	var err error
	if e.settings, err = readSettings(dir); err != nil {
		return nil, err
	}
	if e.tokens, err = tokenizer.Load(inside(dir, "tokenizer.json")); err != nil {
		return nil, err
	}
	if n := e.tokens.Size(); n > e.settings.Vocabulary {
		return nil, fmt.Errorf("%s: the tokenizer gives ids up to %d, the model knows %d words", dir, n-1, e.settings.Vocabulary)
	}
	e.settings.bound(e.tokens.Limit())
	path, err := weightsIn(dir)
	if err != nil {
		return nil, err
	}
	if e.weights, err = tensors.Open(path); err != nil {
		return nil, err
	}
	if err := e.load(); err != nil {
		e.weights.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if e.id, err = fingerprint(dir, path); err != nil {
		e.weights.Close()
		return nil, err
	}
	return e, nil
}
