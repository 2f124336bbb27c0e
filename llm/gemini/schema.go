package gemini

import (
	"encoding/json"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// keywords are those of JSON Schema that the protocol names as understood. To
// true those whose values are schemas, or hold them.
var keywords = map[string]bool{
	"$id": false, "$ref": false, "$anchor": false, "type": false, "format": false, "title": false, "description": false, "enum": false,
	"minItems": false, "maxItems": false, "minimum": false, "maximum": false, "required": false, "propertyOrdering": false,
	"$defs": true, "properties": true, "items": true, "prefixItems": true, "anyOf": true, "oneOf": true, "additionalProperties": true,
}

// clean leaves out of a schema what the protocol would refuse. What the model
// then gets wrong is said when the call is checked by the whole schema.
func clean(raw json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	out, err := tool.Encode(cleaned(v))
	if err != nil {
		return raw
	}
	return out
}

// cleaned returns a schema without what is not understood.
func cleaned(v any) any {
	s, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, v := range s {
		deep, known := keywords[k]
		switch {
		case k == "const":
			if s["enum"] == nil {
				out["enum"] = []any{v}
			}
		case k == "definitions": // their older name
			out["$defs"] = each(v)
		case k == "$ref":
			ref, _ := v.(string)
			out[k] = strings.Replace(ref, "#/definitions/", "#/$defs/", 1)
		case k == "allOf":
			merge(out, v)
		case !known:
		case k == "properties" || k == "$defs":
			out[k] = each(v)
		case deep:
			out[k] = nested(v)
		default:
			out[k] = v
		}
	}
	return out
}

func each(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for name, s := range m {
		out[name] = cleaned(s)
	}
	return out
}

func nested(v any) any {
	list, ok := v.([]any)
	if !ok {
		return cleaned(v)
	}
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = cleaned(s)
	}
	return out
}

// merge adds what all of several schemas say, where nothing else is said.
func merge(out map[string]any, all any) {
	list, _ := all.([]any)
	for _, s := range list {
		m, _ := cleaned(s).(map[string]any)
		for k, v := range m {
			had, _ := out[k].(map[string]any)
			more, _ := v.(map[string]any)
			if k != "properties" || had == nil {
				if _, taken := out[k]; !taken {
					out[k] = v
				}
				continue
			}
			for name, p := range more {
				had[name] = p
			}
		}
	}
}
