package poison

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unseen says why people do not see a character; "": they do.
func unseen(r rune) string {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return "a control of the direction of writing"
	case r == 0x200b, r >= 0x2060 && r <= 0x2064, r == 0xfeff, r == 0x180e, r == 0x00ad, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0:
		return "a character without width"
	case r >= 0xe0000 && r <= 0xe007f:
		return "a tag character, which spells text that nobody sees"
	case r >= 0xe0100 && r <= 0xe01ef:
		return "a variation selector of the supplement"
	case r >= 0xe000 && r <= 0xf8ff, r >= 0xf0000 && r <= 0x10ffff:
		return "a character of private use"
	}
	return ""
}

const (
	maxPadding = 200 // blank characters in a row; no layout needs more
	emojiTag   = 0x1f3f4
)

// hidden looks for what people do not see.
func (s *scan) hidden(where, text string) {
	if plainText(text) {
		return
	}
	end := len(strings.TrimRightFunc(text, isBlank))
	blank := 0
	var before rune
	flag, selectors := false, 0
	for i, r := range text {
		if isBlank(r) {
			blank++
			if blank > maxPadding && i < end {
				s.add(Hidden, where, "more than %d blanks in a row, with text behind them", maxPadding)
			}
		} else {
			blank = 0
		}
		if r == 0xfe0f || r == 0xfe0e || r >= 0xfe00 && r <= 0xfe0d {
			if selectors++; selectors > 1 {
				s.add(Hidden, where, "several variation selectors in a row")
			}
		} else {
			selectors = 0
		}
		flag = r == emojiTag || flag && r >= 0xe0020 && r <= 0xe007f // flags of regions are spelt with tags
		switch {
		case r == 0x1b || r == 0x9b:
			s.add(Control, where, "an escape of terminals (U+%04X)", r)
		case r < ' ' && r != '\n' && r != '\t' && r != '\r', r >= 0x7f && r < 0xa0:
			s.add(Control, where, "the control character U+%04X", r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			s.add(Control, where, "bytes that are no characters")
		case r == 0xfeff && i == 0, flag:
		case (r == 0x200c || r == 0x200d) && unicode.Is(unicode.Latin, before):
			s.add(Hidden, where, "a joiner (U+%04X) between Latin letters", r)
		default:
			if why := unseen(r); why != "" && !(r == 0x00ad && unicode.IsLetter(before)) && !(r >= 0xe000 && r <= 0xf8ff) {
				s.add(Hidden, where, "%s (U+%04X)", why, r)
			}
		}
		before = r
	}
}

func isBlank(r rune) bool { return unicode.IsSpace(r) || r == 0x2800 }

// plainText reports whether a text is ASCII without anything to look for.
func plainText(s string) bool {
	blank := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ', c == '\n', c == '\t', c == '\r':
			if blank++; blank > maxPadding {
				return false
			}
		case c < ' ' || c >= 0x7f:
			return false
		default:
			blank = 0
		}
	}
	return true
}

// mixedScripts says why a name can be taken for another: a word of it mixes
// Latin letters with Cyrillic or Greek ones, or letters of another width.
func mixedScripts(name string) string {
	latin, other := false, rune(0)
	for _, r := range name {
		switch {
		case r < utf8.RuneSelf && unicode.IsLetter(r):
			latin = true
		case r >= 0xff01 && r <= 0xff5e, r >= 0x1d400 && r <= 0x1d7ff:
			return "letters of another width or style, which look like plain ones"
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee):
			other = r
		}
		if !unicode.IsLetter(r) {
			latin, other = false, 0
		}
		if latin && other != 0 {
			return "a word that mixes Latin letters with " + scriptOf(other) + " ones that look like them"
		}
	}
	return ""
}

func scriptOf(r rune) string {
	for name, table := range map[string]*unicode.RangeTable{"Cyrillic": unicode.Cyrillic, "Greek": unicode.Greek, "Armenian": unicode.Armenian} {
		if unicode.Is(table, r) {
			return name
		}
	}
	return "other"
}

var (
	inBase64 = lazy(`[A-Za-z0-9+/_-]{16,}={0,2}`)
	inHex    = lazy(`(?i)(?:[0-9a-f]{2}){10,}`)
	command  = lazy(`(?i)\b(?:curl|wget)\s+\S*[a-z0-9]|\bchmod\s+[+0-7a-z]+|\brm\s+-[a-z]*r|/bin/(?:ba|z|da)?sh\b|\b(?:ba|z|da)?sh\s+-[ic]\b|/dev/(?:tcp|udp)/|\|\s*(?:ba|z|da)?sh\b|\bnc\s+-|\bpowershell\b|\b(?:python3?|perl|ruby|node|php)\s+-[cer]\b|\beval\s*\(|\bmkfifo\b|\bcrontab\b|\bbase64\s+-d|\bignore (?:all )?(?:previous|prior)|invoke-expression|\biex\b|/etc/(?:passwd|shadow)|\.ssh/|\bauthorized_keys\b|\bscp\s|\bnetcat\b`)
)

// maxTokens bounds how many words of one text are decoded.
const maxTokens = 200

// encoded returns a command that the text holds in base64 or hexadecimal
// digits; "": none.
func encoded(text string) string {
	if !hasDigits(text) {
		return ""
	}
	for _, word := range inBase64.get().FindAllString(text, maxTokens) {
		bare := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(word)
		if data, err := base64.RawStdEncoding.DecodeString(bare); err == nil && isCommand(data) {
			return string(data)
		}
	}
	for _, word := range inHex.get().FindAllString(text, maxTokens) {
		if data, err := hex.DecodeString(word); err == nil && isCommand(data) {
			return string(data)
		}
	}
	return ""
}

// hasDigits reports whether a text has a run of digits that may be code.
func hasDigits(text string) bool {
	run := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/', c == '_', c == '-':
			if run++; run == 16 {
				return true
			}
		default:
			run = 0
		}
	}
	return false
}

func isCommand(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for _, c := range data {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return command.matches(string(data))
}
