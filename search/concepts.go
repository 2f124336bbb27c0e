package search

import (
	"github.com/helve-ai/helve/lexicon"
)

// conceptTerm appends the term of a concept.
func conceptTerm(dst []byte, id lexicon.ID) []byte {
	return append(append(dst, classConcept...), byte(id>>16), byte(id>>8), byte(id))
}

// conceptOf returns the concept of which term is the term.
func conceptOf(term []byte) (lexicon.ID, bool) {
	if len(term) != len(classConcept)+3 || string(term[:len(classConcept)]) != classConcept {
		return 0, false
	}
	t := term[len(classConcept):]
	return lexicon.ID(t[0])<<16 | lexicon.ID(t[1])<<8 | lexicon.ID(t[2]), true
}

// meanings finds the concepts that the query's words stand for.
func (r *ranker) meanings(text string, sc *scratch) {
	sc.matches = r.snap.engine.lex.Match(sc.matches[:0], text, sc.ballot.hint())
}

// isMeant reports whether a word of the query stands for a concept.
func (sc *scratch) isMeant(w word) bool {
	for _, m := range sc.matches {
		if uint32(m.From) <= w.at && w.at < uint32(m.To) {
			return true
		}
	}
	return false
}

// addConcepts adds the concepts that are meant: those of English words as
// alternatives to the words, others as slots of their own.
func (r *ranker) addConcepts(slots []slot, winners langs, sc *scratch) []slot {
	list := sc.matches
	for n := 0; len(list) > 0 && n < maxSlots; n++ {
		same := 1
		for same < len(list) && list[same].From == list[0].From {
			same++
		}
		here := list[:same]
		list = list[same:]
		english := here[0].Langs&lexicon.English != 0 && winners&inEnglish != 0
		from := len(sc.alts)
		for _, m := range here {
			r.addConcept(m, m.Concept, english, 1, slots, sc)
			for _, c := range r.snap.engine.lex.Broader(m.Concept) {
				r.addConcept(m, c, english, r.w(kBroader), slots, sc)
			}
			for _, c := range r.snap.engine.lex.Near(m.Concept) {
				r.addConcept(m, c, english, r.w(kNear), slots, sc)
			}
		}
		alts := sc.alts[from:len(sc.alts):len(sc.alts)]
		share := r.shareOf(here)
		i := slotAt(slots, here[0].From)
		if i >= 0 {
			scale(slots[i].alts, share)
		}
		scale(alts, share)
		if len(alts) == 0 {
			continue
		}
		if i >= 0 && english {
			most := slots[i].most() // what stands in for a word counts no more than the word
			for k := range alts {
				if most > 0 {
					alts[k].weight = min(alts[k].weight, most)
				}
			}
			slots[i].alts = append(slots[i].alts[:len(slots[i].alts):len(slots[i].alts)], alts...)
			continue
		}
		text := sc.composed[here[0].From:here[0].To]
		slots = append(slots, slot{text: []byte(text), weight: 1, alts: alts, at: noPlace, clause: sc.clauseAt(here[0].From)})
	}
	return slots
}

// shareOf returns what a word counts that stands for what some matches mean.
func (r *ranker) shareOf(matches []lexicon.Match) float32 {
	thing := false
	for _, m := range matches {
		switch r.snap.engine.lex.Kind(m.Concept) {
		case lexicon.Action:
			return 1
		case lexicon.Object:
			thing = true
		}
	}
	if thing {
		return r.w(kThing)
	}
	return 1
}

func scale(alts []alternative, share float32) {
	for i := range alts {
		alts[i].weight *= share
	}
}

// related is the share of the tools, as its inverse, in which a related concept
// may be: a more common one tells nothing, and takes time.
const related = 16

// addConcept adds an alternative for a concept, which has this share in what
// the words of a match mean.
func (r *ranker) addConcept(m lexicon.Match, id lexicon.ID, english bool, share float32, slots []slot, sc *scratch) {
	weight := r.w(kForeign)
	if english && m.Langs&lexicon.English != 0 {
		weight = r.w(kSynonym)
	}
	term := sc.keep(conceptTerm(sc.buf[:0], id))
	if weight *= share; weight == 0 || r.seen(term, 1) == 0 || holdsConcept(slots, term) {
		return
	}
	df := r.snap.df(term)
	if id != m.Concept && related*int(df) > len(r.snap.places) && df > related {
		return
	}
	idf := r.snap.idf(df)
	if id != m.Concept { // a rarer one than what is meant counts no more for that
		if n := r.snap.df(conceptTerm(sc.buf[:0], m.Concept)); n > 0 {
			idf = min(idf, r.snap.idf(n))
		}
	}
	sc.alts = append(sc.alts, alternative{term, weight * m.Weight * idf})
}

// holdsConcept reports whether a slot stands for the concept already, as where
// a query says it twice.
func holdsConcept(slots []slot, term []byte) bool {
	for i := range slots {
		if slots[i].at == noPlace && len(slots[i].alts) > 0 && string(slots[i].alts[0].term) == string(term) {
			return true
		}
	}
	return false
}

func slotAt(slots []slot, at int) int {
	for i := range slots {
		if int(slots[i].at) == at {
			return i
		}
	}
	return -1
}

// hint says what the ballot tells of a text's languages.
func (b *ballot) hint() lexicon.Hint {
	var votes float32
	for _, v := range b.votes {
		votes = max(votes, v)
	}
	if votes == 0 {
		return lexicon.Hint{}
	}
	var h lexicon.Hint
	for i, l := range languages {
		if b.winners()&(1<<i) != 0 {
			h.Likely |= lexicon.LangOf(l.code)
		}
	}
	// One short word may be another language's: dal is "of the", and a branch.
	h.Firm = h.Likely != 0 && votes >= 2 || votes >= 1 && h.Likely == lexicon.English
	return h
}
