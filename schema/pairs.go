package schema

import (
	"regexp"
	"strconv"
	"strings"
)

var refKeywords = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// pairs calls visit for every schema that stands in sch, or that it refers to,
// together with every part of v that it may be about: v itself, or the member
// or element called tok. It takes all branches, and in doubt more than really
// apply. For a reference that leads nowhere sub is nil and tok the reference.
func (t *tree) pairs(sch, v *value, visit func(sub, at *value, tok string)) {
	for _, k := range refKeywords {
		if ref, ok := sch.member(k).str(); ok {
			visit(t.lookup(sch, ref), v, ref)
		}
	}
	if props := sch.member("properties"); props != nil && v.kind == kObject {
		declared(props, v, visit)
	}
	eachSub(sch, func(keyword, key string, sub *value) {
		switch keyword {
		case "allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas", "dependencies":
			visit(sub, v, "")
		case "patternProperties", "additionalProperties", "unevaluatedProperties":
			if v.kind != kObject {
				return
			}
			for _, kid := range v.kids {
				if t.applies(sch, keyword, key, kid.key) {
					visit(sub, kid, kid.key)
				}
			}
		case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains":
			if v.kind != kArray {
				return
			}
			for i, kid := range v.kids {
				if key == "" || key == strconv.Itoa(i) {
					visit(sub, kid, strconv.Itoa(i))
				}
			}
		}
	})
}

// declared visits the members of v that props names, in any case.
func declared(props, v *value, visit func(sub, at *value, tok string)) {
	if len(props.kids)*len(v.kids) <= 1<<12 {
		for _, kid := range v.kids {
			for _, sub := range props.kids {
				if strings.EqualFold(sub.key, kid.key) {
					visit(sub, kid, kid.key)
				}
			}
		}
		return
	}
	byName := map[string][]*value{}
	for _, sub := range props.kids {
		name := fold(sub.key)
		byName[name] = append(byName[name], sub)
	}
	for _, kid := range v.kids {
		for _, sub := range byName[fold(kid.key)] {
			visit(sub, kid, kid.key)
		}
	}
}

// applies reports whether a member called name falls under a keyword of sch.
// When in doubt it does.
func (t *tree) applies(sch *value, keyword, key, name string) bool {
	switch keyword {
	case "patternProperties":
		return t.matches(key, name)
	case "additionalProperties":
		return sch.member("properties").member(name) == nil
	}
	return true
}

// matches reports whether a name matches a pattern, or the pattern cannot be
// read.
func (t *tree) matches(pattern, name string) bool {
	re, ok := t.patterns.Load(pattern)
	if !ok {
		made, err := readPattern(pattern)
		if err != nil {
			made = nil
		}
		re, _ = t.patterns.LoadOrStore(pattern, made)
	}
	compiled := re.(*regexp.Regexp)
	return compiled == nil || compiled.MatchString(name)
}

// maxSteps bounds how often the library may look at a value. Ordinary calls
// need hundreds of steps; a schema whose branches multiply needs billions.
const maxSteps = 1_000_000

// budget counts what the library would do. A pair is counted once and then
// known, so that counting is quick where checking is not.
type budget struct {
	t    *tree
	cost map[visit]int
}

// tooHard reports whether checking v by the schema would take too long.
func (t *tree) tooHard(v *value) bool {
	b := budget{t, map[visit]int{}}
	return b.of(t.root, v) >= maxSteps
}

func (b *budget) of(sch, v *value) int {
	if sch == nil || sch.kind != kObject {
		return 1
	}
	if n, ok := b.cost[visit{sch, v}]; ok {
		return n
	}
	if len(b.cost) >= maxSteps {
		return maxSteps
	}
	b.cost[visit{sch, v}] = 1 // an endless reference ends here
	n := 1
	b.t.pairs(sch, v, func(sub, at *value, _ string) {
		if n < maxSteps {
			n += b.of(sub, at)
		}
	})
	n = min(n, maxSteps)
	b.cost[visit{sch, v}] = n
	return n
}
