package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// generator makes schemas, and documents that nearly fit them.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 7))}
}

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) name() string {
	return g.pick("a", "b", "path", "limit", "file_path", "é", "x y", "mode", "a/b", "n")
}

func (g generator) schema(depth int) string {
	if depth <= 0 {
		return g.pick("true", "{}", `{"type":"string"}`, `{"type":"integer"}`, `{"type":"boolean"}`, `{"$ref":"#/$defs/d"}`)
	}
	var parts []string
	add := func(odds int, format string, args ...any) {
		if g.IntN(odds) == 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	switch g.IntN(8) {
	case 0, 1:
		parts = append(parts, `"type":"object"`, `"properties":{`+g.properties(depth)+`}`)
		add(2, `"required":["%s"]`, g.name())
		add(2, `"additionalProperties":%s`, g.pick("false", "true", g.schema(depth-1)))
		add(8, `"maxProperties":%d`, g.IntN(4))
		add(9, `"patternProperties":{"^[a-m]":%s}`, g.schema(depth-1))
	case 2:
		parts = append(parts, g.pick(`"type":"string"`, `"type":["string","null"]`))
		add(3, `"minLength":%d`, g.IntN(4))
		add(3, `"maxLength":%d`, g.IntN(6))
		add(4, `"pattern":"%s"`, g.pick("^[a-z]+$", "a", "^.{1,3}$"))
		add(3, `"enum":["a","b","Fast",%s]`, g.scalar())
	case 3:
		parts = append(parts, g.pick(`"type":"integer"`, `"type":"number"`, `"type":["integer","string"]`, `"type":["integer","number"]`))
		add(2, `"%s":%s`, g.pick("minimum", "exclusiveMinimum"), g.number())
		add(2, `"%s":%s`, g.pick("maximum", "exclusiveMaximum"), g.number())
		add(5, `"multipleOf":%s`, g.pick("1", "2", "0.5", "3"))
		add(5, `"enum":[1,2.0,%s]`, g.number())
	case 4:
		parts = append(parts, `"type":"array"`)
		add(1+g.IntN(2), `"items":%s`, g.schema(depth-1))
		add(3, `"minItems":%d`, g.IntN(3))
		add(3, `"maxItems":%d`, g.IntN(4))
		add(4, `"uniqueItems":%s`, g.pick("true", "false"))
	case 5:
		parts = append(parts, fmt.Sprintf(`"%s":[%s,%s]`, g.pick("anyOf", "oneOf", "allOf"), g.schema(depth-1), g.schema(depth-1)))
		add(3, `"type":"%s"`, g.pick("object", "string", "integer"))
	case 6:
		parts = append(parts, `"const":`+g.scalar())
	case 7:
		parts = append(parts, `"$ref":"#/$defs/d"`)
		add(2, `"minLength":2`)
	}
	add(20, `"not":%s`, g.schema(depth-1))
	add(6, `"nullable":true`)
	add(9, `"x-helve-role":"%s"`, g.pick("command", "path.read", "url"))
	return "{" + strings.Join(parts, ",") + "}"
}

func (g generator) properties(depth int) string {
	seen := map[string]bool{}
	var out []string
	for range g.IntN(4) {
		if n := g.name(); !seen[n] {
			seen[n] = true
			out = append(out, fmt.Sprintf("%q:%s", n, g.schema(depth-1)))
		}
	}
	return strings.Join(out, ",")
}

// root gives a schema with the definition that references name.
func (g generator) root() string {
	s := g.schema(3)
	if !strings.HasPrefix(s, "{") {
		return s
	}
	def := `"$defs":{"d":` + strings.ReplaceAll(g.schema(2), "#/$defs/d", "#/$defs/e") + `,"e":{"type":"string"}}`
	if s == "{}" {
		return "{" + def + "}"
	}
	return s[:len(s)-1] + "," + def + "}"
}

func (g generator) number() string {
	return g.pick("0", "1", "-1", "2.0", "2.5", "1e1", "9007199254740993", "9007199254740992", "1e400", "-0", "0.1", "3", "100", "1.0000000000000000001")
}

func (g generator) scalar() string {
	return g.pick("null", "true", "false", g.number(), `"a"`, `"fast"`, `"yes"`, `"1"`, `"2.0"`, `"null"`, `""`, `"\u00e9"`, `"\ud800"`, `"abc"`, `"[1,2]"`, `"{\"a\":\"1\"}"`, `" 7 "`, `"True"`, "\"\xff\"")
}

func (g generator) document(depth int) string {
	switch g.IntN(5) {
	case 0, 1:
		if depth > 0 {
			var out []string
			for range g.IntN(4) {
				key := fmt.Sprintf("%q", g.pick(g.name(), "Path", "lmit", "filePath", "zz"))
				if g.IntN(9) == 0 {
					key = `"\u0061"`
				}
				out = append(out, key+g.pick(":", " : ")+g.document(depth-1))
			}
			return "{" + strings.Join(out, ", ") + "}"
		}
	case 2:
		if depth > 0 {
			var out []string
			for range g.IntN(3) {
				out = append(out, g.document(depth-1))
			}
			return "[" + strings.Join(out, ",") + "]"
		}
	}
	return g.scalar()
}

// agree fails if the fast path accepts what the library refuses.
func agree(t *testing.T, schema, doc string) (accepted bool) {
	s, err := Parse([]byte(schema))
	if err != nil || s.Compile() != nil {
		return false
	}
	c := s.compiled()
	if !c.accepts([]byte(doc)) {
		return false
	}
	if ps := c.validate([]byte(doc)); ps != nil {
		t.Errorf("accepted by the fast path, refused by the library:\nschema %s\ndoc    %s\n%v", schema, doc, ps)
	}
	if !json.Valid([]byte(doc)) {
		t.Errorf("accepted, but not JSON: %s", doc)
	}
	return true
}

func TestFastAcceptanceImpliesTheLibrarys(t *testing.T) {
	accepted := 0
	for seed := range uint64(3000) {
		g := newGenerator(seed)
		schema := g.root()
		for range 12 {
			if agree(t, schema, g.document(3)) {
				accepted++
			}
		}
	}
	if accepted < 1500 {
		t.Errorf("only %d documents were accepted: the test says little", accepted)
	}
}

func FuzzFastAgreesWithSlow(f *testing.F) {
	f.Add(uint64(1), `{"type":"object","properties":{"a":{"type":"integer","maximum":10}},"required":["a"]}`, `{"a":1.0}`)
	f.Add(uint64(2), `{"anyOf":[{"type":"string","minLength":2},{"type":"null"}]}`, `"\ud83d\ude00x"`)
	f.Add(uint64(3), `{"items":{"enum":[1,"a",null,true]}}`, `[1.0,"a",null,true]`)
	f.Fuzz(func(t *testing.T, seed uint64, schema, doc string) {
		agree(t, schema, doc)
		g := newGenerator(seed)
		made := g.root()
		agree(t, made, doc)
		agree(t, made, g.document(3))
	})
}

const nineSchema = `{"type":"object","properties":{
"path":{"type":"string","minLength":1,"description":"where to look","x-helve-role":"path.read"},
"pattern":{"type":"string","maxLength":200},
"limit":{"type":"integer","minimum":1,"maximum":500,"default":50},
"offset":{"type":"integer","minimum":0},
"recursive":{"type":"boolean"},
"mode":{"type":"string","enum":["fast","slow","exact"]},
"tags":{"type":"array","items":{"type":"string"},"maxItems":10},
"ratio":{"type":"number","minimum":0,"maximum":1},
"range":{"type":"object","properties":{"from":{"type":"integer"},"to":{"type":"integer"}},"required":["from"],"additionalProperties":false}
},"required":["path","limit"],"additionalProperties":false}`

const nineDoc = `{"path":"src/main.go","pattern":"func \\w+","limit":100,"offset":20,"recursive":true,"mode":"exact","tags":["go","test","é"],"ratio":0.25,"range":{"from":1,"to":20}}`

const nineLoose = `{"path":"src/main.go","pattern":"func \\w+","limit":"100","offset":"20","recursive":"true","mode":"Exact","tags":"go","ratio":"0.25","range":"{\"from\":1,\"to\":\"20\"}"}`

func TestTheFastPathAllocatesNothing(t *testing.T) {
	s, doc := Must(nineSchema), []byte(nineDoc)
	if !s.compiled().accepts(doc) {
		t.Fatal("not accepted")
	}
	if n := testing.AllocsPerRun(100, func() { s.Validate(doc) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkValidateNine(b *testing.B) {
	s, doc := Must(nineSchema), []byte(nineDoc)
	b.ReportAllocs()
	for b.Loop() {
		if s.Validate(doc) != nil {
			b.Fatal("refused")
		}
	}
}

func BenchmarkValidateNineLibrary(b *testing.B) {
	c, doc := Must(nineSchema).compiled(), []byte(nineDoc)
	b.ReportAllocs()
	for b.Loop() {
		if c.validate(doc) != nil {
			b.Fatal("refused")
		}
	}
}

func BenchmarkCoerceNine(b *testing.B) {
	s, doc := Must(nineSchema), []byte(nineLoose)
	b.ReportAllocs()
	for b.Loop() {
		if _, notes := s.Coerce(doc); len(notes) == 0 {
			b.Fatal("not coerced")
		}
	}
}

func BenchmarkParseNine(b *testing.B) {
	raw := []byte(nineSchema)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// coercionLaws: twice is as once; valid is the same slice; what comes out is
// JSON if what went in was; a change is noted.
func coercionLaws(t *testing.T, schema, doc string) (changed bool) {
	s, err := Parse([]byte(schema))
	if err != nil || s.Compile() != nil {
		return false
	}
	in := []byte(doc)
	out, notes := s.Coerce(in)
	if string(in) != doc {
		t.Fatalf("the document itself was changed:\nschema %s\ndoc %s", schema, doc)
	}
	same := len(in) == len(out) && (len(in) == 0 || &in[0] == &out[0])
	if same != (len(notes) == 0) {
		t.Errorf("same %v, but notes %q\nschema %s\ndoc %s\nout %s", same, notes, schema, doc, out)
	}
	if same {
		return false
	}
	if s.Validate(in) == nil {
		t.Errorf("valid, but coerced:\nschema %s\ndoc %s\nout %s", schema, doc, out)
	}
	if json.Valid(in) && !json.Valid(out) {
		t.Errorf("made what is not JSON:\nschema %s\ndoc %s\nout %s", schema, doc, out)
	}
	if again, _ := s.Coerce(out); string(again) != string(out) {
		t.Errorf("not the same when done twice:\nschema %s\ndoc   %s\nonce  %s\ntwice %s", schema, doc, out, again)
	}
	return true
}

func TestCoercionLaws(t *testing.T) {
	changed := 0
	for seed := range uint64(3000) {
		g := newGenerator(seed)
		schema := g.root()
		for range 8 {
			if coercionLaws(t, schema, g.document(3)) {
				changed++
			}
		}
	}
	if changed < 500 {
		t.Errorf("only %d documents changed: the test says little", changed)
	}
}

func FuzzCoerceLaws(f *testing.F) {
	f.Add(uint64(1), `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"A":"1"}`)
	f.Add(uint64(2), `{"type":"array","items":{"anyOf":[{"type":"boolean"},{"type":"null"}]}}`, `"[\"yes\"]"`)
	f.Fuzz(func(t *testing.T, seed uint64, schema, doc string) {
		coercionLaws(t, schema, doc)
		g := newGenerator(seed)
		made := g.root()
		coercionLaws(t, made, doc)
		coercionLaws(t, made, g.document(3))
	})
}
