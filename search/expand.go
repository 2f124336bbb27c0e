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

// A fuzzyWalk goes through the words that begin as the query does, and keeps
// the rows of the table of edit distances that neighbouring words share.
type fuzzyWalk struct {
	query []rune
	rows  [maxWord + 4][maxWord + 2]uint8
	last  []rune
	now   []rune
}

// fuzzy appends the words that differ from q in few letters, not the first.
func (v *view) fuzzy(w *fuzzyWalk, q []byte, out []expansion) []expansion {
	w.query = appendRunes(w.query[:0], q)
	edits := allowedEdits(len(w.query))
	if edits == 0 || len(w.query) > maxWord {
		return out
	}
	for j := range len(w.query) + 1 {
		w.rows[0][j] = uint8(j)
	}
	w.last = w.last[:0]
	_, size := utf8.DecodeRune(q)
	dead := 0 // while words share this many letters with the last, they are too far off
	for id := v.seg.seek(q[:size]); int(id) < v.seg.terms(); id++ {
		t := v.seg.term(id)
		if !bytes.HasPrefix(t, q[:size]) {
			break
		}
		w.now = appendRunes(w.now[:0], t)
		shared := common(w.now, w.last)
		if dead > 0 && shared >= dead {
			continue
		}
		if len(w.now) > len(w.query)+edits {
			w.now = w.now[:len(w.query)+edits+1]
		}
		dead = w.fill(shared, edits)
		w.last, w.now = w.now, w.last
		if d := int(w.rows[len(w.last)][len(w.query)]); dead == 0 && len(w.last) <= len(w.query)+edits && d <= edits && d > 0 && v.df(id) > 0 {
			out = append(out, expansion{t, pow(weightFuzzy, d)})
		}
	}
	return out
}

// fill computes the rows for w.now from the first letter that it does not
// share with the word before. It returns how many letters are enough to say
// that a word is too far off, or zero.
func (w *fuzzyWalk) fill(shared, edits int) int {
	for i := shared + 1; i <= len(w.now); i++ {
		row, above := &w.rows[i], &w.rows[i-1]
		row[0] = uint8(i)
		least := row[0]
		for j := 1; j <= len(w.query); j++ {
			cost := uint8(1)
			if w.now[i-1] == w.query[j-1] {
				cost = 0
			}
			d := min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && w.now[i-1] == w.query[j-2] && w.now[i-2] == w.query[j-1] {
				d = min(d, w.rows[i-2][j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if int(least) > edits+1 { // one more, for a swap looks two rows back
			w.now = w.now[:i]
			return i
		}
	}
	return 0
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
		if w := gramSimilarity(q, t); w >= minSimilarity {
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

func common(a, b []rune) int {
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
