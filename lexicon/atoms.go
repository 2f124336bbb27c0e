package lexicon

import (
	"unicode"
	"unicode/utf8"

	"github.com/helve-ai/helve/letters"
)

// An atom is a piece of a text that is looked up: a word, a part of an
// identifier, or one character of a script without spaces.
type atom struct {
	from, to int32 // in the text
	fold     span  // in atomiser.folded
	spelt    span  // in atomiser.spelt: lower case with its accents; from -1: as folded
	hash     uint64
	runes    uint8
	script   letters.Script
	first    bool // a run of letters begins with it
	last     bool // a run of letters ends with it
}

type span struct{ from, to int32 }

// accented reports whether the atom is spelt otherwise than folded.
func (a *atom) accented() bool { return a.spelt.from >= 0 && a.script == letters.Latin }

func (a *atom) unspaced() bool { return a.script.Unspaced() }

// An atomiser cuts texts into atoms. Its buffers are reused from text to text.
type atomiser struct {
	folded, spelt []byte
	atoms         []atom
	run           []letter
}

// A letter is one of a text, with its place.
type letter struct {
	r      rune
	at     int32
	script letters.Script
}

// maxWord bounds the letters of an atom; the rest of longer ones is ignored.
const maxWord = 48

func (z *atomiser) folding(a *atom) []byte { return z.folded[a.fold.from:a.fold.to] }

func (z *atomiser) spelling(a *atom) []byte {
	if a.spelt.from < 0 {
		return z.folding(a)
	}
	return z.spelt[a.spelt.from:a.spelt.to]
}

// split leaves the atoms of text in z.atoms.
func (z *atomiser) split(text string) {
	z.folded, z.spelt, z.atoms, z.run = z.folded[:0], z.spelt[:0], z.atoms[:0], z.run[:0]
	now := letters.None
	for i, size := 0, 0; i < len(text); i += size {
		if len(z.run) == 0 {
			if size = z.plainWord(text, i); size > 0 {
				continue
			}
		}
		var r rune
		r, size = utf8.DecodeRuneInString(text[i:])
		s := letters.ScriptOf(r)
		switch {
		case s == letters.Mark:
			if len(z.run) == 0 {
				continue
			}
			s = letters.Mark
		case s == letters.None && r == '-' && len(z.run) == 1 && now == letters.Latin:
			continue // e-mail and email are one
		case !together(now, s):
			z.flush(int32(i))
			now = letters.None
		}
		if s == letters.None {
			continue
		}
		z.run = append(z.run, letter{r, int32(i), s})
		if now == letters.None || now == letters.Digits && s != letters.Mark {
			now = s
		}
	}
	z.flush(int32(len(text)))
}

// plainWord adds the word at text[i:] and returns its length, if it is written
// with the letters a to z alone and the first at most is a capital. Zero: there
// is none.
func (z *atomiser) plainWord(text string, i int) int {
	n, f := 0, int32(len(z.folded))
	h := uint64(fnvOffset)
	for ; i+n < len(text); n++ {
		c := text[i+n]
		if n == 0 && 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		} else if c < 'a' || c > 'z' {
			break
		}
		h = (h ^ uint64(c)) * fnvPrime
		z.folded = append(z.folded, c)
	}
	plain := n > 0 && n <= maxWord
	if plain && i+n < len(text) {
		c := text[i+n]
		plain = c < utf8.RuneSelf && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && (n > 1 || c != '-')
	}
	if !plain {
		z.folded = z.folded[:f]
		return 0
	}
	z.atoms = append(z.atoms, atom{from: int32(i), to: int32(i + n), fold: span{f, f + int32(n)}, spelt: span{-1, -1},
		hash: mix(h), runes: uint8(n), script: letters.Latin, first: true, last: true})
	return n
}

// together reports whether a letter of script b goes on with a run that is in
// script a. Those without spaces run together: Japanese mixes three.
func together(a, b letters.Script) bool {
	switch {
	case a == b:
		return true
	case b == letters.None || a == letters.None:
		return false
	case a.Unspaced() && b.Unspaced():
		return (a == letters.Hangul) == (b == letters.Hangul) && (a == letters.Thai) == (b == letters.Thai)
	}
	return a == letters.Digits && !b.Unspaced() || b == letters.Digits && !a.Unspaced()
}

// flush turns the run, which ends at end, into atoms.
func (z *atomiser) flush(end int32) {
	run, first := z.run, len(z.atoms)
	z.run = z.run[:0]
	if len(run) == 0 {
		return
	}
	if run[0].script.Unspaced() {
		z.flushUnspaced(run, end)
	} else {
		z.flushWord(run, end)
	}
	if n := len(z.atoms); n > first {
		z.atoms[first].first, z.atoms[n-1].last = true, true
	}
}

func (z *atomiser) flushUnspaced(run []letter, end int32) {
	for from := 0; from < len(run); {
		to := from + 1
		for to < len(run) && run[to].script == letters.Mark {
			to++
		}
		z.add(run[from:to], ending(run, to, end))
		from = to
	}
}

// ending returns where the letter before run[i] ends.
func ending(run []letter, i int, end int32) int32 {
	if i < len(run) {
		return run[i].at
	}
	return end
}

// flushWord cuts a run at changes of case and between letters and digits.
func (z *atomiser) flushWord(run []letter, end int32) {
	cuts, short, from := 0, false, 0
	for i := 1; i <= len(run); i++ {
		if i < len(run) && !isCut(run, i) {
			continue
		}
		short = short || i-from == 1 && run[from].script != letters.Digits
		cuts++
		from = i
	}
	if cuts == 1 || short && len(run) <= 5 { // the parts of s3, mp4, 2nd mean nothing
		z.add(run, end)
		return
	}
	from = 0
	for i := 1; i <= len(run); i++ {
		if i == len(run) || isCut(run, i) {
			z.add(run[from:i], ending(run, i, end))
			from = i
		}
	}
}

// isCut reports whether a word is to be cut before run[i].
func isCut(run []letter, i int) bool {
	a, b := run[i-1], run[i]
	switch {
	case b.script == letters.Mark:
		return false
	case (a.script == letters.Digits) != (b.script == letters.Digits):
		return true
	case unicode.IsUpper(b.r) && unicode.IsLower(a.r):
		return true
	case unicode.IsUpper(a.r) && unicode.IsUpper(b.r) && i+1 < len(run) && unicode.IsLower(run[i+1].r):
		return i+2 != len(run) || run[i+1].r != 's' // the s of APIs is no word
	}
	return false
}

func (z *atomiser) add(run []letter, end int32) {
	a := atom{from: run[0].at, to: end, script: run[0].script}
	f, l := int32(len(z.folded)), int32(len(z.spelt))
	for _, x := range run[:min(len(run), maxWord)] {
		if x.script == letters.Mark {
			if letters.KeepsMarks(a.script) {
				z.folded = utf8.AppendRune(z.folded, x.r)
			}
			continue
		}
		a.runes++
		if a.script == letters.Digits {
			a.script = x.script
		}
		z.folded = letters.AppendFolded(z.folded, x.r, x.script)
		if x.r < utf8.RuneSelf || !a.unspaced() {
			z.spelt = utf8.AppendRune(z.spelt, unicode.ToLower(x.r))
		}
	}
	a.fold, a.spelt = span{f, int32(len(z.folded))}, span{l, int32(len(z.spelt))}
	if string(z.spelling(&a)) == string(z.folding(&a)) {
		a.spelt = span{-1, -1}
	}
	a.hash = hash(z.folding(&a))
	z.atoms = append(z.atoms, a)
}

// stem returns the stem of an atom in a language; where none is known, the atom itself.
func (z *atomiser) stem(s *stemmer, a *atom, lang int) stem {
	st := stem{}
	switch word := z.spelling(a); {
	case !stemmed.has(lang) || a.unspaced():
	case a.spelt.from < 0:
		st = s.of(word, a.hash, lang)
	default:
		st = s.of(word, hash(word), lang)
	}
	if st.hash == 0 {
		return stem{a.hash, 1}
	}
	return st
}

// hash is FNV-1a, made even over all bits by mix.
func hash(b []byte) uint64 {
	h := uint64(fnvOffset)
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return mix(h)
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// mix is the finaliser of MurmurHash3.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// join returns the key of a phrase that goes on with an atom.
func join(key, atom uint64) uint64 { return mix(key*0x9e3779b97f4a7c15 + atom) }

// exact begins the key of what is written as in the data; stems have others,
// by language.
const (
	exact     = 1
	speltSeed = 0x7370656c // of words as they are spelt, with their accents
)

func stemSeed(lang int) uint64 { return uint64(lang) + 2 }
