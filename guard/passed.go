package guard

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// passed returns the secrets in arguments that name other tools and hold
// arguments for them, as execute_tool and run_parallel have them.
func (r *Redactor) passed(args json.RawMessage) []schema.Value {
	if r == nil || r.target.Load() == nil {
		return nil
	}
	v, ok := decodeArgs(args)
	if !ok {
		return nil
	}
	return passedIn(*r.target.Load(), "", v, nil)
}

func decodeArgs(args []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

func passedIn(target func(string) *tool.Tool, pointer string, v any, found []schema.Value) []schema.Value {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			found = passedIn(target, pointer+"/"+itoa(i), e, found)
		}
	case map[string]any:
		named := secretive(target, v)
		for k, e := range v {
			at := pointer + "/" + escapePointer(k)
			if named != nil {
				found = append(found, secretsOf(named, at, e)...)
			}
			found = passedIn(target, at, e, found)
		}
	}
	return found
}

// secretive returns the tool that an object names, if it has arguments that
// are secret.
func secretive(target func(string) *tool.Tool, object map[string]any) *tool.Tool {
	for _, key := range [...]string{"name", "tool", "tool_name"} {
		name, ok := object[key].(string)
		if !ok {
			continue
		}
		if t := target(name); t != nil && slices.ContainsFunc(t.Input.Roles(), func(r schema.Role) bool { return r == schema.Secret }) {
			return t
		}
	}
	return nil
}

// secretsOf returns the secrets in v, which may be arguments for t. What is
// written otherwise than t wants it is one secret as a whole: it may be put
// right before it runs.
func secretsOf(t *tool.Tool, pointer string, v any) []schema.Value {
	whole := []schema.Value{{Pointer: pointer, Role: schema.Secret}}
	switch v := v.(type) {
	case string:
		if inner, ok := decodeArgs([]byte(v)); ok {
			if _, object := inner.(map[string]any); object {
				return whole
			}
		}
	case map[string]any:
		args, err := json.Marshal(v)
		if err != nil || len(t.Input.Validate(args)) > 0 {
			return whole
		}
		values, err := t.Input.Values(args)
		if err != nil {
			return whole
		}
		for i := range values {
			values[i].Pointer = pointer + values[i].Pointer
		}
		return values
	}
	return nil
}
