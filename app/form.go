package app

import "encoding/json"

// forms are the schemas of what the Config keeps as JSON, by the name in a
// field's form tag.
var forms = map[string]string{
	"Modules": "", // made of the modules that there are
	"Hooks":   `{"type":"array","items":{"$ref":"#/$defs/Hook"}}`,
	"Hook": `{"type":"object","properties":{
		"id":{"type":"string","minLength":1},
		"on":{"enum":["turn_start","turn_end","tool_start","tool_end","session_start","session_end","pre_compact","error","approval_request"]},
		"condition":{"description":"always, context_pressure, turn_count, tool_calls, tool_name, tool_failed, expression, all_of, any_of or not","type":["string","object"]},
		"action":{"description":"module_action, inject_message, transform_params, transform_result, gate, log, notify, compact_context or chain","type":["string","object"]},
		"cooldown":{"type":"number","minimum":0,"description":"seconds"},
		"max_fires":{"type":"integer","minimum":1},
		"priority":{"type":"integer"},
		"enabled":{"type":"boolean","default":true},
		"timeout":{"type":"number","exclusiveMinimum":0,"description":"seconds"}},
		"required":["on","action"],"additionalProperties":false}`,
	"Middleware": `{"type":"array","items":{"type":["string","object"],"minLength":1,"minProperties":1,"description":"a name, {name: settings}, or {name, config, enabled}"}}`,
	"Triggers": `{"type":"array","items":{"type":"object","properties":{
		"id":{"type":"string","minLength":1},
		"type":{"enum":["cron","watch","http"]}},"required":["id","type"]}}`,
	"Channels": `{"type":"object","additionalProperties":{"type":"object","properties":{
		"type":{"type":"string","minLength":1},
		"config":{"type":"object"}},"required":["type"],"additionalProperties":false}}`,
	"Skills": `{"type":"array","items":{"type":"object","properties":{
		"command":{"type":"string","minLength":1},
		"description":{"type":"string"},
		"path":{"type":"string","minLength":1}},"required":["command","path"],"additionalProperties":false}}`,
	"Credential": `{"type":["string","object"],"minLength":1,"description":"the name of a credential, or {ref, scope}","properties":{
		"ref":{"type":"string","minLength":1},
		"scope":{"type":"string","minLength":1}},"required":["ref"],"additionalProperties":false}`,
	"BrainConfig": `{"type":"object","description":"which of these there are depends on the backend","properties":{
		"api_key":{"type":"string","description":"the key; better a credential, or {{secret.NAME}}"},
		"base_url":{"type":"string","minLength":1,"description":"where the API is, in place of the provider's own address"},
		"api":{"enum":["chat","responses"],"description":"which of OpenAI's protocols (openai_compat)"},
		"format":{"type":"string","minLength":1,"description":"how the model writes calls in its text, in place of what its name says; helve parse --help lists the formats"},
		"effort":{"enum":["minimal","low","medium","high"],"description":"how long it may think before it answers"},
		"summary":{"enum":["auto","concise","detailed"],"description":"summaries of its reasoning (openai_compat, responses)"},
		"stream":{"type":"boolean","default":true,"description":"answers come piece by piece (openai_compat)"},
		"num_ctx":{"type":"integer","minimum":256,"description":"tokens of the window that the model is given (ollama)"},
		"client_id":{"type":"string","minLength":1,"description":"of the OAuth app by which helve signs in (github_copilot)"},
		"github_url":{"type":"string","minLength":1,"description":"where to sign in, in place of https://github.com (github_copilot)"},
		"headers":{"type":"object","additionalProperties":{"type":"string"},"description":"further headers of every request"},
		"extra":{"type":"object","description":"further members of every request, as the API has them"},
		"price":{"type":"object","description":"what a million tokens cost, in US dollars; without it no costs are counted","properties":{
			"input":{"type":"number","minimum":0},"output":{"type":"number","minimum":0},"cached":{"type":"number","minimum":0}},
			"required":["input","output"],"additionalProperties":false},
		"turns":{"type":"array","items":{"type":"object"},"minItems":1,"description":"what the model says, turn by turn (script)"},
		"pause":{"type":"integer","minimum":0,"description":"milliseconds between words (script)"}},
		"additionalProperties":false}`,
	"Object": `{"type":"object"}`,
	"Any":    `{}`,
}

// written returns how a rule is written: a text, or a map.
func (Rule) written(g *generator) string {
	return g.union("string", `"minLength":1`, g.fieldsOf(Rule{}))
}

// UnmarshalJSON reads {module, actions, reason}, {pattern, reason} or a pattern.
func (r *Rule) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*r = Rule{}
		return json.Unmarshal(data, &r.Pattern)
	}
	type plain Rule
	return json.Unmarshal(data, (*plain)(r))
}

// written returns how a rate limit is written: a number, or a map.
func (RateLimit) written(g *generator) string {
	return g.union("integer", `"minimum":1`, g.fieldsOf(RateLimit{}))
}

// UnmarshalJSON reads a number of calls per minute, or {calls, window, per}.
func (r *RateLimit) UnmarshalJSON(data []byte) error {
	*r = RateLimit{}
	if data[0] != '{' {
		return json.Unmarshal(data, &r.Calls)
	}
	type plain RateLimit
	return json.Unmarshal(data, (*plain)(r))
}

// written returns how an OAuth is written: a map, true or false.
func (OAuth) written(g *generator) string {
	return g.union("boolean", `"minProperties":0`, g.fieldsOf(OAuth{}))
}

// UnmarshalJSON reads a map, true or false.
func (o *OAuth) UnmarshalJSON(data []byte) error {
	*o = OAuth{}
	switch string(data) {
	case "true":
		return nil
	case "false":
		o.Off = true
		return nil
	}
	type plain OAuth
	return json.Unmarshal(data, (*plain)(o))
}

// MarshalJSON writes what UnmarshalJSON reads.
func (o OAuth) MarshalJSON() ([]byte, error) {
	if o.Off {
		return []byte("false"), nil
	}
	type plain OAuth
	return json.Marshal(plain(o))
}

// written returns how a ModuleUse is written: a module's name, or a map from
// it to its actions.
func (ModuleUse) written(g *generator) string {
	return g.union("string", `"minLength":1`, `"minProperties":1,"maxProperties":1,"additionalProperties":{"type":"array","items":{"type":"string"}}`)
}

// UnmarshalJSON reads a module's name, or {name: [actions]}.
func (u *ModuleUse) UnmarshalJSON(data []byte) error {
	*u = ModuleUse{}
	if data[0] == '"' {
		return json.Unmarshal(data, &u.Module)
	}
	var m map[string][]string
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	for u.Module, u.Actions = range m {
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (u ModuleUse) MarshalJSON() ([]byte, error) {
	if u.Actions == nil {
		return json.Marshal(u.Module)
	}
	return json.Marshal(map[string][]string{u.Module: u.Actions})
}

// UnmarshalJSON reads the constraints of every module, and keeps the others as
// the module's own.
func (c *Constraints) UnmarshalJSON(data []byte) error {
	*c = Constraints{}
	if err := json.Unmarshal(data, &c.Own); err != nil {
		return err
	}
	for key, list := range map[string]*[]string{"allowed_actions": &c.AllowedActions, "blocked_actions": &c.BlockedActions} {
		if raw, ok := c.Own[key]; ok {
			delete(c.Own, key)
			if err := json.Unmarshal(raw, list); err != nil {
				return err
			}
		}
	}
	if len(c.Own) == 0 {
		c.Own = nil
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (c Constraints) MarshalJSON() ([]byte, error) {
	all := map[string]any{}
	for k, v := range c.Own {
		all[k] = v
	}
	if c.AllowedActions != nil {
		all["allowed_actions"] = c.AllowedActions
	}
	if c.BlockedActions != nil {
		all["blocked_actions"] = c.BlockedActions
	}
	return json.Marshal(all)
}
