package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// A generator writes the JSON Schema of the Config from its types and their
// tags (those of schema.For, and form, which names one of forms). Named structs
// become $defs, since a brain may hold another.
type generator struct {
	defs map[string]string
}

// A writer is a type that is not written as its fields say.
type writer interface{ written(*generator) string }

func (g *generator) typeOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Struct {
		return `"type":[` + strings.TrimPrefix(g.typeOf(t.Elem()), `"type":`) + `,"null"]`
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		g.define(t)
		return `"$ref":"#/$defs/` + t.Name() + `"`
	case reflect.Slice:
		return `"type":"array","items":{` + g.typeOf(t.Elem()) + `}`
	case reflect.Map:
		return `"type":"object","additionalProperties":{` + g.typeOf(t.Elem()) + `}`
	case reflect.Bool:
		return `"type":"boolean"`
	case reflect.Int, reflect.Int64:
		return `"type":"integer"`
	case reflect.Float64:
		return `"type":"number"`
	case reflect.String:
		return `"type":"string"`
	}
	panic(fmt.Sprintf("app: no schema for %v", t))
}

func (g *generator) define(t reflect.Type) {
	if _, ok := g.defs[t.Name()]; ok {
		return
	}
	g.defs[t.Name()] = "" // against going round
	v := reflect.Zero(t).Interface()
	if w, ok := v.(writer); ok {
		g.defs[t.Name()] = w.written(g)
		return
	}
	g.defs[t.Name()] = `{"type":"object",` + g.fieldsOf(v) + `}`
}

// union writes a schema for values of a simple type or maps.
func (g *generator) union(simple, simpleKeywords, mapKeywords string) string {
	return `{"type":["` + simple + `","object"],` + simpleKeywords + `,` + mapKeywords + `}`
}

// form defines one of the forms, and those that it refers to.
func (g *generator) form(name string) string {
	text, ok := forms[name]
	if !ok {
		panic("app: there is no form " + name)
	}
	if _, done := g.defs[name]; !done {
		g.defs[name] = text
		for other := range forms {
			if strings.Contains(text, `"#/$defs/`+other+`"`) {
				g.form(other)
			}
		}
	}
	return `"$ref":"#/$defs/` + name + `"`
}

// fieldsOf writes the keywords for a struct's fields.
func (g *generator) fieldsOf(v any) string {
	var props, required []string
	for f := range reflect.TypeOf(v).Fields() {
		name, optional := jsonName(f)
		if name == "" {
			continue
		}
		var keywords string
		if form := f.Tag.Get("form"); form != "" {
			keywords = g.form(form)
		} else {
			keywords = g.typeOf(f.Type)
		}
		props = append(props, quote(name)+":{"+keywords+tagKeywords(f)+"}")
		if !optional {
			required = append(required, quote(name))
		}
	}
	out := `"properties":{` + strings.Join(props, ",") + `}`
	if len(required) > 0 {
		out += `,"required":[` + strings.Join(required, ",") + `]`
	}
	return out + `,"additionalProperties":false`
}

// jsonName returns the key of a field, "" for none, and whether it may be left out.
func jsonName(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" {
		return "", true
	}
	return name, strings.Contains(options, "omit")
}

// tagKeywords writes the keywords of a field's tags, with a comma before each.
func tagKeywords(f reflect.StructField) string {
	var b strings.Builder
	if d := f.Tag.Get("jsonschema"); d != "" {
		b.WriteString(`,"description":` + quote(d))
	}
	if list := f.Tag.Get("enum"); list != "" {
		names := strings.Split(list, ",")
		for i := range names {
			names[i] = quote(names[i])
		}
		if f.Type.Kind() == reflect.Pointer {
			names = append(names, "null")
		}
		b.WriteString(`,"enum":[` + strings.Join(names, ",") + `]`)
	}
	for _, k := range [][2]string{{"default", "default"}, {"min", "minimum"}, {"max", "maximum"}, {"minlen", "minLength"}} {
		if v := f.Tag.Get(k[0]); v != "" {
			b.WriteString(`,"` + k[1] + `":` + v)
		}
	}
	if p := f.Tag.Get("pattern"); p != "" {
		b.WriteString(`,"pattern":` + quote(p))
	}
	return b.String()
}

func quote(s string) string {
	var b bytes.Buffer
	writeString(&b, s)
	return b.String()
}

// JSONSchema returns the schema (2020-12) of an app file as a whole, with the
// config and constraints of the modules given in their places. It is the same
// on every run.
func JSONSchema(modules []*module.Module) json.RawMessage {
	var out bytes.Buffer
	if err := json.Indent(&out, fileSchema(modules).Raw(), "", "  "); err != nil {
		panic(err) // it was parsed
	}
	return out.Bytes()
}

func fileSchema(modules []*module.Module) *schema.Schema {
	g := &generator{defs: map[string]string{}}
	top := g.fieldsOf(Config{})
	g.define(reflect.TypeFor[ModuleBlock]())
	g.defs["ModuleBlock"] = strings.Replace(g.defs["ModuleBlock"], `"type":"object"`, `"type":["object","null"]`, 1)
	g.defs["Modules"] = `{"type":"object","properties":{` + strings.Join(moduleProperties(modules), ",") + `},"additionalProperties":false}`
	var defs []string
	for _, name := range slices.Sorted(maps.Keys(g.defs)) {
		defs = append(defs, quote(name)+":"+g.defs[name])
	}
	return schema.Must(`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"Helve app","type":"object",` +
		top + `,"$defs":{` + strings.Join(defs, ",") + `}}`)
}

// moduleProperties writes the property of every module that may be configured.
func moduleProperties(modules []*module.Module) []string {
	props := map[string]string{}
	for name := range moduleAliases {
		props[name] = `{"$ref":"#/$defs/ModuleBlock","description":` + quote("the modules "+strings.Join(moduleAliases[name], ", ")) + `}`
	}
	props["mcp"] = `{"$ref":"#/$defs/ModuleBlock"}`
	for _, m := range modules {
		config, constraints := moduleSchemas(m)
		props[m.Name] = `{"$ref":"#/$defs/ModuleBlock","description":` + quote(m.Doc) +
			`,"properties":{"config":` + config + `,"constraints":` + constraints + `}}`
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(props)) {
		out = append(out, quote(name)+":"+props[name])
	}
	return out
}

// An object is the part of a module's config schema that is looked into.
type object struct {
	Type       string                     `json:"type,omitempty"`
	Properties map[string]json.RawMessage `json:"properties,omitempty"`
	Required   []string                   `json:"required,omitempty"`
	Additional json.RawMessage            `json:"additionalProperties,omitempty"`
}

// moduleSchemas returns the schemas of a module's config, without its own
// constraints, and of its constraints, with them.
func moduleSchemas(m *module.Module) (config, constraints string) {
	all := object{Type: "object", Properties: map[string]json.RawMessage{
		"allowed_actions": json.RawMessage(`{"type":"array","items":{"type":"string"},"description":"the actions that agents may call, as names or globs; all if left out"}`),
		"blocked_actions": json.RawMessage(`{"type":"array","items":{"type":"string"},"description":"the actions that agents may not call"}`),
	}, Additional: json.RawMessage("false")}
	config = "{}"
	if m.Config != nil {
		config = m.Config.String()
		var c map[string]json.RawMessage
		var props map[string]json.RawMessage
		if json.Unmarshal(m.Config.Raw(), &c) == nil && json.Unmarshal(c["properties"], &props) == nil && props["constraints"] != nil {
			var own object
			if json.Unmarshal(props["constraints"], &own) == nil {
				maps.Copy(all.Properties, own.Properties)
			}
			delete(props, "constraints")
			c["properties"] = mustJSON(props)
			config = string(mustJSON(c))
		}
	}
	return config, string(mustJSON(all))
}

func mustJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // what is written here is JSON already, or plain data
	}
	return bytes.TrimSpace(b.Bytes())
}

// A ModuleDoc describes a module for people and editors.
type ModuleDoc struct {
	Name        string          `json:"name"`
	Doc         string          `json:"doc"`
	Config      json.RawMessage `json:"config"`      // the schema of tools.modules.NAME.config
	Constraints json.RawMessage `json:"constraints"` // the schema of tools.modules.NAME.constraints
	Actions     []ActionDoc     `json:"actions"`
}

// An ActionDoc describes one action of a module.
type ActionDoc struct {
	Name        string          `json:"name"` // as constraints and rules name it, without the module
	Tool        string          `json:"tool"` // the full name, as it is called
	Description string          `json:"description"`
	Effect      string          `json:"effect"`
	Risk        string          `json:"risk"`
	Parameters  json.RawMessage `json:"parameters"` // a schema
}

// DescribeModule describes a module and the actions that it offers with its
// default configuration.
func DescribeModule(ctx context.Context, m *module.Module) (ModuleDoc, error) {
	config, constraints := moduleSchemas(m)
	doc := ModuleDoc{Name: m.Name, Doc: m.Doc, Config: json.RawMessage(config), Constraints: json.RawMessage(constraints), Actions: []ActionDoc{}}
	tools, err := m.Describe(ctx)
	if err != nil {
		return doc, err
	}
	for _, t := range tools {
		doc.Actions = append(doc.Actions, describeAction(t))
	}
	return doc, nil
}

func describeAction(t *tool.Tool) ActionDoc {
	d := ActionDoc{Name: t.Action(), Tool: t.Name, Description: t.Description,
		Effect: t.Effect.String(), Risk: t.RiskLevel().String(), Parameters: json.RawMessage("{}")}
	if t.Input != nil {
		d.Parameters = t.Input.Raw()
	}
	return d
}
