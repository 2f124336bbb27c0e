package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var kinds = []string{"bert-uncased", "bert-cased", "xlm-r", "xlm-r-newer", "bytes", "mixed"}

func load(t testing.TB, kind string) *Tokenizer {
	t.Helper()
	tok, err := Load(filepath.Join("testdata", kind+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// What the reference implementation gave; testdata/golden.mjs asked it.
func TestSameAsReference(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string][]struct {
		Text string
		IDs  []int32
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			tok := load(t, kind)
			if len(golden[kind]) < 200 {
				t.Fatalf("%d texts", len(golden[kind]))
			}
			for _, g := range golden[kind] {
				if got := tok.Encode(g.Text, 0).IDs; !slices.Equal(got, g.IDs) {
					t.Errorf("%q (%+q): %v, want %v", g.Text, g.Text, got, g.IDs)
				}
			}
		})
	}
}

// Whatever the text, ids are of the vocabulary, within the limit, and a text
// without added tokens means the same however its bytes are invalid.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"Read a file", "İstanbul \x80\xff", "か\u3099", "👩‍👩‍👧", "<mask> e"} {
		f.Add(s, 9)
	}
	toks := map[string]*Tokenizer{}
	for _, kind := range kinds {
		toks[kind] = load(f, kind)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		for kind, tok := range toks {
			got := tok.Encode(text, limit)
			if len(got.IDs) != len(got.Types) {
				t.Fatalf("%s: %d ids, %d types", kind, len(got.IDs), len(got.Types))
			}
			if limit > 2 && len(got.IDs) > limit {
				t.Fatalf("%s: %d tokens, allowed %d", kind, len(got.IDs), limit)
			}
			for _, id := range got.IDs {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("%s: id %d of %d", kind, id, tok.Size())
				}
			}
			if !utf8.ValidString(text) && !slices.Equal(got.IDs, tok.Encode(strings.ToValidUTF8(text, "\uFFFD"), limit).IDs) {
				t.Fatalf("%s: invalid bytes are not read as U+FFFD", kind)
			}
		}
	})
}

// A file is refused or read, whatever stands in it.
func FuzzParse(f *testing.F) {
	for _, kind := range kinds {
		data, err := os.ReadFile(filepath.Join("testdata", kind+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAAAAEBAQFh"},"model":{"type":"Unigram","unk_id":0,"vocab":[["a",-1]]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		tok.Encode("a é か\u3099 <mask> 10", 0)
	})
}

// What is not known is refused by name.
func TestRefusals(t *testing.T) {
	const model = `"model":{"type":"Unigram","unk_id":0,"vocab":[["a",-1]]}`
	for text, want := range map[string]string{
		`{"model":{"type":"BPE"}}`: `model: type "BPE" is not known`,
		`{}`:                       "it has no type",
		`{"model":{"type":"Unigram","vocab":[]}}`:                                           "the vocabulary is empty",
		`{"model":{"type":"Unigram","unk_id":7,"vocab":[["a",-1]]}}`:                        "unk_id 7",
		`{"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"a":0}}}`:                `"[UNK]" is not in the vocabulary`,
		`{"normalizer":{"type":"Nmt"},` + model + `}`:                                       `normalizer: type "Nmt"`,
		`{"normalizer":{"type":"Sequence","normalizers":[{"type":"X"}]},` + model + `}`:     `normalizer: 0: type "X"`,
		`{"normalizer":{"type":"Replace","pattern":{"Regex":"(?=a)"}},` + model + `}`:       "normalizer: ",
		`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"////"},` + model + `}`: "precompiled_charsmap",
		`{"pre_tokenizer":{"type":"ByteLevel"},` + model + `}`:                              `pre_tokenizer: type "ByteLevel"`,
		`{"pre_tokenizer":{"type":"Metaspace","replacement":""},` + model + `}`:             "one character",
		`{"post_processor":{"type":"ByteLevel"},` + model + `}`:                             `post_processor: type "ByteLevel"`,
		`{"post_processor":{"type":"TemplateProcessing","single":[]},` + model + `}`:        "no place for the text",
		`{"truncation":{"direction":"Left","max_length":9},` + model + `}`:                  "direction Left",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
