package lexicon

// A form is a word that another may be an inflection of.
type form struct {
	hash   uint64
	weight float32
}

// What derivations weigh, whose meaning may differ from that of the verb.
const (
	weightInflected = .9
	weightDerived   = .6
)

// englishForms appends what an English word may be an inflection of, likely
// ones first. A stemmer will not do here: definitions of tools are full of
// customers who customise nothing, and units that do not unite.
func englishForms(dst []form, w []byte) []form {
	n := len(w)
	add := func(cut int, more string, weight float32) {
		if n-cut+len(more) >= 3 {
			dst = append(dst, form{hashWith(w[:n-cut], more), weight})
		}
	}
	stem := func(cut int, weight float32) { // as it is, with its e, without a doubled letter
		add(cut, "e", weight)
		add(cut, "", weight)
		if k := n - cut; k >= 3 && w[k-1] == w[k-2] {
			add(cut+1, "", weight)
		}
	}
	switch {
	case n < 4:
	case ends(w, "ies"):
		add(3, "y", weightInflected)
		add(1, "", weightInflected)
	case ends(w, "ied"):
		add(3, "y", weightInflected)
		add(1, "", weightInflected)
	case ends(w, "ss"), ends(w, "us"), ends(w, "is"):
	case ends(w, "s"):
		add(1, "", weightInflected)
		if ends(w, "es") {
			add(2, "", weightInflected)
		}
	case ends(w, "ed") && n > 4:
		stem(2, weightInflected)
	case ends(w, "ing") && n > 5:
		stem(3, weightInflected)
	case ends(w, "ization") && n > 8:
		add(5, "e", weightDerived)
	case ends(w, "ation") && n > 8:
		add(5, "ate", weightDerived)
		add(5, "e", weightDerived)
	case ends(w, "tion") && n > 7:
		add(3, "e", weightDerived)
		add(3, "", weightDerived)
	case (ends(w, "er") || ends(w, "or")) && n > 6:
		stem(2, weightDerived)
	}
	return dst
}

func ends(w []byte, s string) bool { return len(w) >= len(s) && string(w[len(w)-len(s):]) == s }

// hashWith is the hash of a and b together.
func hashWith(a []byte, b string) uint64 {
	h := uint64(fnvOffset)
	for _, c := range a {
		h = (h ^ uint64(c)) * fnvPrime
	}
	for i := range len(b) {
		h = (h ^ uint64(b[i])) * fnvPrime
	}
	return mix(h)
}
