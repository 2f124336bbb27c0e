package encoder

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/helve-ai/helve/embed/matrix"
)

// weightFiles are where weights are looked for, in this order.
var weightFiles = []string{"model.safetensors", "model.onnx", "onnx/model.onnx"}

func weightsIn(dir string) (string, error) {
	for _, name := range weightFiles {
		if _, err := os.Stat(inside(dir, name)); err == nil {
			return inside(dir, name), nil
		}
	}
	return "", fmt.Errorf("%s: there are no weights; they are read from %q", dir, weightFiles)
}

// A loader reads weights, and keeps the first error.
type loader struct {
	e      *Encoder
	prefix string
	err    error
}

func (l *loader) floats(name string, shape ...int) []float32 {
	if l.err != nil {
		return nil
	}
	t, err := l.e.weights.Tensor(l.prefix+name, shape...)
	if err != nil {
		l.err = err
		return nil
	}
	out, err := t.Floats()
	l.err = err
	return out
}

func (l *loader) norm(name string) matrix.Norm {
	n := l.e.settings.HiddenSize
	return matrix.Norm{Gain: l.floats(name+".weight", n), Shift: l.floats(name+".bias", n), Epsilon: l.e.settings.Epsilon}
}

// linear packs layers with the same input as one.
func (l *loader) linear(in, out int, names ...string) *matrix.Packed {
	var weights, bias []float32
	for _, name := range names {
		weights = slices.Concat(weights, l.floats(name+".weight", out, in))
		bias = slices.Concat(bias, l.floats(name+".bias", out))
	}
	if l.err != nil {
		return nil
	}
	return matrix.Pack(weights, in, out*len(names), bias)
}

func (e *Encoder) load() error {
	s := &e.settings
	const words = "embeddings.word_embeddings.weight"
	prefix, err := e.weights.Find(words)
	if err != nil {
		return err
	}
	if e.words, err = e.weights.Tensor(prefix+words, s.Vocabulary, s.HiddenSize); err != nil {
		return err
	}
	l := &loader{e: e, prefix: prefix}
	e.places = l.floats("embeddings.position_embeddings.weight", s.Positions, s.HiddenSize)
	e.kinds = l.floats("embeddings.token_type_embeddings.weight", s.Types, s.HiddenSize)
	e.norm = l.norm("embeddings.LayerNorm")
	for i := 0; i < s.Layers && l.err == nil; i++ {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		self := at + "attention.self."
		e.layers = append(e.layers, layer{
			attend:     l.linear(s.HiddenSize, s.HiddenSize, self+"query", self+"key", self+"value"),
			out:        l.linear(s.HiddenSize, s.HiddenSize, at+"attention.output.dense"),
			up:         l.linear(s.HiddenSize, s.Intermediate, at+"intermediate.dense"),
			down:       l.linear(s.Intermediate, s.HiddenSize, at+"output.dense"),
			attendNorm: l.norm(at + "attention.output.LayerNorm"),
			downNorm:   l.norm(at + "output.LayerNorm"),
		})
	}
	return l.err
}

// What fingerprint reads of the weights: blocks, spread over the file.
const (
	samples = 64
	sample  = 1 << 16
)

// fingerprint names the model by its small files, and by the size and samples of
// its weights: to read all of them would take longer than to load them.
func fingerprint(dir, weights string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"} {
		data, _ := os.ReadFile(inside(dir, name)) // those that must be there were read before
		fmt.Fprintf(sum, "%s %d\n", name, len(data))
		sum.Write(data)
	}
	f, err := os.Open(weights)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(sum, "weights %d\n", info.Size())
	step := max(info.Size()/samples, sample)
	for at := int64(0); at < info.Size(); at += step {
		if _, err := io.Copy(sum, io.NewSectionReader(f, at, sample)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}
