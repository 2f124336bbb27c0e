package schema

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"unicode"
)

// candidate is one way to read a value.
type candidate struct {
	text  []byte
	how   string
	notes []string // of what changed inside
	wrap  bool
}

// convert reads v as one of the kinds that are allowed and that it is not: the
// only way there is, or the only one that is valid then.
func (co *coercer) convert(w *view, schs []*value, v *value, at string) ([]byte, bool) {
	if v.kind == kNull || v.kind != kString && w.role.strict() {
		return v.text(), false
	}
	var ways []candidate
	for k := kNull; k <= kObject; k++ {
		if w.allows(k) {
			ways = append(ways, co.ways(w, schs, v, k, at)...)
		}
	}
	ways = unwrapped(ways)
	if len(ways) > 1 {
		ways = slices.DeleteFunc(ways, func(c candidate) bool { return !co.validAll(schs, reparse(c.text)) })
	}
	if len(ways) != 1 {
		return v.text(), false
	}
	co.note(at, w.role, v.text(), brief(ways[0].text), ways[0].how)
	co.notes = append(co.notes, ways[0].notes...)
	return ways[0].text, true
}

// brief is what a note repeats of a text: scalars only.
func brief(text []byte) []byte {
	if text[0] == '{' || text[0] == '[' {
		return nil
	}
	return text
}

// unwrapped prefers what does not make a list of a lone value.
func unwrapped(ways []candidate) []candidate {
	if slices.ContainsFunc(ways, func(c candidate) bool { return !c.wrap }) {
		return slices.DeleteFunc(ways, func(c candidate) bool { return c.wrap })
	}
	return ways
}

// ways gives the candidates, none or one, for v as a k.
func (co *coercer) ways(w *view, schs []*value, v *value, k kind, at string) []candidate {
	said, isText := v.str()
	said = strings.TrimSpace(said)
	switch {
	case k == kNull && isText && said == "null" && w.only(kNull):
		return []candidate{{text: []byte("null"), how: "read as"}}
	case k == kNumber && isText:
		if num := numeric(said, w.integer); num != nil {
			return []candidate{{text: num, how: "read as the number"}}
		}
	case k == kBool:
		if word := truth(v, said); word != "" {
			return []candidate{{text: []byte(word), how: "read as"}}
		}
	case k == kString && (v.kind == kNumber || v.kind == kBool):
		return []candidate{{text: quote(string(v.text())), how: "read as the text"}}
	case k == kObject && isText:
		return co.spelt(w, schs, v, kObject, at)
	case k == kArray:
		if looksLike(v, '[') {
			return co.spelt(w, schs, v, kArray, at)
		}
		return co.lone(w, schs, v, at)
	}
	return nil
}

// numeric gives the number that a text spells in JSON's own syntax, nil if it
// does not. A whole number is written without fraction and exponent.
func numeric(said string, integer bool) []byte {
	tok := []byte(said)
	end, ok := scanNumber(tok, 0)
	if !ok || end != len(tok) || !sane(tok) {
		return nil
	}
	if !integer || !bytes.ContainsAny(tok, ".eE") {
		return tok
	}
	rat, ok := new(big.Rat).SetString(said)
	if !ok || !rat.IsInt() {
		return nil
	}
	return []byte(rat.Num().String())
}

// truth gives the boolean that v says, "" if it says none.
func truth(v *value, said string) string {
	switch v.kind {
	case kNumber:
		said = string(v.text())
		if said != "1" && said != "0" {
			return ""
		}
	case kString:
	default:
		return ""
	}
	switch fold(said) {
	case "true", "yes", "1":
		return "true"
	case "false", "no", "0":
		return "false"
	}
	return ""
}

// spelt reads a text as the JSON that it holds, if that is a k.
func (co *coercer) spelt(w *view, schs []*value, v *value, k kind, at string) []candidate {
	said, _ := v.str()
	inner, dups, err := parse([]byte(said), maxDocDepth)
	if err != nil || len(dups) > 0 || inner.kind != k {
		return nil
	}
	co.mark(schs, inner)
	text, notes := co.inside(w, inner, at)
	return []candidate{{text: text, notes: notes, how: "read as the " + k.String() + " it spells"}}
}

// lone reads v as a list of one, if that one is valid or can be made so.
func (co *coercer) lone(w *view, schs []*value, v *value, at string) []candidate {
	if said, ok := v.str(); ok && strings.TrimSpace(said) == "" {
		return nil
	}
	list := reparse(slices.Concat([]byte("["), v.text(), []byte("]")))
	co.mark(schs, list)
	text, notes := co.inside(w, list, at)
	list = reparse(text)
	if schs := w.element(0); !co.validAll(schs, list.kids[0]) {
		return nil
	}
	return []candidate{{text: text, notes: notes, wrap: true, how: "read as a list of one"}}
}

// inside coerces a value of the right kind, and gives its notes apart.
func (co *coercer) inside(w *view, v *value, at string) ([]byte, []string) {
	trial := *co
	trial.notes = nil
	text, _ := trial.shapeInside(w, v, at)
	co.steps = trial.steps
	return text, trial.notes
}

func (co *coercer) shapeInside(w *view, v *value, at string) ([]byte, bool) {
	if v.kind == kObject {
		return co.object(w, v, at)
	}
	return co.array(w, v, at)
}

// renames finds the unknown keys of v that mean a required one that is
// missing: each must be close to that one only, and that one to it only.
func (co *coercer) renames(w *view, v *value) map[string]string {
	var missing, unknown []string
	for _, name := range w.allRequired() {
		if v.member(name) == nil && !slices.Contains(missing, name) && len(missing) < maxUnknown {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for _, kid := range v.kids {
		if !w.knows(kid.key) && len(unknown) < maxUnknown {
			unknown = append(unknown, kid.key)
		}
	}
	out := map[string]string{}
	for _, key := range unknown {
		to := onlyClose(key, missing)
		if to == "" || onlyClose(to, unknown) != key || co.strictMember(w, to) && v.member(key).kind != kString {
			continue
		}
		out[key] = to
	}
	return out
}

// maxUnknown bounds the comparing of names.
const maxUnknown = 32

// knows reports whether the schema speaks of a member by name or pattern.
func (w *view) knows(name string) bool {
	for _, p := range w.parts {
		var schs []*value
		if p.member("properties").member(name) != nil || w.patterned(p, name, &schs) {
			return true
		}
	}
	return slices.Contains(w.allRequired(), name)
}

// strictMember reports whether any branch gives the member a strict role.
func (co *coercer) strictMember(w *view, name string) bool {
	for _, union := range w.unions {
		for _, branch := range union {
			if co.strictIn(branch, name) {
				return true
			}
		}
	}
	schs, _ := w.member(name)
	return co.c.tree.view(co.lib.draft, schs, "").role.strict()
}

func (co *coercer) strictIn(branch *value, name string) bool {
	w := co.c.tree.view(co.lib.draft, []*value{branch}, "")
	schs, _ := w.member(name)
	return co.c.tree.view(co.lib.draft, schs, "").role.strict()
}

// onlyClose gives the one name that is surely the same word, "" if none or
// several are.
func onlyClose(name string, among []string) string {
	found := ""
	for _, other := range among {
		if !sameWord(name, other) {
			continue
		}
		if found != "" {
			return ""
		}
		found = other
	}
	return found
}

// sameWord reports whether two names differ in case, separators or a slip of
// the hand only. Digits must agree: path1 is not path2.
func sameWord(a, b string) bool {
	if len(a) > maxNameLen || len(b) > maxNameLen {
		return false
	}
	a, b = squeeze(a), squeeze(b)
	if a == b {
		return a != ""
	}
	if digits(a) != digits(b) {
		return false
	}
	x, y := []rune(a), []rune(b)
	slips := 0
	switch n := min(len(x), len(y)); {
	case n >= 8:
		slips = 2
	case n >= 4:
		slips = 1
	}
	return distance(x, y) <= slips
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}
