package search

import (
	"unicode"
	"unicode/utf8"

	"github.com/helve-ai/helve/letters"
)

// A kind says how a word came out of its text.
type kind uint8

const (
	whole  kind = iota // stands on its own
	part               // of an identifier such as getUser
	joined             // the parts of an identifier, together
	single             // one character of a script without spaces
	pair               // two neighbours of a script without spaces
)

// A word is a searchable piece of a text. It points into the splitter that made it.
type word struct {
	plain  span // folded, in splitter.folded
	spelt  span // lower case with its accents, in splitter.lower; what stemmers want
	kind   kind
	script script
	traits traits
	at     uint32 // where the run of letters that it is from begins in the text, composed
	clause uint16 // which of the text's clauses it is in
}

// traits say where and how a word stands in its text.
type traits uint8

const (
	capital traits = 1 << iota // begins with a capital
	opening                    // is the first of a sentence
	quoted                     // stands in quotation marks
)

type span struct{ from, to uint32 }

// maxWord bounds the runes of a word; the rest of longer ones is ignored.
const maxWord = 40

// A splitter cuts texts into words. Its buffers are reused from text to text.
type splitter struct {
	folded, lower []byte
	words         []word
	run           []rune
	how           traits // of the words that come out of the run
	opens         bool   // the next word is the first of a sentence
	clause        uint16
	at            uint32
	quote         int // the first word after quotation marks that are still open; -1: none are
}

func (s *splitter) plain(w word) []byte { return s.folded[w.plain.from:w.plain.to] }
func (s *splitter) spelt(w word) []byte { return s.lower[w.spelt.from:w.spelt.to] }

// split leaves the words of text, which is composed, in s.words.
func (s *splitter) split(text string) {
	s.folded, s.lower, s.words, s.run = s.folded[:0], s.lower[:0], s.words[:0], s.run[:0]
	now := noScript
	s.opens, s.quote, s.clause = true, -1, 0
	for i, r := range text {
		sc := letters.ScriptOf(r)
		if sc == mark {
			if now != noScript && len(s.run) > 0 {
				s.run = append(s.run, r)
			}
			continue
		}
		if r == '-' && len(s.run) == 1 && now == latin {
			continue // e-mail and email are one
		}
		if !continues(now, sc) {
			s.flush(now)
			now = noScript
		}
		if sc != noScript {
			if len(s.run) == 0 {
				s.at = uint32(i)
			}
			s.run = append(s.run, r)
		} else {
			s.punctuate(r)
		}
		if now == noScript || now == digits {
			now = sc
		}
	}
	s.flush(now)
}

// traitsOf returns how a word stands that begins with r.
func (s *splitter) traitsOf(r rune) traits {
	var how traits
	if unicode.IsUpper(r) {
		how |= capital
	}
	if s.opens {
		how |= opening
	}
	s.opens = false
	return how
}

// punctuate notes what a character between words says of those around it.
func (s *splitter) punctuate(r rune) {
	switch r {
	case '.', '!', '?', '\n', '。', '！', '？', ':', '؟', ';', '；':
		s.opens = true
		s.endClause()
	case '"', '“', '”', '„', '«', '»', '「', '」', '『', '』', '《', '》':
		if s.quote < 0 {
			s.quote = len(s.words)
			return
		}
		for i := s.quote; i < len(s.words); i++ {
			s.words[i].traits |= quoted
		}
		s.quote = -1
	}
}

func (s *splitter) endClause() {
	if n := len(s.words); n > 0 && s.words[n-1].clause == s.clause {
		s.clause++
	}
}

// continues reports whether a letter of script b goes on with a word in script a.
func continues(a, b script) bool {
	return a == b || a == digits && !b.Unspaced() && b != noScript || b == digits && a != noScript && !a.Unspaced()
}

// flush turns the run, all of one script but for digits, into words.
func (s *splitter) flush(sc script) {
	run := s.run
	s.run = s.run[:0]
	switch {
	case len(run) == 0:
		return
	case sc.Unspaced():
		s.how, s.opens = 0, false
		s.flushUnspaced(run, sc)
		return
	}
	s.how = s.traitsOf(run[0])
	run = run[:min(len(run), maxWord)]
	var cuts [maxWord]int
	parts, short := 0, false
	from := 0
	for i := 1; i <= len(run); i++ {
		if i < len(run) && !isCut(run, i) {
			continue
		}
		short = short || i-from == 1 && !unicode.IsDigit(run[from])
		cuts[parts] = i
		parts++
		from = i
	}
	switch {
	case parts == 1:
		s.add(run, sc, whole)
		return
	case short && len(run) <= 5: // s3, mp4, 2nd, h264: the parts mean nothing
		s.add(run, sc, joined)
		return
	}
	from = 0
	for _, to := range cuts[:parts] {
		s.add(run[from:to], sc, part)
		from = to
	}
	if parts <= maxJoined {
		s.add(run, sc, joined)
	}
}

// maxJoined is the most parts of an identifier that are also kept together, as
// in GitHub; longer ones are names, which are matched whole elsewhere.
const maxJoined = 3

// isCut reports whether an identifier is to be cut before run[i].
func isCut(run []rune, i int) bool {
	a, b := run[i-1], run[i]
	switch {
	case unicode.IsDigit(a) != unicode.IsDigit(b) && !unicode.Is(unicode.M, b):
		return true
	case unicode.IsLower(a) && unicode.IsUpper(b):
		return true
	case unicode.IsUpper(a) && unicode.IsUpper(b) && i+1 < len(run) && unicode.IsLower(run[i+1]):
		return i+2 != len(run) || run[i+1] != 's' // the s of APIs is no word
	}
	return false
}

func (s *splitter) add(run []rune, sc script, k kind) {
	f, l := uint32(len(s.folded)), uint32(len(s.lower))
	first := digits
	for _, r := range run {
		rs := letters.ScriptOf(r)
		if rs == mark {
			if letters.KeepsMarks(sc) {
				s.folded = utf8.AppendRune(s.folded, r)
				s.lower = utf8.AppendRune(s.lower, r)
			}
			continue
		}
		if rs != digits {
			first = sc
		}
		s.folded = letters.AppendFolded(s.folded, r, rs)
		s.lower = utf8.AppendRune(s.lower, unicode.ToLower(r))
	}
	if len(s.folded) > int(f) {
		s.words = append(s.words, word{span{f, uint32(len(s.folded))}, span{l, uint32(len(s.lower))}, k, first, s.how, s.at, s.clause})
	}
}

// flushUnspaced makes words of a run whose word boundaries are not written:
// every character and every two neighbours. Korean words do stand between
// spaces and katakana is used for single foreign words, so these are kept whole too.
func (s *splitter) flushUnspaced(run []rune, sc script) {
	var starts [maxUnspaced + 1]int
	n := 0
	for i, r := range run {
		if unicode.Is(unicode.M, r) && i > 0 {
			continue
		}
		if n == maxUnspaced {
			run = run[:i]
			break
		}
		starts[n] = i
		n++
	}
	starts[n] = len(run)
	if n == 1 {
		s.add(run, sc, pair)
		return
	}
	if (sc == hangul || sc == katakana) && 3 <= n && n <= 12 {
		s.add(run, sc, whole)
	}
	for i := range n {
		s.add(run[starts[i]:starts[i+1]], sc, single)
		if i+2 <= n {
			s.add(run[starts[i]:starts[i+2]], sc, pair)
		}
	}
}

// maxUnspaced bounds a run without any punctuation; the rest is ignored.
const maxUnspaced = 400
