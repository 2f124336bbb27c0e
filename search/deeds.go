package search

import (
	"strings"
	"sync"

	"github.com/helve-ai/helve/letters"
	"github.com/helve-ai/helve/lexicon"
)

// Requests and tools are about the same things more often than they do the
// same with them: of all the tools for mail, "delete the mail" means the one
// that deletes. What a tool does is told by its name, what a request wants by
// its verbs; and a question wants to know something, not to change it. Tools
// that do something else give up a share of their score.

// A deed is a way to deal with things.
type deed uint8

const (
	noDeed deed = iota
	reads
	creates
	deletes
	changes
	deedCount
)

// deedWords are the concepts of each deed.
var deedWords = [deedCount]string{
	reads:   "get read list show search find query_data load count check compare",
	creates: "create report_bug add insert append write upload send post_message publish generate register write_draft invite reply submit place_order make_schedule reserve",
	deletes: "delete remove_member cancel clear revoke unpublish unsubscribe uninstall remove_tag undo",
	changes: `update edit rename move set_value replace configure enable disable merge reschedule start stop restart execute lock unlock
turn_on_device turn_off_device play assign`,
}

// deedsOf returns the deeds of a lexicon's concepts, by their IDs.
func deedsOf(lex *lexicon.Lexicon) []deed {
	out := make([]deed, lex.Len())
	for d, words := range deedWords {
		for w := range strings.FieldsSeq(words) {
			if id, ok := lex.Find(w); ok {
				out[id] = deed(d)
			}
		}
	}
	return out
}

func (d deed) term(dst []byte) []byte { return append(append(dst, classDoes...), byte(d)) }

// addDeed notes what the tool does: the first deed of its name or title.
func (a *analyser) addDeed(hint lexicon.Hint) {
	for _, x := range a.texts {
		if x.field != fieldName && x.field != fieldTitle {
			continue
		}
		a.matches = a.lex.Match(a.matches[:0], x.text, hint)
		for _, m := range a.matches {
			if d := a.deeds[m.Concept]; d != noDeed {
				a.split.folded = d.term(a.split.folded[:0])
				a.sum(a.vocab.id(a.split.folded), 1)
				return
			}
		}
	}
}

// sureDeed is how sure it must be that a request asks for some deed.
const sureDeed = .9

// disagree takes a share of the score from tools that do other things than the
// query asks for, or, if it names none and is a question, that do more than to find out.
func (r *ranker) disagree(q *query, scores []float32, sc *scratch) {
	var asked [deedCount]bool
	sure, loss := float32(0), r.w(kDeed)
	for _, m := range sc.matches {
		if d := r.snap.engine.deeds[m.Concept]; d != noDeed {
			asked[d] = true
			sure = max(sure, m.Weight)
		}
	}
	if sure >= sureDeed/2 {
		q.asked = asked
	}
	switch {
	case sure == 0 && isQuestion(sc.composed):
		asked[reads], loss = true, r.w(kQuestion)
		q.asked = asked
	case sure < sureDeed:
		return
	}
	for d := reads; d < deedCount; d++ {
		if asked[d] || loss == 0 {
			continue
		}
		q.losses[d] = loss
		sc.buf = d.term(sc.buf[:0])
		r.snap.eachPosting(sc.buf, func(doc uint32, _ uint8) { scores[doc] *= 1 - loss })
	}
}

// lossOf returns the share of its score that a document has lost for what it does.
func (r *ranker) lossOf(doc int, q *query) float32 {
	for d, loss := range q.losses {
		if loss > 0 && r.contains(doc, deed(d).term(nil)) {
			return loss
		}
	}
	return 0
}

// contains reports whether a document contains a term.
func (r *ranker) contains(doc int, term []byte) bool {
	v := r.snap.viewOf(doc)
	id, ok := v.seg.find(term, hashTerm(term))
	return ok && v.seg.impactOf(id, uint16(doc-v.base)) > 0
}

// questionWords begin questions, in the languages of the lexicon; a word or two may stand before them.
const questionWords = `what which who whom whose where when how whats wheres why is are was were did does has
was welche welcher welches welchen wer wo wann wie wieviel wieviele warum
que quel quelle quels quelles qui où quand comment combien pourquoi
qué cuál cuáles quién quiénes dónde cuándo cómo cuánto cuántos cuántas cual quien donde cuando cuanto como
che quale quali chi dove quando quanto quanti quante cosa
qual quais quem onde quantos quantas
wat welke wie waar wanneer hoe hoeveel
co jaki jaka jakie kto gdzie kiedy jak ile czy
что какой какая какое какие кто где когда как сколько
ne hangi kim nerede nasıl kaç
ما ماذا أي من أين متى كيف كم هل
apa siapa mana kapan bagaimana berapa gimana
hvad hvilken hvilke hvem hvor hvornår hvordan`

// questionMarks tell questions wherever they stand.
var questionMarks = strings.Fields("? ？ ؟ 吗 嗎 呢 什么 什麼 多少 哪 几点 怎么样 教えて どこ いくら 何 いつ 誰 알려 어때 어디 얼마 언제 뭐")

var questions = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(questionWords) {
		m[letters.Compose(w)] = true
	}
	return m
})

// isQuestion reports whether a text asks for something to be told.
func isQuestion(text string) bool {
	for _, s := range questionMarks {
		if strings.Contains(text, s) {
			return true
		}
	}
	n := 0
	for w := range strings.FieldsSeq(text) {
		if n == 2 {
			break
		}
		n++
		if questions()[strings.ToLower(strings.Trim(w, ",.:’'¿¡\""))] {
			return true
		}
	}
	return false
}
