package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// tree is a schema's text, read: every place where a schema stands is known.
type tree struct {
	root  *value
	opts  Options
	draft int // 0: to be found by trying
	roles bool
	subs  int
	local bool              // no $id but at the root, no dynamic references
	named map[string]*value // by "#anchor", and by $id
	owner map[*value]*value // the embedded resource that a schema is part of, if any
	// unread are the objects that hold a patternProperties whose pattern cannot
	// be read, as paths.
	unread [][]string
	// knotty says that a value may be looked at very often: references go in
	// circles, or branches multiply.
	knotty   bool
	patterns sync.Map // of what matches compiled
}

func newTree(raw []byte, o Options) (*tree, error) {
	root, dups, err := parse(raw, maxSchemaDepth)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if len(dups) > 0 {
		return nil, fmt.Errorf("schema: %s: the key stands there twice", dups[0])
	}
	t := &tree{root: root, opts: o, local: true, named: map[string]*value{}, owner: map[*value]*value{}}
	if t.draft = draftOf(root); t.draft == 0 {
		t.draft = o.Draft
	}
	if err := t.survey(root, root, nil); err != nil {
		return t, err
	}
	t.knotty = t.spread(root, map[*value]int{}) >= maxRuleCost
	return t, nil
}

// spread counts the paths through the schemas below v, a circle as too many.
func (t *tree) spread(v *value, known map[*value]int) int {
	if v == nil || v.kind != kObject {
		return 1
	}
	if n, ok := known[v]; ok {
		return n
	}
	known[v] = maxRuleCost // until it is known, which is never in a circle
	n := 1
	for _, k := range refKeywords {
		if ref, ok := v.member(k).str(); ok {
			n = min(n+t.spread(t.lookup(v, ref), known), maxRuleCost)
		}
	}
	eachSub(v, func(keyword, _ string, sub *value) {
		if keyword != "$defs" && keyword != "definitions" {
			n = min(n+t.spread(sub, known), maxRuleCost)
		}
	})
	known[v] = n
	return n
}

// draftOf reads $schema; 0 stands for none or one that is not known.
func draftOf(root *value) int {
	uri, _ := root.member("$schema").str()
	uri = strings.TrimSuffix(uri, "#")
	uri = strings.TrimPrefix(strings.TrimPrefix(uri, "https://"), "http://")
	switch uri {
	case "json-schema.org/draft-04/schema":
		return 4
	case "json-schema.org/draft-06/schema":
		return 6
	case "json-schema.org/draft-07/schema":
		return 7
	case "json-schema.org/draft/2019-09/schema":
		return 2019
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/schema":
		return 2020
	}
	return 0
}

// survey visits every schema below v once.
func (t *tree) survey(v, owner *value, path []string) error {
	if t.subs++; t.subs > maxSubschemas {
		return fmt.Errorf("schema: holds more than %d schemas", maxSubschemas)
	}
	if err := t.checkRole(v, path); err != nil {
		return err
	}
	if t.name(v, len(path) == 0) {
		owner = v
	}
	if owner != t.root {
		t.owner[v] = owner
	}
	if pp := v.member("patternProperties"); pp != nil {
		for _, kid := range pp.kids {
			if _, err := readPattern(kid.key); err != nil {
				t.unread = append(t.unread, append(slices.Clone(path), kid.key))
			}
		}
	}
	var err error
	eachSub(v, func(keyword, key string, sub *value) {
		if err != nil {
			return
		}
		p := append(path, keyword)
		if key != "" || keyed(keyword) {
			p = append(p, key)
		}
		err = t.survey(sub, owner, p)
	})
	return err
}

func (t *tree) checkRole(v *value, path []string) error {
	r := v.member(roleKeyword)
	if r == nil {
		return nil
	}
	t.roles = true
	text, isString := r.str()
	if isString && Role(text).Known() {
		return nil
	}
	msg := "schema: " + pointer(append(path, roleKeyword)) + ": "
	if !isString {
		return fmt.Errorf("%sis not a string but %s", msg, r.text())
	}
	return fmt.Errorf("%sthere is no role %q%s", msg, text, didYouMean(text, roleNames()))
}

// name notes the names that v gives itself, and reports whether it is a
// resource of its own.
func (t *tree) name(v *value, isRoot bool) (resource bool) {
	for _, k := range []string{"$anchor", "$dynamicAnchor"} {
		if a, ok := v.member(k).str(); ok {
			t.named["#"+a] = v
		}
	}
	for _, k := range []string{"$id", "id"} {
		if id, ok := v.member(k).str(); ok {
			t.named[id], t.named[t.resolve(id)] = v, v
			t.local = t.local && isRoot
			resource = resource || !strings.HasPrefix(id, "#") && (k == "$id" || t.draft == 4)
		}
	}
	for _, k := range refKeywords[1:] {
		if v.member(k) != nil {
			t.local = false
		}
	}
	return resource
}

// The keywords under which schemas stand: alone, in a list, in a map.
var (
	subOne  = []string{"additionalProperties", "additionalItems", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	subList = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	subMap  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// subShape gives for each of them how: alone (1), in a list (2), in a map (4).
var subShape = func() map[string]uint8 {
	m := map[string]uint8{}
	for bit, names := range [][]string{subOne, subList, subMap} {
		for _, n := range names {
			m[n] |= 1 << bit
		}
	}
	return m
}()

func keyed(keyword string) bool { return subShape[keyword]&4 != 0 }

func isSchema(v *value) bool { return v.kind == kObject || v.kind == kBool }

// eachSub calls visit for every schema that stands directly in v: the keyword
// and, where the keyword holds several, the index or name.
func eachSub(v *value, visit func(keyword, key string, sub *value)) {
	if v.kind != kObject {
		return
	}
	for _, kid := range v.kids {
		shape := subShape[kid.key]
		switch {
		case shape == 0:
		case shape&1 != 0 && isSchema(kid):
			visit(kid.key, "", kid)
		case shape&2 != 0 && kid.kind == kArray:
			for i, sub := range kid.kids {
				if isSchema(sub) {
					visit(kid.key, fmt.Sprint(i), sub)
				}
			}
		case shape&4 != 0 && kid.kind == kObject:
			for _, sub := range kid.kids {
				if isSchema(sub) {
					visit(kid.key, sub.key, sub)
				}
			}
		}
	}
}

// maxRefs bounds chains of references that lead nowhere.
const maxRefs = 32

// ref gives the schema that v's $ref names, or nil.
func (t *tree) ref(v *value) *value {
	for _, k := range refKeywords {
		if ref, ok := v.member(k).str(); ok {
			return t.lookup(v, ref)
		}
	}
	return nil
}

// lookup gives what a reference in the schema from means, nil for nothing. It
// knows this text only.
func (t *tree) lookup(from *value, ref string) *value {
	base, frag, _ := strings.Cut(ref, "#")
	if v := t.named[ref]; v != nil && (base != "" || !strings.HasPrefix(frag, "/")) {
		return v
	}
	at := t.root
	if o := t.owner[from]; o != nil {
		at = o
	}
	if base != "" {
		if at = t.resource(base); at == nil {
			return nil
		}
	}
	if frag == "" {
		return at
	}
	if frag[0] != '/' {
		return nil
	}
	return at.at(pointerTokens(unescapeURL(frag)))
}

// resource finds the schema document that base names: one inside this text.
func (t *tree) resource(base string) *value {
	for _, id := range []string{base, t.resolve(base)} {
		if v := t.named[id]; v != nil {
			return v
		}
	}
	return nil
}

// resolve makes uri absolute by the root's $id.
func (t *tree) resolve(uri string) string {
	id, _ := t.root.member("$id").str()
	base, err := url.Parse(id)
	if err != nil {
		return uri
	}
	u, err := base.Parse(uri)
	if err != nil {
		return uri
	}
	return u.String()
}

func unescapeURL(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// at follows a pointer's tokens.
func (v *value) at(tokens []string) *value {
	for _, tok := range tokens {
		if v == nil {
			return nil
		}
		if v.kind == kArray {
			i, err := strconv.Atoi(tok)
			if err != nil || i < 0 || i >= len(v.kids) {
				return nil
			}
			v = v.kids[i]
			continue
		}
		v = v.member(tok)
	}
	return v
}

// inspect checks the types and patterns of the schemas in v.
func (t *tree) inspect(v *value, path []string) (err error) {
	at := func(k string) string { return "schema: " + pointer(append(slices.Clone(path), k)) + ": " }
	names := v.member("type").strings()
	if one, ok := v.member("type").str(); ok {
		names = []string{one}
	}
	known := append([]string{"integer"}, kindNames[:]...)
	for _, n := range names {
		if !slices.Contains(known, n) {
			return fmt.Errorf("%sthere is no type %q%s", at("type"), n, didYouMean(n, known))
		}
	}
	if p, ok := v.member("pattern").str(); ok {
		if _, err := readPattern(p); err != nil {
			return fmt.Errorf("%s%w", at("pattern"), err)
		}
	}
	for _, k := range []string{"minLength", "maxLength", "minItems", "maxItems"} {
		if n := v.member(k); n != nil {
			if _, ok := natural(n); !ok {
				return fmt.Errorf("%s%s is not a count", at(k), n.text())
			}
		}
	}
	eachSub(v, func(keyword, key string, sub *value) {
		if err == nil {
			err = t.inspect(sub, append(slices.Clone(path), keyword, key))
		}
	})
	return err
}
