package lexicon

import (
	"testing"
	"unicode/utf8"
)

// Whatever the text, matches are pieces of it, in order, with concepts that
// there are and weights between nothing and one.
func FuzzMatch(f *testing.F) {
	for _, s := range []string{"supprimez mes fichiers", "createPullRequest", "ファイルを消して", "파일을 삭제해 줘", "lade die Datei hoch", "e-mail", "\xff\xfe", "a̐éö̲", "الملفات", "3.14 mp4 s3"} {
		f.Add(s, uint16(0), false)
		f.Add(s, uint16(English), true)
	}
	l := Default()
	f.Fuzz(func(t *testing.T, text string, likely uint16, firm bool) {
		before := 0
		for _, m := range l.Match(nil, text, Hint{Likely: Langs(likely), Firm: firm}) {
			switch {
			case m.From < before || m.From >= m.To || m.To > len(text):
				t.Fatalf("%q: %d to %d after %d", text, m.From, m.To, before)
			case utf8.ValidString(text) && !utf8.ValidString(text[m.From:m.To]):
				t.Fatalf("%q: %q is cut within a letter", text, text[m.From:m.To])
			case int(m.Concept) >= l.Len() || m.Weight <= 0 || m.Weight > 1 || m.Langs == 0:
				t.Fatalf("%q: %+v", text, m)
			}
			before = m.From
		}
	})
}
