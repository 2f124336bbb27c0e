package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// For infers the schema of T, and panics where T has none (functions,
// channels, types that contain themselves) or a tag is wrong.
//
// Properties stand in the order of the fields, and the text is the same on
// every run. Objects are closed: no additional properties. A field is optional
// if it is a pointer or has omitempty or omitzero. Slices, maps and pointers
// do not allow null. Tags:
//
//	json:"name,omitempty"   as encoding/json reads it
//	jsonschema:"…"          the description, and nothing else
//	role:"path.read"        the argument's role
//	enum:"a,b,c"            the values allowed; of the elements, for a slice
//	default:"10"            JSON
//	min:"1" max:"50"        of a number, or of the length of a slice
//	minlen:"1" maxlen:"80"  of a string
//	pattern:"^[a-z]+$"      of a string
func For[T any]() *Schema {
	t := reflect.TypeFor[T]()
	if s, ok := inferred.Load(t); ok {
		return s.(*Schema)
	}
	var in inferrer
	if err := in.write(t, nil); err != nil {
		panic(fmt.Errorf("schema: no schema for %v: %w", t, err))
	}
	s, _ := inferred.LoadOrStore(t, Must(in.out.String()))
	return s.(*Schema)
}

// What was inferred before, by type: modules are opened many times.
var (
	inferred sync.Map // *Schema
	leaves   sync.Map // the text of schemas that the library has
)

// inferrer writes the schema of a type.
type inferrer struct {
	out  bytes.Buffer
	open []reflect.Type // the structs we are in
}

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	numberType = reflect.TypeFor[json.Number]()
	textType   = reflect.TypeFor[encoding.TextMarshaler]()
)

// write writes the schema of t. extra are members that a field's tags add.
func (in *inferrer) write(t reflect.Type, extra []string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == rawType:
		return in.members(nil, extra)
	case t == numberType:
		return in.members([]string{`"type":"number"`}, extra)
	case known(t):
		return in.leaf(t, extra)
	case t.Implements(textType) || reflect.PointerTo(t).Implements(textType):
		return in.members([]string{`"type":"string"`}, extra)
	}
	switch t.Kind() {
	case reflect.Struct:
		return in.object(t, extra)
	case reflect.Map:
		return in.mapping(t, extra)
	case reflect.Slice, reflect.Array:
		return in.array(t, extra)
	}
	return in.leaf(t, extra)
}

// known reports whether the library has a schema of its own for a struct type,
// as it has for time.Time. Those show no fields.
func known(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || slices.ContainsFunc(reflect.VisibleFields(t), reflect.StructField.IsExported) {
		return false
	}
	s, err := jsonschema.ForType(t, nil)
	return err == nil && s.Type == "string"
}

func (in *inferrer) leaf(t reflect.Type, extra []string) error {
	text, ok := leaves.Load(t)
	if !ok {
		s, err := jsonschema.ForType(t, nil)
		if err != nil {
			return err
		}
		made, err := json.Marshal(s)
		if err != nil {
			return err
		}
		text, _ = leaves.LoadOrStore(t, string(made))
	}
	if text == "true" {
		return in.members(nil, extra)
	}
	own := text.(string)
	return in.members([]string{own[1 : len(own)-1]}, extra)
}

// members writes an object of the members given. Where a tag restates a
// keyword, the tag holds.
func (in *inferrer) members(own, extra []string) error {
	all := slices.DeleteFunc(slices.Concat(own, extra), func(m string) bool { return m == "" })
	in.out.WriteByte('{')
	in.out.WriteString(strings.Join(all, ","))
	in.out.WriteByte('}')
	return nil
}

// nested writes the schema of a part and gives it as text.
func (in *inferrer) nested(t reflect.Type, extra []string) (string, error) {
	start := in.out.Len()
	if err := in.write(t, extra); err != nil {
		return "", err
	}
	text := string(in.out.Bytes()[start:])
	in.out.Truncate(start)
	return text, nil
}

func (in *inferrer) mapping(t reflect.Type, extra []string) error {
	if k := t.Key(); k.Kind() != reflect.String && !k.Implements(textType) {
		return fmt.Errorf("a map whose keys are %v", k)
	}
	elem, err := in.nested(t.Elem(), nil)
	if err != nil {
		return err
	}
	if elem == "{}" {
		return in.members([]string{`"type":"object"`}, extra)
	}
	return in.members([]string{`"type":"object"`, `"additionalProperties":` + elem}, extra)
}

func (in *inferrer) array(t reflect.Type, extra []string) error {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return in.members([]string{`"type":"string"`, `"contentEncoding":"base64"`}, extra)
	}
	var enum []string
	extra = slices.DeleteFunc(slices.Clone(extra), func(m string) bool {
		if strings.HasPrefix(m, `"enum":`) {
			enum = append(enum, m)
			return true
		}
		return false
	})
	elem, err := in.nested(t.Elem(), enum)
	if err != nil {
		return err
	}
	own := []string{`"type":"array"`, `"items":` + elem}
	if t.Kind() == reflect.Array {
		own = append(own, fmt.Sprintf(`"minItems":%d,"maxItems":%[1]d`, t.Len()))
	}
	return in.members(own, extra)
}

func (in *inferrer) object(t reflect.Type, extra []string) error {
	if slices.Contains(in.open, t) {
		return fmt.Errorf("%v contains itself", t)
	}
	in.open = append(in.open, t)
	defer func() { in.open = in.open[:len(in.open)-1] }()

	var props []string
	var required []string
	for _, f := range fields(t) {
		tags, err := in.tags(f)
		if err != nil {
			return fmt.Errorf("%v.%s: %w", t, f.Name, err)
		}
		text, err := in.nested(f.Type, tags)
		if err != nil {
			return fmt.Errorf("%v.%s: %w", t, f.Name, err)
		}
		name, optional := jsonName(f)
		props = append(props, string(quote(name))+":"+text)
		if !optional {
			required = append(required, string(quote(name)))
		}
	}
	// Some model APIs refuse an object that says nothing of its properties.
	own := []string{`"type":"object"`, `"properties":{` + strings.Join(props, ",") + `}`}
	if len(required) > 0 {
		own = append(own, `"required":[`+strings.Join(required, ",")+`]`)
	}
	return in.members(append(own, `"additionalProperties":false`), extra)
}

// fields gives the fields that encoding/json writes, in order: those of
// embedded structs in their place, and of equal names the outermost.
func fields(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		name, _ := jsonName(f)
		if name == "" || !f.IsExported() && !f.Anonymous || hidden(t, f) {
			continue
		}
		i := slices.IndexFunc(out, func(g reflect.StructField) bool { n, _ := jsonName(g); return n == name })
		switch {
		case i < 0:
			out = append(out, f)
		case len(f.Index) < len(out[i].Index):
			out[i] = f
		}
	}
	return out
}

// hidden reports whether f is an embedded struct whose fields stand for it, or
// a field of an embedded struct that has a name of its own.
func hidden(t reflect.Type, f reflect.StructField) bool {
	if flattened(f) {
		return true
	}
	for i := 1; i < len(f.Index); i++ {
		if !flattened(t.FieldByIndex(f.Index[:i])) {
			return true
		}
	}
	return !f.IsExported()
}

func flattened(f reflect.StructField) bool {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return f.Anonymous && t.Kind() == reflect.Struct && tag == "" && !known(t)
}

// jsonName gives the name of a field in JSON, "" for none, and whether it may
// be absent.
func jsonName(f reflect.StructField) (name string, optional bool) {
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "", false
	}
	name, opts, _ := strings.Cut(tag, ",")
	if name == "" {
		name = f.Name
	}
	for o := range strings.SplitSeq(opts, ",") {
		optional = optional || o == "omitempty" || o == "omitzero"
	}
	return name, optional || f.Type.Kind() == reflect.Pointer
}

// otherTag is how the tag of a description begins for other libraries, which
// write all of a schema there.
var otherTag = regexp.MustCompile(`^(required($|,)|[a-z][A-Za-z]*=)`)

// tags gives the members that the tags of f add to its schema.
func (in *inferrer) tags(f reflect.StructField) ([]string, error) {
	var out []string
	add := func(key, text string) { out = append(out, `"`+key+`":`+text) }
	if d, ok := f.Tag.Lookup("jsonschema"); ok {
		if otherTag.MatchString(d) {
			return nil, fmt.Errorf("jsonschema:%q: this tag is the description alone; enum, default, min, max and pattern have tags of their own, and what has no omitempty is required", d)
		}
		add("description", string(quote(d)))
	}
	kind := base(f.Type).Kind()
	if list, ok := f.Tag.Lookup("enum"); ok {
		text, err := enumText(list, elem(f.Type))
		if err != nil {
			return nil, err
		}
		add("enum", text)
	}
	if d, ok := f.Tag.Lookup("default"); ok {
		if !json.Valid([]byte(d)) {
			return nil, fmt.Errorf("default:%q is not JSON", d)
		}
		add("default", d)
	}
	bounds := []struct{ tag, keyword string }{{"min", "minimum"}, {"max", "maximum"}, {"minlen", "minLength"}, {"maxlen", "maxLength"}}
	if kind == reflect.Slice {
		bounds[0].keyword, bounds[1].keyword = "minItems", "maxItems"
	}
	for _, b := range bounds {
		n, ok := f.Tag.Lookup(b.tag)
		if !ok {
			continue
		}
		if end, ok := scanNumber([]byte(n), 0); !ok || end != len(n) {
			return nil, fmt.Errorf("%s:%q is not a number", b.tag, n)
		}
		add(b.keyword, n)
	}
	if p, ok := f.Tag.Lookup("pattern"); ok {
		add("pattern", string(quote(p)))
	}
	if r, ok := f.Tag.Lookup("role"); ok {
		if !Role(r).Known() {
			return nil, fmt.Errorf("there is no role %q%s", r, didYouMean(r, roleNames()))
		}
		add(roleKeyword, string(quote(r)))
	}
	return out, nil
}

func base(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// elem is the type that an enum tag speaks of.
func elem(t reflect.Type) reflect.Type {
	t = base(t)
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = base(t.Elem())
	}
	return t
}

// enumText writes the list of a tag as JSON values of type t.
func enumText(list string, t reflect.Type) (string, error) {
	var out []string
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if t.Kind() == reflect.String || t.Implements(textType) {
			out = append(out, string(quote(item)))
			continue
		}
		if _, err := strconv.ParseFloat(item, 64); err != nil {
			return "", fmt.Errorf("enum:%q: %q is not a number", list, item)
		}
		out = append(out, item)
	}
	return "[" + strings.Join(out, ",") + "]", nil
}
