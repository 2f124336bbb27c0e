package files

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// A matcher finds an expression in texts.
type matcher struct {
	re        *regexp.Regexp // nil: must is all there is to find
	must      []byte         // occurs in every match; nil: nothing is known
	multiline bool
}

func newMatcher(in Grep) (*matcher, error) {
	if in.Literal && !in.IgnoreCase && in.Pattern != "" && (in.Multiline || !strings.Contains(in.Pattern, "\n")) {
		return &matcher{must: []byte(in.Pattern), multiline: in.Multiline}, nil
	}
	expr := in.Pattern
	if in.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	flags := ""
	if in.IgnoreCase {
		flags += "i"
	}
	if in.Multiline {
		flags += "m"
	}
	if flags != "" {
		expr = "(?" + flags + ")" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, invalid(err)
	}
	m := &matcher{re: re, multiline: in.Multiline}
	if tree, err := syntax.Parse(expr, syntax.Perl); err == nil {
		m.must = []byte(required(tree.Simplify()))
	}
	if len(m.must) == 0 {
		m.must = nil
	}
	return m, nil
}

// required returns the longest text that is known to occur in every match.
func required(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if s := required(sub); len(s) > len(longest) {
				longest = s
			}
		}
		return longest
	}
	return ""
}

// A hit is a line, or several, in which a match lies: data[from:to], with the
// match's own bounds. number is that of its first line.
type hit struct{ number, from, to, matchFrom, matchTo int }

// find returns at most most hits, each on a line of its own, and whether there
// are more.
func (m *matcher) find(data []byte, most int) (hits []hit, more bool) {
	if m.must != nil && !bytes.Contains(data, m.must) {
		return nil, false
	}
	number, counted := 1, 0
	for at := 0; at < len(data); {
		h, ok := m.next(data, at)
		if !ok {
			break
		}
		if len(hits) == most {
			return hits, true
		}
		number += bytes.Count(data[counted:h.from], []byte{'\n'})
		counted, h.number = h.from, number
		hits = append(hits, h)
		at = h.to + 1
	}
	return hits, false
}

// next returns the first hit that begins at at, which is the start of a line, or behind it.
func (m *matcher) next(data []byte, at int) (hit, bool) {
	if m.multiline {
		loc := m.locate(data[at:])
		if loc == nil || at+loc[0] == len(data) && at < len(data) && data[len(data)-1] == '\n' {
			return hit{}, false
		}
		from, to := at+loc[0], at+loc[1]
		end := to
		if end > from && data[end-1] == '\n' {
			end-- // the line that it ends, not the one behind
		}
		return hit{from: lineBegin(data, from), to: lineEnd(data, end), matchFrom: from, matchTo: to}, true
	}
	for at < len(data) {
		if m.must != nil {
			i := bytes.Index(data[at:], m.must)
			if i < 0 {
				return hit{}, false
			}
			at = max(at, lineBegin(data, at+i))
		}
		end := lineEnd(data, at)
		if loc := m.locate(bytes.TrimSuffix(data[at:end], []byte{'\r'})); loc != nil {
			return hit{from: at, to: end, matchFrom: at + loc[0], matchTo: at + loc[1]}, true
		}
		at = end + 1
	}
	return hit{}, false
}

func (m *matcher) locate(text []byte) []int {
	if m.re != nil {
		return m.re.FindIndex(text)
	}
	if i := bytes.Index(text, m.must); i >= 0 {
		return []int{i, i + len(m.must)}
	}
	return nil
}

func lineBegin(data []byte, at int) int { return bytes.LastIndexByte(data[:at], '\n') + 1 }

func lineEnd(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(data)
}

// maxShown bounds the bytes of a line that are shown.
const maxShown = 300

// around returns the lines of the hits and n lines before and after each.
func around(data []byte, hits []hit, n int) []line {
	var out []line
	after := func(number, from int, until int) { // the lines behind the last hit, before the next
		for i := 0; i < n && from < until; i++ {
			end := lineEnd(data, from)
			out = append(out, line{number: number + i, text: shorten(data[from:end], 0, 0)})
			from = end + 1
		}
	}
	number, behind := 1, 0 // of the line behind the last hit
	for i, h := range hits {
		if i > 0 {
			after(number, behind, h.from)
		}
		out = append(out, before(data, h, n, lastNumber(out), behind)...)
		shown := strings.Split(shorten(data[h.from:h.to], h.matchFrom-h.from, h.matchTo-h.from), "\n")
		for j, text := range shown {
			if j < len(shown)-1 {
				text = strings.TrimSuffix(text, "\r") // of the last one, it is gone already
			}
			out = append(out, line{number: h.number + j, match: j == 0, text: text})
		}
		number, behind = h.number+1+bytes.Count(data[h.from:h.to], []byte{'\n'}), h.to+1
	}
	after(number, behind, len(data))
	return out
}

func lastNumber(lines []line) int {
	if len(lines) == 0 {
		return 0
	}
	return lines[len(lines)-1].number
}

// before returns up to n lines before a hit that were not shown yet.
func before(data []byte, h hit, n, shown, behind int) []line {
	var out []line
	at := h.from
	for i := 1; i <= n && at > behind && h.number-i > shown; i++ {
		begin := lineBegin(data, at-1)
		out = append([]line{{number: h.number - i, text: shorten(data[begin:at-1], 0, 0)}}, out...)
		at = begin
	}
	return out
}

// shorten returns text as valid UTF-8, cut around the part from to to if it is long.
func shorten(text []byte, from, to int) string {
	text = bytes.TrimSuffix(text, []byte{'\r'})
	if len(text) > maxShown {
		from = min(from, len(text))
		begin := max(0, min(from-maxShown/4, len(text)-maxShown))
		end := min(len(text), max(begin+maxShown, min(to, begin+4*maxShown)))
		for begin > 0 && !utf8.RuneStart(text[begin]) {
			begin--
		}
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		cut := string(text[begin:end])
		if begin > 0 {
			cut = "…" + cut
		}
		if end < len(text) {
			cut += "…"
		}
		return strings.ToValidUTF8(cut, "\uFFFD")
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}
