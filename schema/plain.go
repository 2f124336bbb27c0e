package schema

import (
	"slices"
	"strings"
)

// Check returns the error that Compile would, and keeps nothing of what it
// read: it is for schemas of which most are never used. Those that consist of
// common keywords are not compiled for it.
func (s *Schema) Check() error {
	t, err := s.peek()
	if err != nil || t.plain() {
		return err
	}
	return (&Schema{raw: s.raw, roles: s.roles, opts: s.opts}).Compile()
}

// plain reports whether the schema surely compiles: its drafts agree on all of
// its keywords, and each of them holds what the draft wants. False says nothing.
func (t *tree) plain() bool {
	switch draftOf(t.root) {
	case 0:
		if t.root.member("$schema") != nil || t.opts.Draft == 4 || t.opts.Draft == 6 {
			return false
		}
	case 4, 6:
		return false
	}
	return !t.opts.Formats && t.plainSchema(t.root)
}

func (t *tree) plainSchema(v *value) bool {
	if v.kind == kBool {
		return true
	}
	if v.kind != kObject {
		return false
	}
	for _, kid := range v.kids {
		switch is := plainKeywords[kid.key]; {
		case v == t.root && kid.key == "$schema": // draftOf knows it
		case v == t.root && kid.key == "$defs":
			if t.draft != 0 && t.draft < 2019 || !t.plainMap(kid) {
				return false
			}
		case is == nil && !strings.HasPrefix(kid.key, "x-") || is != nil && !is(t, kid):
			return false
		}
	}
	return true
}

func (t *tree) plainMap(v *value) bool {
	return v.kind == kObject && !slices.ContainsFunc(v.kids, func(kid *value) bool { return !t.plainSchema(kid) })
}

// plainRef reports whether v refers to one of the root's $defs, where what
// stands beside a reference counts.
func (t *tree) plainRef(v *value) bool {
	ref, ok := v.str()
	name, inDefs := strings.CutPrefix(ref, "#/$defs/")
	bare := !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	})
	return ok && inDefs && bare && (t.draft == 0 || t.draft >= 2019) && t.root.member("$defs").member(name) != nil
}

// plainKeywords are those that all drafts since 7 read alike, each with the
// values that they all take.
var plainKeywords map[string]func(*tree, *value) bool

func init() { // the functions refer to the table
	anything := func(*tree, *value) bool { return true }
	only := func(is func(*value) bool) func(*tree, *value) bool {
		return func(_ *tree, v *value) bool { return is(v) }
	}
	isText, isBool, isShortNumber, isCount := only(isText), only(isBool), only(isShortNumber), only(isCount)
	list := func(t *tree, v *value) bool {
		return v.kind == kArray && len(v.kids) > 0 && !slices.ContainsFunc(v.kids, func(kid *value) bool { return !t.plainSchema(kid) })
	}
	sub := (*tree).plainSchema
	plainKeywords = map[string]func(*tree, *value) bool{
		"$ref": (*tree).plainRef, "type": only(plainType), "enum": only(plainEnum), "const": anything,
		"title": isText, "description": isText, "$comment": isText, "format": isText, "pattern": isText,
		"contentEncoding": isText, "contentMediaType": isText,
		"default": anything, "example": anything, "nullable": anything,
		"examples": only(func(v *value) bool { return v.kind == kArray }),
		"readOnly": isBool, "writeOnly": isBool, "uniqueItems": isBool,
		"minimum": isShortNumber, "maximum": isShortNumber, "exclusiveMinimum": isShortNumber, "exclusiveMaximum": isShortNumber,
		"minLength": isCount, "maxLength": isCount, "minItems": isCount, "maxItems": isCount, "minProperties": isCount, "maxProperties": isCount,
		"items": sub, "additionalProperties": sub, "not": sub, "anyOf": list, "oneOf": list, "allOf": list,
		"properties": (*tree).plainMap,
		"required":   only(func(v *value) bool { return v.kind == kArray && uniqueTexts(v.kids) }),
	}
}

func isText(v *value) bool { return v.kind == kString }
func isBool(v *value) bool { return v.kind == kBool }

// isShortNumber reports whether v is a number that no reader of numbers stumbles over.
func isShortNumber(v *value) bool {
	return v.kind == kNumber && len(v.text()) <= 20 && !strings.ContainsAny(string(v.text()), "eE")
}

// isCount reports whether v is a small number without sign, fraction or exponent.
func isCount(v *value) bool {
	return v.kind == kNumber && len(v.text()) <= 9 && !strings.ContainsAny(string(v.text()), "-.eE")
}

func plainType(v *value) bool {
	known := func(v *value) bool {
		s, ok := v.str()
		return ok && (s == "integer" || slices.Contains(kindNames[:], s))
	}
	if v.kind != kArray {
		return known(v)
	}
	return len(v.kids) > 0 && !slices.ContainsFunc(v.kids, func(kid *value) bool { return !known(kid) }) && uniqueTexts(v.kids)
}

func plainEnum(v *value) bool {
	return v.kind == kArray && len(v.kids) > 0 && !slices.ContainsFunc(v.kids, func(kid *value) bool {
		return kid.kind > kString || kid.kind == kNumber && !isShortNumber(kid)
	})
}

// uniqueTexts reports whether all are strings, none of them twice.
func uniqueTexts(list []*value) bool {
	seen := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.str()
		if !ok || len(list) > 64 || slices.Contains(seen, s) {
			return false
		}
		seen = append(seen, s)
	}
	return true
}
