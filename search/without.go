package search

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/helve-ai/helve/letters"
	"github.com/helve-ai/helve/lexicon"
)

// A request may say what it does not want: "tell Ann, without e-mail", "in my
// notes, not the calendar". Words for that speak for the wrong tools; so they
// count little, and tools that are named after them lose a share of their score.

// withouts come before what is ruled out, by language.
var withouts = map[string]string{
	"en": "without|instead of|rather than|other than|except|except for|excluding|apart from",
	"fr": "sans|au lieu de|plutôt que|sauf|excepté|hormis",
	"de": "ohne|statt|anstatt|anstelle von|außer|ausser",
	"es": "sin|en vez de|en lugar de|excepto",
	"it": "senza|invece di|invece che|invece del|invece della|al posto di|tranne|eccetto",
	"pt": "sem|em vez de|em lugar de|exceto",
	"nl": "zonder|in plaats van|behalve",
	"pl": "bez|zamiast|oprócz",
	"ru": "без|вместо|кроме",
	"ar": "بدون|بدلا من|باستثناء",
	"id": "tanpa|kecuali|alih-alih",
	"da": "uden|i stedet for|undtagen",
}

// notThese come before what is ruled out as well, where what is wanted stands
// before a comma, or one of those but words.
const (
	notThese = "not nicht pas no non não niet nie не ليس bukan ikke"
	butWords = "but aber sondern mais pero ma mas maar ale но а tapi men and und et y e en i и dan og"
)

// afterThese come after what is ruled out.
const afterThese = "olmadan değil yerine hariç kullanmadan"

// The same where words do not stand between spaces.
var (
	unspacedBefore = strings.Fields("不用 不要用 别用 別用 不通过 不通過 而不是 而非 不使用 无需 無需 不要发 不要在")
	unspacedAfter  = strings.Fields("なしで なしに 無しで を使わず ではなく じゃなくて でなく 以外 の代わり 없이 말고 대신")
)

const (
	ruledGap  = 3  // how many stop words may stand between "without" and a word
	ruledSpan = 15 // bytes after such words in which the word begins, where there are no spaces
)

// A ruling is one of withouts.
type ruling struct {
	words []string // folded
	langs langs
}

// rulings holds withouts by their first words.
var rulings = sync.OnceValue(func() map[string][]ruling {
	m := map[string][]ruling{}
	var s splitter
	for i, l := range languages {
		if withouts[l.code] == "" {
			continue
		}
		for p := range strings.SplitSeq(withouts[l.code], "|") {
			s.split(letters.Compose(p))
			var words []string
			for _, w := range s.words {
				words = append(words, string(s.plain(w)))
			}
			m[words[0]] = append(m[words[0]], ruling{words, 1 << i})
		}
	}
	return m
})

// foldedSet returns the words of a text, folded.
func foldedSet(text string) map[string]bool {
	m := map[string]bool{}
	var s splitter
	s.split(letters.Compose(text))
	for _, w := range s.words {
		m[string(s.plain(w))] = true
	}
	return m
}

var (
	notWords   = sync.OnceValue(func() map[string]bool { return foldedSet(notThese) })
	butsBefore = sync.OnceValue(func() map[string]bool { return foldedSet(butWords) })
	notBefore  = sync.OnceValue(func() map[string]bool { return foldedSet(afterThese) })
)

// ruleOut notes in sc.ruled which words of the query are ruled out, as bytes of
// its text, and lets the words and what they mean count less.
func (r *ranker) ruleOut(sc *scratch) {
	sc.ruled = sc.ruled[:0]
	unspaced, winners := false, sc.ballot.winners()
	for i, w := range sc.split.words {
		if w.script.Unspaced() {
			unspaced = true
		} else if n := sc.withoutAt(i, winners); n > 0 {
			r.ruleAfter(i+n, sc)
		} else if i > 0 && notBefore()[string(sc.plainAt(i))] {
			sc.ruleWord(i - 1)
		}
	}
	if unspaced {
		sc.ruleUnspaced()
	}
	if len(sc.ruled) == 0 {
		return
	}
	share := r.w(kRuledOut)
	for i := range sc.list {
		if sc.isRuledOut(sc.list[i].at) && !sc.list[i].script.Unspaced() {
			sc.list[i].weight *= share
		}
	}
	for i := range sc.matches {
		if sc.isRuledOut(uint32(sc.matches[i].From)) {
			sc.matches[i].Weight *= share
		}
	}
}

func (sc *scratch) plainAt(i int) []byte { return sc.split.plain(sc.split.words[i]) }

// withoutAt returns how many words from i on say that what comes next is ruled
// out; zero: they do not.
func (sc *scratch) withoutAt(i int, winners langs) int {
	words := sc.split.words
	first := sc.plainAt(i)
	longest := 0
	for _, p := range rulings()[string(first)] {
		n := 1
		for n < len(p.words) && i+n < len(words) && string(sc.plainAt(i+n)) == p.words[n] {
			n++
		}
		if n == len(p.words) && (words[i].script != latin || winners&p.langs != 0) {
			longest = max(longest, n)
		}
	}
	if longest == 0 && i > 0 && notWords()[string(first)] {
		before := strings.TrimRight(sc.composed[:words[i].at], " ")
		if strings.HasSuffix(before, ",") || strings.HasSuffix(before, "،") || butsBefore()[string(sc.plainAt(i-1))] {
			return 1
		}
	}
	return longest
}

// ruleAfter rules out the first word that says something from i on, in the same
// clause; of what is not to be done ("without sending mails"), with what.
func (r *ranker) ruleAfter(i int, sc *scratch) {
	words := sc.split.words
	last := -1
	for n := 0; i < len(words) && n <= ruledGap && words[i].clause == words[max(0, i-1)].clause; i++ {
		if stopWords()[string(sc.plainAt(i))] != 0 {
			n++
			continue
		}
		last = i
		if !bytes.HasSuffix(sc.plainAt(i), []byte("ing")) && !r.isAction(words[i], sc) {
			break
		}
	}
	if last >= 0 {
		sc.ruleWord(last)
	}
}

func (sc *scratch) ruleWord(i int) {
	at := sc.split.words[i].at
	to := uint32(len(sc.composed))
	for _, w := range sc.split.words[i:] {
		if w.at > at {
			to = w.at
			break
		}
	}
	sc.ruled = append(sc.ruled, span{at, to})
}

// ruleUnspaced does the same by what the text says, where words are not told apart.
func (sc *scratch) ruleUnspaced() {
	for _, s := range unspacedBefore {
		if i := strings.Index(sc.composed, s); i >= 0 {
			from := uint32(i + len(s))
			sc.ruled = append(sc.ruled, span{from, from + ruledSpan})
		}
	}
	for _, s := range unspacedAfter {
		i := strings.Index(sc.composed, s)
		if i <= 0 {
			continue
		}
		for _, m := range sc.matches { // the word that ends there
			if m.To <= i && m.To+len(" ") >= len(strings.TrimRight(sc.composed[:i], " ")) {
				sc.ruled = append(sc.ruled, span{uint32(m.From), uint32(m.To)})
			}
		}
	}
}

// isRuledOut reports whether what begins at a byte of the query is ruled out.
func (sc *scratch) isRuledOut(at uint32) bool {
	for _, s := range sc.ruled {
		if s.from <= at && at < s.to {
			return true
		}
	}
	return false
}

// shun takes a share of the score from tools that are named after what the
// query rules out, and notes it in sc.named. It returns the greatest score.
func (r *ranker) shun(scores []float32, most float32, sc *scratch) float32 {
	loss := r.w(kShunned)
	if len(sc.ruled) == 0 || loss == 0 {
		return most
	}
	sc.masks = zeroed(sc.masks, r.snap.docs)
	for _, m := range sc.matches {
		if sc.isRuledOut(uint32(m.From)) && r.snap.engine.lex.Kind(m.Concept) != lexicon.Action && !sc.isWanted(m.Concept) {
			r.addNamed(conceptTerm(sc.keep(nil), m.Concept), sc)
		}
	}
	for doc, x := range scores {
		if x < most/faint || sc.masks[doc] == 0 && !sc.isNamedAfterRuled(r.snap.at(doc).Name) {
			continue
		}
		scores[doc] *= 1 - loss
		sc.named[doc] = 1 - (1-sc.named[doc])*(1-loss)
	}
	return r.most(scores)
}

// isWanted reports whether a word stands for the concept that is not ruled out.
func (sc *scratch) isWanted(c lexicon.ID) bool {
	return slices.ContainsFunc(sc.matches, func(m lexicon.Match) bool { return m.Concept == c && !sc.isRuledOut(uint32(m.From)) })
}

// isNamedAfterRuled reports whether a word that the query rules out stands in a name, the module's included.
func (sc *scratch) isNamedAfterRuled(name string) bool {
	name = strings.ToLower(name)
	for _, w := range sc.split.words {
		if (w.kind == whole || w.kind == joined) && !w.script.Unspaced() && sc.isRuledOut(w.at) && strings.Contains(name, string(sc.split.plain(w))) {
			return true
		}
	}
	return false
}
