package lexicon

// formsOf returns what an atom may be an inflection of in a language, beyond
// what the stemmer of the language tells. The slice serves until the next call.
func (m *matcher) formsOf(a *atom, lang int) []form {
	m.forms = m.forms[:0]
	word := m.z.folding(a)
	switch Langs(1 << lang) {
	case English:
		m.forms = englishForms(m.forms, word)
	case Spanish:
		m.forms = encliticForms(m.forms, word, spanishPronouns)
	case Italian:
		m.forms = encliticForms(m.forms, word, italianPronouns)
	case Turkish:
		m.forms = turkishForms(m.forms, word)
	}
	return m.forms
}

// Pronouns that are written as part of an imperative before them: envíame, mandami.
var (
	spanishPronouns = fields("melos melas selos selas melo mela selo sela nos los las les me te se lo la le")
	italianPronouns = fields("melo mela meli mele telo tela celo cela glielo gliela glieli gliele mi ti ci vi si lo la li le gli ne")
)

const weightEnclitic = .85

func encliticForms(dst []form, w []byte, pronouns []string) []form {
	for _, p := range pronouns {
		if len(w) >= len(p)+4 && ends(w, p) {
			dst = append(dst, form{hash(w[:len(w)-len(p)]), weightEnclitic})
		}
	}
	return dst
}

// turkishSuffixes are folded, in the order of falling length. Several may
// follow each other.
var turkishSuffixes = fields(`
misiniz musunuz ebilir abilir iyorum uyorum yorum misin musun
lerin larin inden undan ndaki ndeki nden ndan arak erek ecek acak acag eceg imiz umuz iniz unuz mesi masi meyi mayi
ler lar lik luk lig lug siz suz nda nde den dan ten tan nin nun sin sun sini daki deki taki teki iyor uyor yor mek mak
mis mus tir dir dur tur ken
si su in un im um da de ta te na ne ni nu ya ye yi yu la le ca ce ci cu li lu ki me ma ir ur er ar di du ti tu se sa ip up il ul is us
i u a e n m`)

const (
	weightSuffixed      = .85
	weightSuffixedShort = .6 // three letters are left
	maxSuffixes         = 4
)

// turkishForms appends what is left of a word when a chain of suffixes is taken
// off, the longest first.
func turkishForms(dst []form, w []byte) []form {
	for cut := len(w) - 1; cut >= 3; cut-- {
		if !suffixChain(w[cut:], maxSuffixes) {
			continue
		}
		weight := float32(weightSuffixed)
		if cut == 3 {
			weight = weightSuffixedShort
		}
		dst = append(dst, form{hash(w[:cut]), weight})
	}
	return dst
}

// suffixChain reports whether w consists of at most n suffixes.
func suffixChain(w []byte, n int) bool {
	if len(w) == 0 {
		return true
	}
	if n == 0 {
		return false
	}
	for _, s := range turkishSuffixes {
		if len(w) >= len(s) && string(w[:len(s)]) == s && suffixChain(w[len(s):], n-1) {
			return true
		}
	}
	return false
}
