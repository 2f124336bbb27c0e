package letters

import "testing"

func fold(text string) string {
	var out []byte
	before := None
	for _, r := range Compose(text) {
		s := ScriptOf(r)
		if s == Mark && !KeepsMarks(before) {
			continue
		}
		out = AppendFolded(out, r, s)
		before = s
	}
	return string(out)
}

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"Réseau": "reseau", "STRASSE": "strasse", "Straße": "strasse", "Łódź": "lodz", "İstanbul": "istanbul", "ışık": "isik", "Øl": "ol",
		"Ёлка": "елка", "йод": "йод", "أحمد": "احمد", "مكتبة": "مكتبه", "ﾌｧｲﾙ": "ファイル", "が": "が", "か\u3099": "が", "e\u0301": "e",
	} {
		if got := fold(text); got != want {
			t.Errorf("%q folds to %q, want %q", text, got, want)
		}
	}
}

func TestScriptOf(t *testing.T) {
	for r, want := range map[rune]Script{'a': Latin, 'é': Latin, '7': Digits, '٣': Digits, '_': None, 'я': Cyrillic, 'Ё': Cyrillic, 'ω': Greek,
		'م': Arabic, 'א': Hebrew, '語': Han, 'を': Hiragana, 'ー': Katakana, '파': Hangul, 'ก': Thai, 'த': Tamil, '\u0301': Mark, 'ـ': Mark, 'Ⴀ': Other} {
		if got := ScriptOf(r); got != want {
			t.Errorf("%q is of script %d, want %d", r, got, want)
		}
	}
}
