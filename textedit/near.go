package textedit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// notFound says what stands in text where old might have been meant.
func notFound(i int, text, old string) *Error {
	e := &Error{Index: i, Kind: NotFound}
	if strings.TrimSpace(text) == "" {
		e.Message = "old does not occur: the text is empty"
		return e
	}
	for _, near := range []func(text, old string) (passage, bool){byReading, byFolding, bySimilarity} {
		if p, ok := near(text, old); ok {
			e.Lines = []int{p.first}
			e.Message = fmt.Sprintf("old does not occur as it is given; %s:\n%s", p.say(), p.shown())
			return e
		}
	}
	e.Message = "old does not occur, nor does anything like it; read the file again and copy the passage from there"
	return e
}

// A passage is a run of whole lines of a text.
type passage struct {
	first int // from 1
	lines []string
	why   string // what alone is different; "": more than that
}

func (p passage) say() string {
	where := fmt.Sprintf("lines %d to %d", p.first, p.first+len(p.lines)-1)
	if len(p.lines) == 1 {
		where = fmt.Sprintf("line %d", p.first)
	}
	if p.why == "" {
		return where + " of the file come nearest"
	}
	return fmt.Sprintf("%s of the file differ from it only in %s", where, p.why)
}

// The bounds of a passage that is shown.
const (
	maxPassageLines = 20
	maxPassageLine  = 400
)

func (p passage) shown() string {
	var b strings.Builder
	for i, line := range p.lines {
		if i == maxPassageLines {
			fmt.Fprintf(&b, "[%d more lines]\n", len(p.lines)-i)
			break
		}
		b.WriteString(clip(strings.TrimSuffix(line, "\r"), maxPassageLine) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clip cuts s to about n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// linesOf returns the whole lines in which text[from:to] lies.
func linesOf(text string, from, to int, why string) passage {
	first := 1 + strings.Count(text[:from], "\n")
	from = strings.LastIndexByte(text[:from], '\n') + 1
	if end := strings.IndexByte(text[to:], '\n'); end >= 0 {
		to += end
	} else {
		to = len(text)
	}
	return passage{first: first, lines: strings.Split(text[from:to], "\n"), why: why}
}

var (
	lineNumbers = regexp.MustCompile(`(?m)^[ \t]*\d+(?:\t|: ?|\| ?)`)
	escapes     = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, "'", `\\`, `\`)
	entities    = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&amp;", "&")
)

// byReading finds old after undoing what is easily added to it in transit.
func byReading(text, old string) (passage, bool) {
	for _, r := range []struct{ why, old string }{
		{"the line numbers before each line, which are not part of the file", lineNumbers.ReplaceAllString(old, "")},
		{`escape sequences such as \n or \", where the file has the characters themselves`, escapes.Replace(old)},
		{"entities such as &lt;, where the file has the characters themselves", entities.Replace(old)},
		{"a line break at the beginning or the end", strings.Trim(old, "\r\n")},
	} {
		if r.old == old || strings.TrimSpace(r.old) == "" {
			continue
		}
		if i := strings.Index(text, r.old); i >= 0 {
			return linesOf(text, i, i+len(r.old), r.why), true
		}
	}
	return passage{}, false
}

// byFolding finds old in spite of other white space, quotes, dashes or case.
func byFolding(text, old string) (passage, bool) {
	for _, f := range []struct {
		why  string
		fold func(rune) rune
	}{
		{"quotes, dashes or special spaces (such as ’ for ')", plainRune},
		{"", dropSpace}, // told apart below
		{"white space and in quotes or dashes", func(r rune) rune { return dropSpace(plainRune(r)) }},
		{"upper and lower case", unicode.ToLower},
	} {
		want, _ := fold(old, f.fold)
		if want == "" {
			continue
		}
		folded, at := fold(text, f.fold)
		i := strings.Index(folded, want)
		if i < 0 {
			continue
		}
		from, to := int(at[i]), int(at[i+len(want)-1])
		_, size := utf8.DecodeRuneInString(text[to:])
		to += size
		why := f.why
		if why == "" {
			why = spaceKind(text[from:to], strings.TrimSpace(old))
		}
		return linesOf(text, from, to, why), true
	}
	return passage{}, false
}

// fold maps each character of s, leaving out those that become negative, and
// returns for each byte of the outcome where its character began in s.
func fold(s string, f func(rune) rune) (string, []int32) {
	var b strings.Builder
	at := make([]int32, 0, len(s))
	for i, r := range s {
		if r = f(r); r < 0 {
			continue
		}
		n, _ := b.WriteRune(r)
		for range n {
			at = append(at, int32(i))
		}
	}
	return b.String(), at
}

func dropSpace(r rune) rune {
	if unicode.IsSpace(r) {
		return -1
	}
	return r
}

// plainRune returns the plain form of a typographic character.
func plainRune(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛', '′', '`', '´':
		return '\''
	case '“', '”', '„', '‟', '″', '«', '»':
		return '"'
	case '‐', '‑', '‒', '–', '—', '―', '−':
		return '-'
	case '\u00a0', '\u2007', '\u2009', '\u202f', '\u3000':
		return ' '
	case '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff', '\u00ad':
		return -1
	}
	return r
}

// spaceKind names the white space in which two passages differ.
func spaceKind(found, old string) string {
	each := func(s string, trim func(string) string) string {
		lines := strings.Split(s, "\n")
		for i := range lines {
			lines[i] = trim(lines[i])
		}
		return strings.Join(lines, "\n")
	}
	left := func(s string) string { return strings.TrimLeft(s, " \t") }
	right := func(s string) string { return strings.TrimRight(s, " \t\r") }
	cr := func(s string) string { return strings.TrimSuffix(s, "\r") }
	switch {
	case found == old:
		return "white space at the beginning or the end"
	case each(found, cr) == each(old, cr):
		return "line endings (CRLF and LF)"
	case each(found, right) == each(old, right):
		return "white space at the ends of lines"
	case each(found, left) == each(old, left):
		return "indentation"
	case each(found, strings.TrimSpace) == each(old, strings.TrimSpace):
		return "indentation and white space at the ends of lines"
	}
	return "white space or line breaks"
}

// maxCompared bounds the lines that are compared when none is equal, and
// minAlike is how alike two lines must be (Dice) to be worth showing.
const (
	maxCompared = 20_000
	minAlike    = 0.5
)

// bySimilarity finds the lines that have most in common with those of old.
func bySimilarity(text, old string) (passage, bool) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	wanted := strings.Split(strings.Trim(old, "\r\n"), "\n")
	first, ok := byVotes(lines, wanted)
	if !ok {
		if first, ok = byBigrams(lines, wanted); !ok {
			return passage{}, false
		}
	}
	first = max(0, min(first, len(lines)-1))
	end := min(len(lines), first+len(wanted))
	return passage{first: first + 1, lines: lines[first:end]}, true
}

// byVotes returns where old begins according to most of its lines that occur.
func byVotes(lines, wanted []string) (int, bool) {
	at := map[string][]int{}
	for i, w := range wanted {
		if w = strings.TrimSpace(w); len(w) > 3 { // shorter ones, such as "}", say nothing
			at[w] = append(at[w], i)
		}
	}
	votes := map[int]int{}
	best, most := 0, 0
	for j, line := range lines {
		for _, i := range at[strings.TrimSpace(line)] {
			votes[j-i]++
			if v := votes[j-i]; v > most {
				best, most = j-i, v
			}
		}
	}
	return best, most > 0
}

// byBigrams returns where old begins judging by the line that is most like its longest one.
func byBigrams(lines, wanted []string) (int, bool) {
	longest := 0
	for i, w := range wanted {
		if len(strings.TrimSpace(w)) > len(strings.TrimSpace(wanted[longest])) {
			longest = i
		}
	}
	want := bigrams(wanted[longest])
	best, most := 0, 0.0
	for j, line := range lines[:min(len(lines), maxCompared)] {
		if s := dice(want, bigrams(line)); s > most {
			best, most = j-longest, s
		}
	}
	return best, most >= minAlike
}

// bigrams returns the pairs of bytes in a line, sorted; a long line's first only.
func bigrams(line string) []uint16 {
	line = strings.ToLower(strings.TrimSpace(line))
	line = line[:min(len(line), 500)]
	var out []uint16
	for i := 1; i < len(line); i++ {
		out = append(out, uint16(line[i-1])<<8|uint16(line[i]))
	}
	slices.Sort(out)
	return out
}

func dice(a, b []uint16) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	common := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			common, i, j = common+1, i+1, j+1
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b))
}
