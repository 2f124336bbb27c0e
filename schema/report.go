package schema

import (
	"cmp"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	failure "github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// reporter turns the library's errors into sentences.
type reporter struct {
	t       *tree // the schema, nil where it is not ours
	doc     *value
	secrets map[string]bool // pointers of what no message may repeat
	left    int
}

// finding is a problem with what its order among others depends on.
type finding struct {
	Problem
	path []string
}

// maxFindings bounds how much of a large tree of errors is read.
const maxFindings = 1000

func problemsOf(err *jsonschema.ValidationError, t *tree, doc *value) []Problem {
	r := &reporter{t: t, doc: doc, left: maxFindings}
	r.findSecrets()
	found := r.read(err)
	slices.SortStableFunc(found, r.compare)
	var out []Problem
	for _, f := range found {
		if !slices.Contains(out, f.Problem) && len(out) < maxProblems {
			out = append(out, f.Problem)
		}
	}
	return out
}

func (r *reporter) findSecrets() {
	if r.t == nil || !r.t.roles {
		return
	}
	c := collector{t: r.t, seen: map[visit]bool{}}
	if err := c.collect(r.t.root, r.doc, nil); err != nil {
		r.secrets = map[string]bool{"": true}
	}
	for _, v := range c.out {
		if v.Role == Secret {
			if r.secrets == nil {
				r.secrets = map[string]bool{}
			}
			r.secrets[v.Pointer] = true
		}
	}
}

// compare puts what is nearer to the root first, there what is missing, then
// what is unknown, then the rest as it stands in the document.
func (r *reporter) compare(a, b finding) int {
	return cmp.Or(
		cmp.Compare(len(a.path), len(b.path)),
		cmp.Compare(urgency(a.Keyword), urgency(b.Keyword)),
		cmp.Compare(r.place(a.path), r.place(b.path)),
		cmp.Compare(a.Pointer, b.Pointer),
		cmp.Compare(a.Message, b.Message),
	)
}

func urgency(keyword string) int {
	switch keyword {
	case "required":
		return 0
	case "additionalProperties", "unevaluatedProperties":
		return 1
	}
	return 2
}

func (r *reporter) place(path []string) int {
	if v := r.doc.at(path); v != nil {
		return v.start
	}
	return -1
}

// read gives the findings of an error and of what caused it.
func (r *reporter) read(err *jsonschema.ValidationError) []finding {
	if r.left <= 0 {
		return nil
	}
	switch k := err.ErrorKind.(type) {
	case *failure.AnyOf:
		return r.union(err, "anyOf")
	case *failure.OneOf:
		if len(k.Subschemas) == 0 {
			return r.union(err, "oneOf")
		}
	case *failure.Contains, *failure.MinContains, *failure.PropertyNames:
		return r.leaf(err)
	}
	if len(err.Causes) == 0 {
		return r.leaf(err)
	}
	var out []finding
	for _, c := range err.Causes {
		out = append(out, r.read(c)...)
	}
	return out
}

// union reports the branch that came closest. If none wants this kind of value
// it says what kinds are wanted.
func (r *reporter) union(err *jsonschema.ValidationError, keyword string) []finding {
	path := err.InstanceLocation
	var best []finding
	bestScore := [3]int{3}
	var wanted []string
	allKind, allChoice := true, true
	for _, c := range err.Causes {
		found := r.read(c)
		if len(found) == 0 {
			continue
		}
		score := closeness(found, path)
		allKind = allKind && score[0] == 2
		allChoice = allChoice && score[0] == 1 && len(found) == 1
		if e := found[0].Expected; !slices.Contains(wanted, e) {
			wanted = append(wanted, e)
		}
		if best == nil || slices.Compare(score[:], bestScore[:]) < 0 {
			best, bestScore = found, score
		}
	}
	if len(wanted) > 1 && (allKind || allChoice) {
		want := strings.Join(wanted, " or ")
		f := r.finding(path, keyword, "is %s, where %s is wanted", r.show(path), want)
		f.Expected = want
		return []finding{f}
	}
	if best == nil {
		return r.leaf(err)
	}
	return best
}

// closeness scores a branch, less is closer: whether the value is of another
// kind, how many of its parts are of another kind or name another branch, and
// how much is wrong.
func closeness(found []finding, path []string) [3]int {
	var s [3]int
	for _, f := range found {
		switch f.Keyword {
		case "type":
			if len(f.path) == len(path) {
				s[0] = 2
			}
			s[1]++
		case "const", "enum":
			if len(f.path) == len(path) {
				s[0] = max(s[0], 1)
			}
			s[1] += 2
		}
	}
	s[2] = len(found)
	return s
}

func (r *reporter) finding(path []string, keyword, format string, args ...any) finding {
	r.left--
	return finding{Problem{Pointer: pointer(path), Message: fmt.Sprintf(format, args...), Keyword: keyword}, path}
}

// show is the value at path as a message repeats it.
func (r *reporter) show(path []string) string {
	v := r.doc.at(path)
	switch {
	case v == nil:
		return "something"
	case r.secrets[pointer(path)] || r.secrets[""]:
		return article(v.kind.String())
	case v.kind == kObject || v.kind == kArray:
		return article(v.kind.String())
	case v.kind == kString:
		return shorten(quote(v.plain()))
	}
	return shorten(v.text())
}

// article makes of a type's name what a sentence needs.
func article(name string) string {
	switch name {
	case "null":
		return name
	case "integer", "array", "object":
		return "an " + name
	}
	return "a " + name
}

// schemaAt finds the schema in which err's keyword stands, nil if it is not in
// this text.
func (r *reporter) schemaAt(err *jsonschema.ValidationError) *value {
	if r.t == nil {
		return nil
	}
	base, frag, _ := strings.Cut(err.SchemaURL, "#")
	if base != rootURL {
		return r.t.lookup(nil, err.SchemaURL)
	}
	if frag, bad := url.PathUnescape(frag); bad == nil && (frag == "" || frag[0] == '/') {
		return r.t.root.at(pointerTokens(frag))
	}
	return nil
}

// leaf says what one error without causes means.
func (r *reporter) leaf(err *jsonschema.ValidationError) []finding {
	path := slices.Clone(err.InstanceLocation)
	keyword := ""
	if k := err.ErrorKind.KeywordPath(); len(k) > 0 {
		keyword = k[0]
	}
	switch k := err.ErrorKind.(type) {
	case *failure.Required:
		return r.missing(path, k.Missing)
	case *failure.AdditionalProperties:
		return r.unknown(err, path, keyword, k.Properties)
	case *failure.FalseSchema:
		if parent, ok := strings.CutSuffix(err.SchemaURL, "/unevaluatedProperties"); ok && len(path) > 0 {
			err.SchemaURL = parent
			return r.unknown(err, path[:len(path)-1], "unevaluatedProperties", path[len(path)-1:])
		}
	}
	said, expected := r.sentence(err, path)
	f := r.finding(path, keyword, "%s", said)
	f.Expected = expected
	return []finding{f}
}

// maxSuggest bounds the names that are compared for a suggestion.
const maxSuggest = 500

func (r *reporter) missing(path, names []string) []finding {
	var out []finding
	for _, name := range names[:min(len(names), maxProblems)] {
		f := r.finding(path, "required", "lacks the required property %q", name)
		f.Expected = "property " + string(quote(name))
		out = append(out, f)
	}
	return out
}

// unknown reports properties that the schema does not have. Those that are
// declared and not given are what may have been meant.
func (r *reporter) unknown(err *jsonschema.ValidationError, path []string, keyword string, names []string) []finding {
	var declared []string
	if sch := r.schemaAt(err); sch != nil {
		for _, name := range r.t.propertyNames(sch, 0) {
			if len(declared) < maxSuggest && r.doc.at(path).member(name) == nil {
				declared = append(declared, name)
			}
		}
	}
	slices.Sort(names)
	var out []finding
	for i, name := range names {
		if i == maxProblems {
			break
		}
		f := r.finding(append(slices.Clone(path), name), keyword, "unknown property %q%s", name, didYouMean(name, declared))
		if near := Closest(name, declared, 1); len(near) == 1 {
			f.Expected = "property " + string(quote(near[0]))
		} else if len(declared) > 0 && len(declared) <= 12 {
			f.Expected = "one of the properties " + strings.Join(declared, ", ")
		}
		out = append(out, f)
	}
	return out
}

// sentence says what is wrong with the value at path, and what is wanted.
func (r *reporter) sentence(err *jsonschema.ValidationError, path []string) (said, expected string) {
	got := r.show(path)
	switch k := err.ErrorKind.(type) {
	case *failure.Type:
		want := make([]string, len(k.Want))
		for i, w := range k.Want {
			want[i] = article(w)
		}
		if k.Got == "string" && !strings.HasPrefix(got, "a ") {
			got = "the string " + got
		}
		return fmt.Sprintf("is %s, where %s is wanted", got, strings.Join(want, " or ")), strings.Join(k.Want, " or ")
	case *failure.Enum:
		return choice(k, got)
	case *failure.Const:
		want := jsonText(k.Want)
		return fmt.Sprintf("is %s, where only %s is allowed", got, want), want
	case *failure.Pattern:
		return fmt.Sprintf("is %s, which does not match the pattern %s", got, k.Want), "text that matches " + k.Want
	case *failure.Format:
		return fmt.Sprintf("is %s, which is not a valid %s", got, k.Want), k.Want
	case *failure.Not:
		return "is what the schema excludes (not)", ""
	case *failure.FalseSchema:
		return "is not allowed here", "nothing"
	case *failure.OneOf:
		if len(k.Subschemas) == 2 {
			return fmt.Sprintf("matches both alternative %d and alternative %d, where exactly one must match", k.Subschemas[0]+1, k.Subschemas[1]+1), "exactly one alternative"
		}
		return "matches none of the alternatives", ""
	case *failure.RefCycle:
		return "cannot be checked: the schema refers to itself without end", ""
	}
	if said, expected = amount(err.ErrorKind, got); said != "" {
		return said, expected
	}
	return structure(err)
}

func choice(k *failure.Enum, got string) (said, expected string) {
	var names, texts []string
	for _, w := range k.Want {
		texts = append(texts, jsonText(w))
		if s, ok := w.(string); ok && len(names) < maxSuggest {
			names = append(names, s)
		}
	}
	if len(texts) <= 12 {
		expected = "one of " + strings.Join(texts, ", ")
	} else {
		expected = fmt.Sprintf("one of %s and %d more", strings.Join(texts[:10], ", "), len(texts)-10)
	}
	said = fmt.Sprintf("is %s, which is none of the allowed values", got)
	if s, ok := k.Got.(string); ok {
		said += didYouMean(s, names)
	}
	return said, expected
}

// amount says what is too little or too much.
func amount(k jsonschema.ErrorKind, got string) (said, expected string) {
	switch k := k.(type) {
	case *failure.Minimum:
		return fmt.Sprintf("is %s, which is less than the minimum of %s", got, decimal(k.Want)), "at least " + decimal(k.Want)
	case *failure.Maximum:
		return fmt.Sprintf("is %s, which is more than the maximum of %s", got, decimal(k.Want)), "at most " + decimal(k.Want)
	case *failure.ExclusiveMinimum:
		return fmt.Sprintf("is %s, which is not more than %s", got, decimal(k.Want)), "more than " + decimal(k.Want)
	case *failure.ExclusiveMaximum:
		return fmt.Sprintf("is %s, which is not less than %s", got, decimal(k.Want)), "less than " + decimal(k.Want)
	case *failure.MultipleOf:
		return fmt.Sprintf("is %s, which is not a multiple of %s", got, decimal(k.Want)), "a multiple of " + decimal(k.Want)
	case *failure.MinLength:
		return few("is", "long", k.Got, k.Want, "character")
	case *failure.MaxLength:
		return many("is", "long", k.Got, k.Want, "character")
	case *failure.MinItems:
		return few("has", "", k.Got, k.Want, "element")
	case *failure.MaxItems:
		return many("has", "", k.Got, k.Want, "element")
	case *failure.MinProperties:
		return few("has", "", k.Got, k.Want, "property")
	case *failure.MaxProperties:
		return many("has", "", k.Got, k.Want, "property")
	}
	return "", ""
}

func few(verb, after string, got, want int, unit string) (string, string) {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, counted(got, unit), after)) + fmt.Sprintf(", the minimum is %d", want), "at least " + counted(want, unit)
}

func many(verb, after string, got, want int, unit string) (string, string) {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, counted(got, unit), after)) + fmt.Sprintf(", the maximum is %d", want), "at most " + counted(want, unit)
}

func counted(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	if strings.HasSuffix(unit, "y") {
		return fmt.Sprintf("%d %sies", n, unit[:len(unit)-1])
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// structure says what is wrong with how a value is put together.
func structure(err *jsonschema.ValidationError) (said, expected string) {
	switch k := err.ErrorKind.(type) {
	case *failure.UniqueItems:
		return fmt.Sprintf("repeats itself: the elements %d and %d are equal", k.Duplicates[0], k.Duplicates[1]), "no element twice"
	case *failure.AdditionalItems:
		return fmt.Sprintf("has %s too many", counted(k.Count, "element")), ""
	case *failure.Contains:
		return "has no element of the kind that must be there (contains)", ""
	case *failure.MinContains:
		return fmt.Sprintf("has %d elements of the kind that must be there at least %d times", len(k.Got), k.Want), ""
	case *failure.MaxContains:
		return fmt.Sprintf("has %d elements of the kind that may be there at most %d times", len(k.Got), k.Want), ""
	case *failure.PropertyNames:
		said = fmt.Sprintf("has a property named %q, which is not an allowed name", k.Property)
		return said, ""
	case *failure.Dependency:
		return depends(k.Prop, k.Missing)
	case *failure.DependentRequired:
		return depends(k.Prop, k.Missing)
	case *failure.InvalidJsonValue:
		return "is not a JSON value", "JSON"
	}
	return "is not valid: " + err.ErrorKind.LocalizedString(printer), ""
}

func depends(prop string, missing []string) (said, expected string) {
	for i, m := range missing {
		missing[i] = string(quote(m))
	}
	list := strings.Join(missing, ", ")
	return fmt.Sprintf("lacks %s, which must be there where %q is", list, prop), "property " + list
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return fmt.Sprint(f)
}

// jsonText writes a decoded value for a message.
func jsonText(v any) string {
	if s, ok := v.(string); ok {
		return shorten(quote(s))
	}
	text, err := marshal(v)
	if err != nil {
		return "a value"
	}
	return shorten(text)
}
