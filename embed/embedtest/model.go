// Package embedtest makes small sentence models, with random weights, for tests.
package embedtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// A Model says what folder Write makes. The zero Model is a BERT of two layers
// in safetensors, whose words are single letters.
type Model struct {
	Words     [][]string // words that the model knows; those of one group mean the same to it
	Tokenizer string     // the path of a tokenizer.json in place of one of Words
	Type      string     // "bert" or "xlm-roberta"; "": bert
	Format    string     // "F32", "F16", "BF16", "onnx" or "onnx-named"; "": F32
	Pooling   string     // "mean" or "cls"; "": mean
	Seed      uint64

	Vocabulary, Hidden, Layers, Heads, Intermediate, Positions int // zero: few
}

func (m *Model) defaults() {
	for _, d := range []struct {
		at    *int
		value int
	}{{&m.Vocabulary, 200}, {&m.Hidden, 24}, {&m.Layers, 2}, {&m.Heads, 3}, {&m.Intermediate, 40}, {&m.Positions, 64}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	if m.Type == "" {
		m.Type = "bert"
	}
	if m.Format == "" {
		m.Format = "F32"
	}
	if m.Pooling == "" {
		m.Pooling = "mean"
	}
}

// padding is the id from which XLM-RoBERTa counts positions.
const padding = 1

// A Tensor is a weight of the model.
type Tensor struct {
	Name   string
	Shape  []int
	Values []float32
}

// Weights returns the weights of the model in the order in which layers use them.
func (m Model) Weights() []Tensor {
	m.defaults()
	r := rand.New(rand.NewPCG(m.Seed, 17))
	var out []Tensor
	add := func(name string, around, spread float32, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		t := Tensor{name, shape, make([]float32, n)}
		for i := range t.Values {
			t.Values[i] = around + spread*(2*r.Float32()-1)
		}
		out = append(out, t)
	}
	linear := func(name string, outputs, inputs int) {
		add(name+".weight", 0, .3, outputs, inputs)
		add(name+".bias", 0, .1, outputs)
	}
	norm := func(name string) {
		add(name+".weight", 1, .2, m.Hidden)
		add(name+".bias", 0, .1, m.Hidden)
	}
	types := 2
	if m.Type != "bert" {
		types = 1
	}
	add("embeddings.word_embeddings.weight", 0, 1, m.Vocabulary, m.Hidden)
	add("embeddings.position_embeddings.weight", 0, .1, m.Positions, m.Hidden)
	add("embeddings.token_type_embeddings.weight", 0, .1, types, m.Hidden)
	norm("embeddings.LayerNorm")
	for i := range m.Layers {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			linear(at+name, m.Hidden, m.Hidden)
		}
		norm(at + "attention.output.LayerNorm")
		linear(at+"intermediate.dense", m.Intermediate, m.Hidden)
		linear(at+"output.dense", m.Hidden, m.Intermediate)
		norm(at + "output.LayerNorm")
	}
	m.share(out[0].Values)
	return out
}

// share gives the words of a group the same vector.
func (m *Model) share(words []float32) {
	id := firstWord
	for _, group := range m.Words {
		first := words[id*m.Hidden : (id+1)*m.Hidden]
		for range group {
			copy(words[id*m.Hidden:(id+1)*m.Hidden], first)
			id++
		}
	}
}

// Write writes the model's folder.
func Write(dir string, m Model) error {
	m.defaults()
	types := 2
	if m.Type != "bert" {
		types = 1
	}
	files := map[string]any{
		"config.json": map[string]any{
			"model_type": m.Type, "vocab_size": m.Vocabulary, "hidden_size": m.Hidden, "num_hidden_layers": m.Layers, "num_attention_heads": m.Heads,
			"intermediate_size": m.Intermediate, "hidden_act": "gelu", "max_position_embeddings": m.Positions, "type_vocab_size": types,
			"layer_norm_eps": 1e-12, "pad_token_id": padding, "position_embedding_type": "absolute"},
		"modules.json": []map[string]any{
			{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
			{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
			{"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}},
		"1_Pooling/config.json": map[string]any{"word_embedding_dimension": m.Hidden,
			"pooling_mode_cls_token": m.Pooling == "cls", "pooling_mode_mean_tokens": m.Pooling == "mean", "pooling_mode_max_tokens": false},
		"tokenizer_config.json": map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": m.Positions - padding - 1},
	}
	for name, v := range files {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := write(dir, name, data); err != nil {
			return err
		}
	}
	tokens, err := m.tokenizer()
	if err == nil {
		err = write(dir, "tokenizer.json", tokens)
	}
	if err != nil {
		return err
	}
	switch m.Format {
	case "onnx", "onnx-named":
		return write(dir, "onnx/model.onnx", m.onnx())
	}
	return write(dir, "model.safetensors", Safetensors(m.Format, m.Weights()))
}

func write(dir, name string, data []byte) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// firstWord is the id of the first of a model's words.
const firstWord = 4 + 2*36

// tokenizer returns a WordPiece tokenizer of the model's words, and of letters
// for all others.
func (m *Model) tokenizer() ([]byte, error) {
	if m.Tokenizer != "" {
		return os.ReadFile(m.Tokenizer)
	}
	vocab := map[string]int{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
	for i, r := range "abcdefghijklmnopqrstuvwxyz0123456789" {
		vocab[string(r)], vocab["##"+string(r)] = 4+i, 40+i
	}
	id := firstWord
	for _, group := range m.Words {
		for _, w := range group {
			vocab[w] = id
			id++
		}
	}
	if id > m.Vocabulary {
		return nil, fmt.Errorf("%d words, and a vocabulary of %d", id, m.Vocabulary)
	}
	special := func(name string, id int) map[string]any {
		return map[string]any{"id": name, "ids": []int{id}, "tokens": []string{name}}
	}
	token := func(name string) map[string]any {
		return map[string]any{"SpecialToken": map[string]any{"id": name, "type_id": 0}}
	}
	return json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": []any{},
		"normalizer":    map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": true},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
		"post_processor": map[string]any{"type": "TemplateProcessing", "pair": []any{},
			"single":         []any{token("[CLS]"), map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}, token("[SEP]")},
			"special_tokens": map[string]any{"[CLS]": special("[CLS]", 2), "[SEP]": special("[SEP]", 3)}},
		"model": map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab},
	})
}
