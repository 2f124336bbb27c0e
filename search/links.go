package search

import (
	"slices"
	"strings"
)

// A tool that asks for the id of a thing is of little use without one that
// finds such things by their names: get_movie_credits wants a movie_id, and
// search_movies has it. A tool that asks for coordinates of a place wants one
// that finds those in the same way: people name the place.

// finders are the words in names of tools that find things.
var finders = map[string]bool{"search": true, "find": true, "list": true, "lookup": true, "query": true, "discover": true}

// placed are the words in names of parameters that ask where a place lies.
var placed = map[string]bool{"latitude": true, "lat": true, "coordinates": true}

// findsPlaces reports whether a word of a tool's name says that it finds out where places lie.
func findsPlaces(word string) bool { return strings.HasPrefix(word, "geocod") || word == "coordinates" }

// whereabouts links tools by coordinates, which are of no kind of thing.
const whereabouts = "\x00"

// addLinks notes of which things the tool asks for ids, by its name and its
// parameters, and which it finds, by its name.
func (a *analyser) addLinks() {
	finds, needsPlace, givesPlace := false, false, false
	for i := range a.words {
		w := &a.words[i]
		if !a.linkable(w) {
			continue
		}
		word := a.vocab.terms[w.id]
		finds = finds || w.field == fieldName && finders[word]
		needsPlace = needsPlace || w.field == fieldParams && placed[word]
		givesPlace = givesPlace || w.field == fieldName && findsPlaces(word)
		if i > 0 && word == "id" && a.words[i-1].field == w.field && a.linkable(&a.words[i-1]) {
			a.link(classNeeds, &a.words[i-1])
		}
	}
	switch {
	case needsPlace: // and gives no news of it, as reverse geocoding
		a.linkTerm(classNeeds, whereabouts)
	case givesPlace:
		a.linkTerm(classGives, whereabouts)
	}
	for i := range a.words {
		if w := &a.words[i]; finds && w.field == fieldName && a.linkable(w) && !finders[a.vocab.terms[w.id]] {
			a.link(classGives, w)
		}
	}
}

func (a *analyser) linkable(w *docWord) bool {
	return (w.field == fieldName || w.field == fieldParams) && (w.kind == whole || w.kind == part) && w.script == latin
}

func (a *analyser) link(class string, w *docWord) {
	a.linkTerm(class, a.vocab.terms[a.stem(w, inEnglish)])
}

func (a *analyser) linkTerm(class, thing string) {
	a.pairTerm = append(append(a.pairTerm[:0], class...), thing...)
	a.sum(a.vocab.id(a.pairTerm), 1)
}

// leading is how many of the best tools bring those along that find what they ask for.
const leading = 5

// bringAlong raises tools that find what the best ones ask for, where the
// query names something: to a share of what those score. It returns what it
// has added by document, nil if nothing.
func (r *ranker) bringAlong(scores []float32, most float32, q *query, sc *scratch) map[int]float32 {
	weight := r.w(kProvider)
	if weight == 0 || most == 0 || !q.namesSomething(sc) {
		return nil
	}
	var added map[int]float32
	for _, c := range r.rank(scores, most/2, leading) {
		v := r.snap.viewOf(c.doc)
		v.seg.eachTerm(uint16(c.doc-v.base), func(id uint32) {
			if term := v.seg.term(id); string(term[:len(classNeeds)]) == classNeeds {
				gives := append([]byte(classGives), term[len(classNeeds):]...)
				r.snap.eachPosting(gives, func(doc uint32, _ uint8) {
					if more := weight*c.score - scores[doc]; more > 0 {
						if added == nil {
							added = map[int]float32{}
						}
						added[int(doc)] = max(added[int(doc)], more)
					}
				})
			}
		})
	}
	for doc, more := range added {
		scores[doc] += more
	}
	return added
}

// namesSomething reports whether the query has a name in it, or anything else
// that a tool is to work on. In German all nouns have capitals: there, those
// that the lexicon knows are no names.
func (q *query) namesSomething(sc *scratch) bool {
	return slices.ContainsFunc(q.tokens, func(t token) bool {
		name := t.traits&(capital|opening) == capital && !(q.langs&inGerman != 0 && sc.isMeant(t.word))
		return t.traits&quoted != 0 || name
	})
}
