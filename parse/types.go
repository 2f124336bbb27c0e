package parse

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// params is what typing needs of a tool's schema. It is read leniently:
// schemas that no validator accepts still name types.
type params struct {
	types    map[string]types
	required []string
	open     bool // other arguments are allowed explicitly
	root     *schemaTree
}

// tree returns the whole schema, nil if nothing is known of it.
func (k *params) tree() *schemaTree {
	if k == nil {
		return nil
	}
	return k.root
}

// types is a set of JSON types.
type types uint8

const (
	typeNull types = 1 << iota
	typeInteger
	typeNumber
	typeBoolean
	typeObject
	typeArray
	typeString
)

var typeNames = map[string]types{
	"null": typeNull, "none": typeNull, "nil": typeNull,
	"integer": typeInteger,
	"number":  typeNumber, "double": typeNumber, "decimal": typeNumber,
	"boolean": typeBoolean, "bool": typeBoolean, "binary": typeBoolean,
	"object": typeObject, "dict": typeObject, "map": typeObject, "struct": typeObject,
	"array": typeArray, "arr": typeArray, "list": typeArray, "sequence": typeArray, "tuple": typeArray,
	"string": typeString, "str": typeString, "text": typeString, "varchar": typeString, "char": typeString, "enum": typeString,
}

// A node is the part of a JSON Schema that types are read from.
type node struct {
	Type       json.RawMessage            `json:"type"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	AllOf      []json.RawMessage          `json:"allOf"`
	Ref        string                     `json:"$ref"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	Required   []string                   `json:"required"`
	Additional json.RawMessage            `json:"additionalProperties"`
	Defs       map[string]json.RawMessage `json:"$defs"`
	Old        map[string]json.RawMessage `json:"definitions"`
	Nullable   bool                       `json:"nullable"`
}

func readParams(raw json.RawMessage) *params {
	var root node
	if len(raw) == 0 || json.Unmarshal(raw, &root) != nil && root.Properties == nil {
		return nil
	}
	p := &params{types: make(map[string]types, len(root.Properties)), required: root.Required}
	p.root = &schemaTree{&root, raw}
	p.open = len(root.Additional) > 0 && string(root.Additional) != "false"
	for name, sub := range root.Properties {
		p.types[name] = root.typesOf(sub, 0)
	}
	return p
}

// typesOf returns the types that a schema allows; none if it does not say.
func (root *node) typesOf(raw json.RawMessage, depth int) types {
	var n node
	if depth > 8 || json.Unmarshal(raw, &n) != nil {
		return 0
	}
	if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
		return root.typesOf(root.Defs[name], depth+1)
	}
	if name, ok := strings.CutPrefix(n.Ref, "#/definitions/"); ok {
		return root.typesOf(root.Old[name], depth+1)
	}
	t := named(n.Type)
	for _, list := range [][]json.RawMessage{n.AnyOf, n.OneOf, n.AllOf} {
		for _, sub := range list {
			t |= root.typesOf(sub, depth+1)
		}
	}
	if t == 0 {
		for _, v := range append(n.Enum, n.Const) {
			t |= typeOfValue(v)
		}
	}
	if t == 0 && n.Properties != nil {
		t = typeObject
	}
	if t == 0 && n.Items != nil {
		t = typeArray
	}
	if n.Nullable {
		t |= typeNull
	}
	return t
}

// named reads the value of the keyword type.
func named(raw json.RawMessage) types {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return typeNamed(one)
	}
	var many []string
	json.Unmarshal(raw, &many)
	var t types
	for _, name := range many {
		t |= typeNamed(name)
	}
	return t
}

// typeNamed returns the type of this name, of which some schemas have their own.
func typeNamed(name string) types {
	name = strings.ToLower(strings.TrimSpace(name))
	if t, ok := typeNames[name]; ok {
		return t
	}
	for _, prefix := range []string{"int", "uint", "long", "short", "unsigned"} {
		if strings.HasPrefix(name, prefix) {
			return typeInteger
		}
	}
	for _, prefix := range []string{"num", "float"} {
		if strings.HasPrefix(name, prefix) {
			return typeNumber
		}
	}
	return 0
}

func typeOfValue(v json.RawMessage) types {
	if len(v) == 0 {
		return 0
	}
	switch v[0] {
	case '"':
		return typeString
	case '{':
		return typeObject
	case '[':
		return typeArray
	case 't', 'f':
		return typeBoolean
	case 'n':
		return typeNull
	}
	if _, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return typeInteger
	}
	return typeNumber
}

// typed returns the JSON of an argument that was written as bare text, by the
// types that it may have. What has none of them stays a string.
func typed(raw string, t types) json.RawMessage {
	if t&^typeNull == typeString && !(t&typeNull != 0 && strings.EqualFold(strings.TrimSpace(raw), "null")) || t == 0 {
		return quote(raw)
	}
	said := strings.TrimSpace(raw)
	if t&typeNull != 0 || t&typeString == 0 {
		switch strings.ToLower(said) {
		case "null", "none", "nil":
			return json.RawMessage("null")
		}
	}
	if t&(typeInteger|typeNumber) != 0 {
		if n := number(said, t&typeNumber == 0); n != "" {
			return json.RawMessage(n)
		}
	}
	if t&typeBoolean != 0 {
		switch strings.ToLower(said) {
		case "true", "1":
			return json.RawMessage("true")
		case "false", "0":
			return json.RawMessage("false")
		}
	}
	if t&(typeObject|typeArray) != 0 {
		if v := structured(said, t); v != "" {
			return json.RawMessage(v)
		}
	}
	if t&typeString == 0 && json.Valid([]byte(said)) {
		return json.RawMessage(said) // of another type, which validation will tell
	}
	return quote(raw)
}

// number returns the JSON of a number, "" if said is none.
func number(said string, integer bool) string {
	if !startsNumber(said) {
		return ""
	}
	if integer {
		if i, ok := new(big.Int).SetString(strings.TrimPrefix(said, "+"), 10); ok && len(said) < 400 {
			return i.String()
		}
		f, err := strconv.ParseFloat(said, 64)
		if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -1<<53 {
			return ""
		}
		return strconv.FormatInt(int64(f), 10)
	}
	if json.Valid([]byte(said)) {
		return said
	}
	f, err := strconv.ParseFloat(said, 64)
	if err != nil {
		return ""
	}
	b, err := json.Marshal(f)
	if err != nil {
		return ""
	}
	return string(b)
}

func startsNumber(s string) bool {
	if s == "" || strings.ContainsAny(s, "xX_pPnNiI") {
		return false
	}
	c := s[0]
	return c >= '0' && c <= '9' || (c == '-' || c == '+' || c == '.') && len(s) > 1
}

// structured returns the JSON of an object or array that may be written
// carelessly, "" if said is none.
func structured(said string, t types) string {
	if said == "" || !(said[0] == '{' && t&typeObject != 0 || said[0] == '[' && t&typeArray != 0 || said[0] == '(' && t&typeArray != 0 || said[0] == '"') {
		return ""
	}
	if said[0] == '"' { // JSON within a JSON string
		var inner string
		if json.Unmarshal([]byte(said), &inner) != nil || strings.HasPrefix(inner, `"`) {
			return ""
		}
		return structured(strings.TrimSpace(inner), t)
	}
	if json.Valid([]byte(said)) {
		return said
	}
	if strings.Contains(said, `\"`) {
		var inner string
		if json.Unmarshal([]byte(`"`+said+`"`), &inner) == nil && json.Valid([]byte(inner)) {
			return inner
		}
	}
	if v := escapeControls(said); v != said && json.Valid([]byte(v)) {
		return v
	}
	if v, end, err := literal(said, 0); err == nil && skipSpace(said, end) == len(said) {
		return string(v)
	}
	return ""
}

// guess returns the JSON that raw is, or raw as a string.
func guess(raw string) json.RawMessage {
	said := strings.TrimSpace(raw)
	if said != "" && json.Valid([]byte(said)) {
		return json.RawMessage(said)
	}
	switch said {
	case "True", "False":
		return json.RawMessage(strings.ToLower(said))
	case "None":
		return json.RawMessage("null")
	}
	return quote(raw)
}

// quote returns s as a JSON string, without escapes of HTML.
func quote(s string) json.RawMessage { return appendQuoted(make([]byte, 0, len(s)+2), s) }

// A schemaTree is a schema, of which nil is one that says nothing.
type schemaTree struct {
	root *node
	raw  json.RawMessage
}

func (t *schemaTree) types() types {
	if t == nil {
		return 0
	}
	return t.root.typesOf(t.raw, 0)
}

// sub returns the first part that pick finds, in the schema or its branches.
func (t *schemaTree) sub(raw json.RawMessage, depth int, pick func(n *node) json.RawMessage) *schemaTree {
	var n node
	if depth > 8 || json.Unmarshal(raw, &n) != nil {
		return nil
	}
	if got := pick(&n); len(got) > 0 {
		return &schemaTree{t.root, got}
	}
	for _, prefix := range []string{"#/$defs/", "#/definitions/"} {
		if name, ok := strings.CutPrefix(n.Ref, prefix); ok {
			for _, defs := range []map[string]json.RawMessage{t.root.Defs, t.root.Old} {
				if def := defs[name]; def != nil {
					return t.sub(def, depth+1, pick)
				}
			}
		}
	}
	for _, list := range [][]json.RawMessage{n.AnyOf, n.OneOf, n.AllOf} {
		for _, branch := range list {
			if got := t.sub(branch, depth+1, pick); got != nil {
				return got
			}
		}
	}
	return nil
}

func (t *schemaTree) property(name string) *schemaTree {
	if t == nil {
		return nil
	}
	return t.sub(t.raw, 0, func(n *node) json.RawMessage {
		if sub := n.Properties[name]; sub != nil {
			return sub
		}
		if len(n.Additional) > 0 && n.Additional[0] == '{' {
			return n.Additional
		}
		return nil
	})
}

func (t *schemaTree) items() *schemaTree {
	if t == nil {
		return nil
	}
	return t.sub(t.raw, 0, func(n *node) json.RawMessage {
		if len(n.Items) > 0 && n.Items[0] == '{' {
			return n.Items
		}
		return nil
	})
}
