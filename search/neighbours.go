package search

import "hash/fnv"

// Besides words, two things are indexed that words are neighbours in or made
// of: pairs of neighbouring words, by their stems, and pieces of four letters.

// appendPair appends the term of two neighbouring stems, by a hash: they are
// many, and none is ever shown.
func appendPair(dst []byte, a, b []byte) []byte {
	h := fnv.New32a()
	h.Write(a)
	h.Write([]byte{' '})
	h.Write(b)
	return h.Sum(append(dst, classPair...))
}

// gramLetters is how many letters a piece of a word has.
const gramLetters = 4

// eachPiece calls visit with the term of every four letters of a word, the
// marks of its two ends counting as letters. The term serves until the next.
func eachPiece(buf, word []byte, visit func([]byte)) []byte {
	buf = append(append(append(buf[:0], '_'), word...), '_')
	var from [gramLetters]int // where the last letters began
	n := 0
	var term [len(classGram) + 4*gramLetters]byte
	copy(term[:], classGram)
	for i := 0; i <= len(buf); i++ {
		if i < len(buf) && buf[i]&0xC0 == 0x80 {
			continue // inside a letter
		}
		if n >= gramLetters {
			visit(append(term[:len(classGram)], buf[from[n%gramLetters]:i]...))
		}
		from[n%gramLetters] = i
		n++
	}
	return buf
}

// scorePieces leaves in sc.pieces what the tools have of the letters of the
// query's words.
func (r *ranker) scorePieces(tokens []token, sc *scratch) {
	sc.pieces = zeroed(sc.pieces, r.snap.docs)
	sc.terms = sc.terms[:0]
	for _, t := range tokens {
		if t.stop || !t.spelled() {
			continue
		}
		sc.buf = eachPiece(sc.buf, sc.split.plain(t.word), func(term []byte) {
			df := r.snap.df(term)
			if df == 0 || sc.met(term) {
				return
			}
			r.snap.addOne(&alternative{term, t.weight * r.snap.idf(df)}, sc.pieces, false)
		})
	}
}

// met reports whether a term was asked for before.
func (sc *scratch) met(term []byte) bool {
	h := hashTerm(term)
	for _, o := range sc.terms {
		if o == h {
			return true
		}
	}
	sc.terms = append(sc.terms, h)
	return false
}

// spelled reports whether a word is one of a script that spells words out.
func (w *word) spelled() bool {
	return (w.kind == whole || w.kind == part) && !w.script.Unspaced() && w.script != digits
}

// addPairs adds what neighbours in the query count that are neighbours in tools.
func (r *ranker) addPairs(winners langs, sc *scratch) {
	weight := r.w(kPair)
	if weight == 0 {
		return
	}
	before := sc.stems[:0]
	var stem []byte
	for i := range sc.split.words[:min(len(sc.split.words), maxSlots)] {
		w := &sc.split.words[i]
		if !w.spelled() {
			continue
		}
		plain := sc.split.plain(*w)
		if stopWords()[string(plain)]&stopIn(w.script, winners) != 0 {
			continue
		}
		if stem = plain; w.script == latin {
			if s := appendStem(sc.buf[:0], sc.split.spelt(*w), winners&-winners); len(s) > 0 {
				stem = s
			}
		}
		if len(before) > 0 {
			sc.pair = appendPair(sc.pair[:0], before, stem)
			if df := r.snap.df(sc.pair); df > 0 {
				r.snap.addOne(&alternative{sc.pair, weight * r.snap.idf(df)}, sc.words, true)
			}
		}
		before = append(before[:0], stem...)
	}
	sc.stems = before
}
