package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normaliserFile has the fields of all kinds of normaliser.
type normaliserFile struct {
	Type        string
	Normalizers []json.RawMessage `json:"normalizers"`

	CleanText    *bool `json:"clean_text"`
	ChineseChars *bool `json:"handle_chinese_chars"`
	StripAccents *bool `json:"strip_accents"`
	Lowercase    *bool `json:"lowercase"`

	CharsMap string `json:"precompiled_charsmap"`

	Left    *bool  `json:"strip_left"`
	Right   *bool  `json:"strip_right"`
	Prepend string `json:"prepend"`

	Pattern pattern `json:"pattern"`
	Content string  `json:"content"`
}

// A pattern is {"String": …} or {"Regex": …}.
type pattern struct {
	String *string
	Regex  *string
}

func same(s string) string { return s }

func parseNormaliser(data json.RawMessage) (func(string) string, error) {
	var f normaliserFile
	if len(data) == 0 || string(data) == "null" {
		return same, nil
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	switch f.Type {
	case "Sequence":
		return sequence(f.Normalizers)
	case "BertNormalizer":
		return f.bert(), nil
	case "Precompiled":
		return parseCharsMap(f.CharsMap)
	case "NFC":
		return norm.NFC.String, nil
	case "NFD":
		return norm.NFD.String, nil
	case "NFKC":
		return norm.NFKC.String, nil
	case "NFKD":
		return norm.NFKD.String, nil
	case "Lowercase":
		return lower, nil
	case "StripAccents":
		return func(s string) string { return drop(s, unicode.IsMark) }, nil
	case "Strip":
		return f.strip(), nil
	case "Prepend":
		return func(s string) string {
			if s == "" {
				return s
			}
			return f.Prepend + s
		}, nil
	case "Replace":
		return f.replace()
	}
	return nil, fmt.Errorf("type %q is not known", f.Type)
}

func sequence(parts []json.RawMessage) (func(string) string, error) {
	var all []func(string) string
	for i, p := range parts {
		n, err := parseNormaliser(p)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
		all = append(all, n)
	}
	return func(s string) string {
		for _, n := range all {
			s = n(s)
		}
		return s
	}, nil
}

func (f *normaliserFile) strip() func(string) string {
	left, right := isTrue(f.Left), isTrue(f.Right)
	return func(s string) string {
		if left {
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
		}
		if right {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		}
		return s
	}
}

func isTrue(b *bool) bool { return b == nil || *b }

func (f *normaliserFile) replace() (func(string) string, error) {
	switch {
	case f.Pattern.String != nil:
		old := *f.Pattern.String
		return func(s string) string { return strings.ReplaceAll(s, old, f.Content) }, nil
	case f.Pattern.Regex != nil:
		re, err := regexp.Compile(*f.Pattern.Regex)
		if err != nil {
			return nil, err
		}
		return func(s string) string { return re.ReplaceAllLiteralString(s, f.Content) }, nil
	}
	return nil, fmt.Errorf("a Replace has no pattern")
}

// bert is the cleaning that BERT's models were trained with.
func (f *normaliserFile) bert() func(string) string {
	lowercase := isTrue(f.Lowercase)
	clean, chinese, accents := isTrue(f.CleanText), isTrue(f.ChineseChars), lowercase
	if f.StripAccents != nil {
		accents = *f.StripAccents
	}
	return func(s string) string {
		if clean {
			s = cleanText(s)
		}
		if chinese {
			s = spaceChinese(s)
		}
		if accents {
			s = drop(norm.NFD.String(s), func(r rune) bool { return unicode.Is(unicode.Mn, r) })
		}
		if lowercase {
			s = lower(s)
		}
		return s
	}
}

func cleanText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r == 0 || r == 0xFFFD || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co): // those that are unassigned stay
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, s)
}

// chineseBlocks are the ranges that the reference puts spaces around.
var chineseBlocks = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x3400, Hi: 0x4DBF, Stride: 1}, {Lo: 0x4E00, Hi: 0x9FFF, Stride: 1}, {Lo: 0xF900, Hi: 0xFAFF, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x20000, Hi: 0x2A6DF, Stride: 1}, {Lo: 0x2A700, Hi: 0x2B73F, Stride: 1}, {Lo: 0x2B740, Hi: 0x2B81F, Stride: 1},
		{Lo: 0x2B920, Hi: 0x2CEAF, Stride: 1}, {Lo: 0x2F800, Hi: 0x2FA1F, Stride: 1}},
}

func spaceChinese(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.Is(chineseBlocks, r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func drop(s string, is func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if is(r) {
			return -1
		}
		return r
	}, s)
}

// lower maps each character by itself, so that a final sigma stays one. İ is
// the only one whose lower case is two.
func lower(s string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		if r == 'İ' {
			return r
		}
		return unicode.ToLower(r)
	}, s), "İ", "i̇")
}

func decodeBase64(s string) ([]byte, error) { return base64.StdEncoding.DecodeString(s) }
