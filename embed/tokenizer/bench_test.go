package tokenizer

import (
	"fmt"
	"strings"
	"testing"
)

// large is a file of as many pieces as XLM-RoBERTa has.
func large() []byte {
	var b strings.Builder
	b.WriteString(`{"normalizer":{"type":"NFKC"},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0]`)
	for i := 1; i < 250_000; i++ {
		fmt.Fprintf(&b, `,["▁p%dé",%d.25]`, i*7919, -(i%17)-3)
	}
	b.WriteString("]}}")
	return []byte(b.String())
}

func BenchmarkParse250000(b *testing.B) {
	data := large()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			tok := load(b, kind)
			for b.Loop() {
				tok.Encode("Lies die Datei und schicke sie per E-Mail an das Team, bitte.", 128)
			}
		})
	}
}
