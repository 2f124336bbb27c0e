package search

import (
	"bytes"
	"unicode/utf8"
)

// An expansion is a word of the dictionary that a query's word may stand for.
type expansion struct {
	term   []byte
	weight float32 // how well it does, up to 1
}

// maxExpansions bounds the words that one query's word may stand for in one way.
const maxExpansions = 12

// withPrefix appends the words of which q is the beginning. They weigh the
// share that q is of them.
func (v *view) withPrefix(q []byte, out []expansion) []expansion {
	letters := utf8.RuneCount(q)
	for id := v.seg.seek(q); int(id) < v.seg.terms(); id++ {
		t := v.seg.term(id)
		if !bytes.HasPrefix(t, q) {
			break
		}
		if len(t) > len(q) && v.df(id) > 0 {
			out = append(out, expansion{t, float32(letters) / float32(utf8.RuneCount(t))})
		}
	}
	return out
}

// allowedEdits returns how many letters of a word of this length may differ.
func allowedEdits(letters int) int {
	switch {
	case letters < 4:
		return 0
	case letters < 8:
		return 1
	}
	return 2
}

// shortest is the length of words in which letters may be swapped but not
// differ: too many words of this length are one letter apart.
const shortest = 4

// swapped reports whether two words have the same letters.
func swapped[letter byte | rune](a, b []letter) bool {
	var x, y, xx, yy letter
	for _, l := range a {
		x, xx = x+l, xx+l*l
	}
	for _, l := range b {
		y, yy = y+l, yy+l*l
	}
	return len(a) == len(b) && x == y && xx == yy
}

// A fuzzyWalk goes through the words that begin as the query does, and keeps
// the rows of the table of edit distances that neighbouring words share.
type fuzzyWalk[letter byte | rune] struct {
	query []letter
	rows  [maxWord + 4][maxWord + 6]uint8
	last  []letter
	edits int
	dead  int // words that share so many letters with the last are too far off; 0: none
}

// farOff stands in the table of distances for all that need not be known.
const farOff = 100

// fuzzy appends the words that differ from q in few letters, not the first.
func (v *view) fuzzy(sc *scratch, q []byte, out []expansion) []expansion {
	r, size := utf8.DecodeRune(q)
	if r < utf8.RuneSelf && len(q) == utf8.RuneCount(q) {
		return walk(&sc.bytes, v, q, q[:size], out, func(_ []byte, t []byte) []byte { return t })
	}
	sc.runes = appendRunes(sc.runes[:0], q)
	return walk(&sc.wide, v, sc.runes, q[:size], out, func(buf []rune, t []byte) []rune { return appendRunes(buf, t) })
}

func walk[letter byte | rune](w *fuzzyWalk[letter], v *view, query []letter, first []byte, out []expansion, read func([]letter, []byte) []letter) []expansion {
	w.query, w.edits, w.dead, w.last = query, allowedEdits(len(query)), 0, w.last[:0]
	if w.edits == 0 || len(query) > maxWord {
		return out
	}
	for j := range len(query) + 2 {
		w.rows[0][j] = uint8(j)
	}
	var buf []letter
	for id := v.seg.seek(first); int(id) < v.seg.terms(); id++ {
		t := v.seg.term(id)
		if !bytes.HasPrefix(t, first) {
			break
		}
		buf = read(buf[:0], t)
		if d, ok := w.next(buf); ok && d > 0 && v.df(id) > 0 && (len(query) > shortest || swapped(query, buf)) {
			out = append(out, expansion{t, pow(v.engine.v[kFuzzy], d)})
		}
	}
	return out
}

// next returns by how many letters a word differs from the query, if by few
// enough. Words come in order.
func (w *fuzzyWalk[letter]) next(word []letter) (int, bool) {
	if len(word) > len(w.query)+w.edits || len(word)+w.edits < len(w.query) {
		return 0, false
	}
	shared := alike(word, w.last)
	if w.dead > 0 && shared >= w.dead {
		return 0, false
	}
	used := w.fill(word, shared)
	w.last = append(w.last[:0], word[:used]...)
	if w.dead > 0 {
		return 0, false
	}
	d := int(w.rows[len(word)][len(w.query)])
	return d, d <= w.edits
}

// fill computes the rows of the letters of word after those it shares with the
// last one, near the diagonal only. It returns how many rows there are then.
func (w *fuzzyWalk[letter]) fill(word []letter, shared int) int {
	w.dead = 0
	for i := shared + 1; i <= len(word); i++ {
		row, above := &w.rows[i], &w.rows[i-1]
		from, to := max(1, i-w.edits-1), min(len(w.query), i+w.edits+1)
		row[from-1], row[to+1] = farOff, farOff
		if from == 1 {
			row[0] = uint8(i)
		}
		least := uint8(farOff)
		for j := from; j <= to; j++ {
			d := above[j-1]
			if word[i-1] != w.query[j-1] {
				d = min(d, above[j], row[j-1]) + 1
				if i > 1 && j > 1 && word[i-1] == w.query[j-2] && word[i-2] == w.query[j-1] {
					d = min(d, w.rows[i-2][j-2]+1)
				}
			}
			row[j] = d
			least = min(least, d)
		}
		if int(least) > w.edits+1 { // one more, for a swap looks two rows back
			w.dead = i
			return i
		}
	}
	return len(word)
}

// similar appends the words that have many n-grams in common with q.
func (v *view) similar(c *gramCounter, q []byte, out []expansion) []expansion {
	c.reset(v.seg.terms())
	grams := 0
	eachTrigram(q, func(h uint32) {
		grams++
		for _, id := range v.seg.grams.bucket(h) {
			c.add(id)
		}
	})
	for _, id := range c.seen {
		n := int(c.counts[id])
		t := v.seg.term(id)
		if 3*n < grams && 3*n < len(t) || n < 2 || v.df(id) == 0 {
			continue
		}
		if w := gramSimilarity(q, t); w >= v.engine.v[kMinSimilarity] {
			out = append(out, expansion{t, w})
		}
	}
	return out
}

// A gramCounter counts how many trigrams each term shares with a word.
type gramCounter struct {
	counts []uint8
	seen   []uint32
}

func (c *gramCounter) reset(terms int) {
	for _, id := range c.seen {
		c.counts[id] = 0
	}
	c.seen = c.seen[:0]
	if len(c.counts) < terms {
		c.counts = make([]uint8, terms)
	}
}

func (c *gramCounter) add(id uint32) {
	if c.counts[id] == 0 {
		c.seen = append(c.seen, id)
	}
	c.counts[id] = min(c.counts[id], 254) + 1
}

func appendRunes(dst []rune, b []byte) []rune {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		dst = append(dst, r)
		b = b[n:]
	}
	return dst
}

// alike returns how many letters two words begin with alike.
func alike[letter byte | rune](a, b []letter) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func pow(x float32, n int) float32 {
	out := float32(1)
	for range n {
		out *= x
	}
	return out
}
