package lexicon

import (
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"

	"github.com/helve-ai/helve/letters"
)

// A stemmer cuts words down to what their inflected forms share. What it
// learnt it remembers, up to a bound.
type stemmer struct {
	env   *snowballstem.Env
	known map[uint64]stem // by the hash of the word as it is spelt, and the language
	buf   []byte
}

// A stem is what is left of a word.
type stem struct {
	hash   uint64
	weight float32
}

const (
	maxKnown  = 1 << 15
	weightCut = .5 // of stems that are less than half of their word
)

// of returns the stem that a word, of which h is the hash, has in a language;
// the zero stem: none is known.
func (s *stemmer) of(spelt []byte, h uint64, lang int) stem {
	key := join(stemSeed(lang), h)
	if st, ok := s.known[key]; ok {
		return st
	}
	if s.known == nil || len(s.known) == maxKnown {
		s.known = make(map[uint64]stem, 256)
	}
	st := stem{}
	if left := s.cut(spelt, lang); len(left) > 0 {
		st = stem{hash(left), 1}
		if 2*utf8.RuneCount(left) < utf8.RuneCount(spelt) {
			st.weight = weightCut
		}
	}
	s.known[key] = st
	return st
}

// cut returns the folded stem of a word, nil where there is none. The slice
// serves until the next call.
func (s *stemmer) cut(spelt []byte, lang int) []byte {
	if len(spelt) < 3 || len(spelt) > 4*maxWord {
		return nil
	}
	word := string(spelt)
	if Langs(1<<lang) == Arabic {
		word = withoutArticle(word)
	}
	if f := snowball[lang]; f != nil {
		if s.env == nil {
			s.env = snowballstem.NewEnv("")
		}
		s.env.SetCurrent(word)
		f(s.env)
		word = s.env.Current()
	}
	switch Langs(1 << lang) {
	case Polish:
		word = cutPolish(word)
	case Indonesian:
		word = cutIndonesian(word)
	case Turkish:
		word = cutTurkish(word)
	}
	s.buf = appendFoldedWord(s.buf[:0], word)
	return s.buf
}

func appendFoldedWord(dst []byte, word string) []byte {
	script := letters.None
	for _, r := range word {
		s := letters.ScriptOf(r)
		if s == letters.Mark && !letters.KeepsMarks(script) {
			continue
		}
		dst = letters.AppendFolded(dst, r, s)
		script = s
	}
	return dst
}

// cutEnding cuts the longest of the endings, which are in the order of
// falling length, that leaves least runes.
func cutEnding(word string, endings []string, least int) (string, bool) {
	for _, e := range endings {
		if stem, ok := strings.CutSuffix(word, e); ok && utf8.RuneCountInString(stem) >= least {
			return stem, true
		}
	}
	return word, false
}

func fields(s string) []string { return strings.Fields(s) }

// arabicArticles are the article and what is written onto it: and, with, for.
var arabicArticles = fields("ال وبال وال فال بال كال ولل لل")

// withoutArticle cuts an Arabic article off. Snowball's rules take other
// endings from a word that has one, so that المستشفيات and مستشفيات part.
func withoutArticle(word string) string {
	for _, a := range arabicArticles {
		if rest, ok := strings.CutPrefix(word, a); ok && utf8.RuneCountInString(rest) >= 3 {
			return rest
		}
	}
	return word
}

// Endings of Polish nouns, adjectives and verbs.
var polishEndings = fields(`
ościami owaniem owaniu owania owanie
ością ości ość owych owymi owego owemu owała ował ować ując ujesz
aniem aniu ania anie eniem eniu enia enie ących ącymi ącego
iami ami ach iom owi owe owa owy owej ową iego iemu ymi imi ych ich ego emu ej ów om em
ować ywać iwać awać
ajcie ijcie yjcie cie ają amy asz acie emy esz ecie imy isz ymy ysz uję uje ują ił iła iły ał ała ały eć yć ić ać ąć uj aj ij yj
am em ię ia ie iu io ią ii y i e a o u ą ę j`)

func cutPolish(w string) string {
	w, _ = cutEnding(w, polishEndings, 3)
	return w
}

// Indonesian prefixes, with what the root has in their place.
var indonesianPrefixes = []struct{ prefix, root string }{
	{"menge", ""}, {"meng", ""}, {"meny", "s"}, {"mem", ""}, {"men", ""}, {"me", ""},
	{"penge", ""}, {"peng", ""}, {"peny", "s"}, {"pem", ""}, {"pen", ""}, {"per", ""}, {"pe", ""},
	{"ber", ""}, {"ter", ""}, {"di", ""}, {"ke", ""}, {"se", ""},
}

var indonesianSuffixes = fields(`kannya annya inya nya kan lah kah an ku mu i`)

// cutIndonesian takes an affix from either side. The first letter of a root
// that a nasal prefix takes the place of (k, p, t) is taken off all roots.
func cutIndonesian(w string) string {
	w, _ = cutEnding(w, indonesianSuffixes, 4)
	for _, p := range indonesianPrefixes {
		if rest, ok := strings.CutPrefix(w, p.prefix); ok && len(rest) >= 3 {
			w = p.root + rest
			break
		}
	}
	if len(w) > 3 && strings.ContainsRune("kpt", rune(w[0])) && strings.ContainsRune("aeiou", rune(w[1])) {
		w = w[1:]
	}
	return w
}

// Endings of Turkish verbs, and what Snowball's rules for nouns leave.
var turkishEndings = fields(`
ebilir abilir ecek acak iyor ıyor uyor üyor mesi ması mek mak yin yın yun yün iyi in ın un ün ip ıp up üp
ir ır ur ür er ar di dı du dü ti tı tu tü me ma`)

func cutTurkish(w string) string {
	w, _ = cutEnding(w, turkishEndings, 3)
	return w
}

// japaneseRows holds the endings that follow the stem of a Japanese verb, by
// the last kana of its dictionary form.
var japaneseRows = map[string][]string{
	"う": {"い", "わ", "え", "お", "っ"}, "く": {"き", "か", "け", "こ", "い"}, "ぐ": {"ぎ", "が", "げ", "ご", "い"},
	"す": {"し", "さ", "せ", "そ"}, "つ": {"ち", "た", "て", "と", "っ"}, "ぬ": {"に", "な", "ね", "の", "ん"},
	"ぶ": {"び", "ば", "べ", "ぼ", "ん"}, "む": {"み", "ま", "め", "も", "ん"},
	"る": {"り", "ら", "れ", "ろ", "っ", "た", "て", "ま", "な", "よ", "さ"}, "い": {"く", "か", "け", "さ"},
}

// moreForms returns further shapes of an entry that are to be known like it.
func moreForms(text string, lang int, kind Kind) []string {
	var out []string
	switch l := Langs(1 << lang); {
	case imperatives[l] != nil && kind == Action:
		out = imperative(out, text, imperatives[l])
	case l == German:
		out = germanForms(out, text, kind)
	case l == Dutch && kind == Action:
		out = dutchParticiple(out, text)
	case l == Danish && kind == Action:
		out = swapEnding(out, text, "e", "t")
		out = swapEnding(out, text, "e", "et")
	case l == Russian && kind == Action:
		out = swapEnding(out, text, "ить", "ение", "ать", "ание", "ять", "яние")
	case l == Russian: // the vowel that comes and goes: список, списки; папка, папок
		out = swapEnding(out, text, "ок", "ка", "ец", "ца", "ень", "ня", "жка", "жек", "чка", "чек", "шка", "шек", "ка", "ок", "ьмо", "ем", "сло", "сел")
	case l == Polish && kind != Action:
		out = swapEnding(out, text, "iek", "ieki", "ek", "ki", "iec", "ca", "ień", "nia", "ka", "ek")
		out = swapEnding(out, text, "sta", "ście", "st", "ście", "da", "dzie", "ta", "cie", "ka", "ce", "ga", "dze", "ra", "rze", "ła", "le", "r", "rze", "t", "cie", "d", "dzie", "ł", "le")
	case l == Japanese:
		last, size := utf8.DecodeLastRuneInString(text)
		stem := text[:len(text)-size]
		before, _ := utf8.DecodeLastRuneInString(stem)
		if utf8.RuneCountInString(stem) > 1 || letters.ScriptOf(before) == letters.Han {
			for _, e := range japaneseRows[string(last)] {
				out = append(out, stem+e)
			}
		}
	case l == Korean:
		for _, e := range []string{"하다", "되다", "하기", "다"} {
			if stem, ok := strings.CutSuffix(text, e); ok && utf8.RuneCountInString(stem) >= 2 {
				out = append(out, stem)
				break
			}
		}
	case l == Arabic:
		out = swapEnding(out, text, "ة", "ات")
		if stem, ok := strings.CutPrefix(text, "ال"); ok && utf8.RuneCountInString(stem) >= 3 {
			out = append(out, stem)
		}
	}
	return out
}

// imperatives are those of verbs whose stem is another then, so that no stemmer
// knows them: "cierra con llave" is of "cerrar con llave". Single verbs are
// listed in both forms; it is phrases that are not.
var imperatives = func() map[Langs]map[string]string {
	m := map[Langs]map[string]string{}
	for l, pairs := range map[Langs]string{
		Spanish: `cerrar cierra contar cuenta mover mueve volver vuelve devolver devuelve comprobar comprueba recordar recuerda convertir convierte
corregir corrige poner pon forzar fuerza medir mide encontrar encuentra mostrar muestra empezar empieza comenzar comienza pedir pide hacer haz
probar prueba elegir elige encender enciende jugar juega resolver resuelve sugerir sugiere transferir transfiere repetir repite seguir sigue
conseguir consigue colgar cuelga calentar calienta invertir invierte tener ten decir di despertar despierta servir sirve`,
		French: `mettre mets remettre remets transmettre transmets faire fais refaire refais prendre prends apprendre apprends écrire écris
décrire décris inscrire inscris lire lis relire relis rendre rends vendre vends répondre réponds éteindre éteins remplir remplis choisir choisis
convertir convertis réunir réunis dire dis ouvrir ouvre envoyer envoie renvoyer renvoie payer paie essayer essaie appeler appelle jeter jette
acheter achète traduire traduis construire construis suivre suis`,
		Italian: `fare fai rifare rifai dare dai tenere tieni mantenere mantieni togliere togli scegliere scegli raccogliere raccogli
uscire esci aprire apri dire di' rimanere rimani`,
		Portuguese: `fazer faz refazer refaz pôr põe pedir pede ver vê dizer diz trazer traz seguir segue conseguir consegue medir mede
converter converte servir serve repetir repete corrigir corrige sugerir sugere transferir transfere inserir insere`,
	} {
		m[l] = map[string]string{}
		words := strings.Fields(pairs)
		for i := 0; i+1 < len(words); i += 2 {
			m[l][words[i]] = words[i+1]
		}
	}
	return m
}()

// imperative appends a phrase that begins with an infinitive as an order.
func imperative(out []string, text string, irregular map[string]string) []string {
	verb, rest, ok := strings.Cut(text, " ")
	if order := irregular[verb]; ok && order != "" {
		out = append(out, order+" "+rest)
	}
	return out
}

// germanForms adds nouns of verbs, infinitives with zu, and the spelling
// without dots that keyboards of other countries leave.
func germanForms(out []string, text string, kind Kind) []string {
	if kind == Action {
		out = swapEnding(out, text, "eln", "lung", "ern", "erung", "en", "ung")
		if zu, ok := withZu(text); ok {
			out = append(out, zu)
		} else {
			out = germanParticiple(out, text)
		}
	}
	if plain := withoutDots.Replace(text); plain != text {
		out = append(out, plain)
	}
	return out
}

// germanParticiple adds the participle of a verb that is regular: bezahlt, gesucht.
func germanParticiple(out []string, text string) []string {
	stem, ok := strings.CutSuffix(text, "en")
	if !ok || len(stem) < 4 || strings.Contains(text, " ") {
		return out
	}
	if last := stem[len(stem)-1]; last == 't' || last == 'd' {
		stem += "e"
	}
	for _, p := range []string{"be", "ver", "ent", "er", "zer", "ge"} {
		if strings.HasPrefix(stem, p) {
			return append(out, stem+"t")
		}
	}
	return append(out, "ge"+stem+"t", stem+"t")
}

// dutchParticiple adds the participle of a verb that is regular: betaald, gemaakt.
func dutchParticiple(out []string, text string) []string {
	stem, ok := strings.CutSuffix(text, "en")
	if n := len(stem); !ok || n < 3 || strings.Contains(text, " ") {
		return out
	} else if isVowel(stem[n-2]) && !isVowel(stem[n-1]) && !isVowel(stem[n-3]) {
		stem = stem[:n-1] + stem[n-2:] // betal, betaal
	} else if stem[n-1] == stem[n-2] {
		stem = stem[:n-1]
	}
	ending := "d"
	if strings.ContainsRune("tkfschp", rune(stem[len(stem)-1])) {
		ending = "t"
	}
	for _, p := range []string{"be", "ver", "ont", "er", "her", "ge"} {
		if strings.HasPrefix(stem, p) {
			return append(out, stem+ending)
		}
	}
	return append(out, "ge"+stem+ending)
}

func isVowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }

var withoutDots = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue")

// swapEnding appends text with its ending, one of the even ones of pairs, in
// place of which the odd one is put. In phrases it is the first word that
// changes, of which the others say more.
func swapEnding(out []string, text string, pairs ...string) []string {
	word, rest := text, ""
	if i := strings.IndexByte(text, ' '); i > 0 {
		word, rest = text[:i], text[i:]
	}
	for i := 0; i < len(pairs); i += 2 {
		stem, ok := strings.CutSuffix(word, pairs[i])
		if ok && utf8.RuneCountInString(stem) >= 3 {
			return append(out, stem+pairs[i+1]+rest)
		}
	}
	return out
}
