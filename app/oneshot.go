package app

import (
	"encoding/json"
	"fmt"

	"github.com/helve-ai/helve/schema"
)

// checkOneShot checks the schemas of what one-shot apps are given and give back.
func (l *loader) checkOneShot(root *node) {
	r := root.get("runtime")
	for _, key := range []string{"input", "output", "payload_schema"} {
		n, path := r.get(key), "runtime."+key
		if n == nil || n.empty() || l.broken[path] {
			continue
		}
		if r.get("mode").str() != "one_shot" {
			l.fail(n.at, path, "has a meaning for one-shot apps alone", "write mode: one_shot, or remove the key")
			continue
		}
		s, err := schema.Parse(n.json())
		if err == nil {
			err = s.Compile()
		}
		if err != nil {
			l.fail(n.at, path, "is no JSON Schema: "+err.Error(), "")
		}
	}
	if in, payload := r.get("input"), r.get("payload_schema"); in != nil && payload != nil && !in.empty() && !payload.empty() {
		l.fail(payload.at, "runtime.payload_schema", "is another name of runtime.input, which is there too", "remove one of them")
	}
}

// oneShot returns a schema of a one-shot app; nil: there is none.
func (c *Config) oneShot(raw json.RawMessage) (*schema.Schema, error) {
	if c.Runtime.Mode != "one_shot" || len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	return schema.Parse(raw)
}

// input returns the schema of what a one-shot app is given; nil: any text.
func (c *Config) input() (*schema.Schema, error) {
	raw := c.Runtime.Input
	if len(raw) == 0 {
		raw = c.Runtime.PayloadSchema
	}
	return c.oneShot(raw)
}

// CheckInput holds what a one-shot app is given to the schema that it declares.
// An app that declares none is given any text.
func (c *Config) CheckInput(text string) error {
	s, err := c.input()
	if s == nil || err != nil {
		return err
	}
	if !json.Valid([]byte(text)) {
		return fmt.Errorf("the app %s is given JSON (runtime.input), and this is none: %.80q", c.App.ID, text)
	}
	if problems := s.Validate(json.RawMessage(text)); len(problems) > 0 {
		return fmt.Errorf("what the app %s is given does not fit its schema (runtime.input): %s", c.App.ID, problems[0])
	}
	return nil
}

// given returns an input in JSON as the app is told it: as it is where the app
// declares a schema that it fits, and a string as its characters elsewhere.
func (c *Config) given(raw json.RawMessage) (string, error) {
	err := c.CheckInput(string(raw))
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw), err
	}
	if s, failed := c.input(); s != nil && failed == nil && err == nil {
		return string(raw), nil
	}
	return text, c.CheckInput(text)
}
