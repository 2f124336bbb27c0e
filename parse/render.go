package parse

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// Calls writes calls as a model that speaks the format would: for the history
// of a conversation, and for examples. A parser of the format reads them back.
// Arguments that are empty count as {}.
func (f *Format) Calls(calls []tool.Call) string {
	if len(calls) == 0 {
		return ""
	}
	whole := make([]tool.Call, len(calls))
	for i, c := range calls {
		if len(c.Args) == 0 {
			c.Args = json.RawMessage("{}")
		}
		whole[i] = c
	}
	return f.render(whole)
}

// Result writes what the call answered, as a model that speaks the format
// expects to read it.
func (f *Format) Result(call tool.Call, content string) string {
	if f.result == nil {
		return taggedResult(call.Name, call.ID, content)
	}
	return f.result(call.Name, call.ID, content)
}

// taggedResult is how results are shown where a model's own way is not known.
func taggedResult(name, _, content string) string {
	return "<tool_response name=" + string(quote(name)) + ">\n" + content + "\n</tool_response>"
}

// Prompt tells a model which tools it has and how to call them in the format:
// with the same words that show earlier calls and that the parser reads.
func (f *Format) Prompt(tools []Offer) string {
	var b strings.Builder
	b.WriteString("You can call tools. They are, one JSON object a line:\n\n")
	for _, t := range tools {
		b.WriteString(offerLine(t) + "\n")
	}
	one := tool.Call{ID: "0", Name: "get_weather", Args: json.RawMessage(`{"city": "Paris", "days": 3}`)}
	two := tool.Call{ID: "1", Name: "get_time", Args: json.RawMessage(`{"zone": "Europe/Paris"}`)}
	fmt.Fprintf(&b, "\nTo call a tool named get_weather with the arguments city and days, write exactly this, outside of any code block:\n\n%s\n", f.Calls([]tool.Call{one}))
	fmt.Fprintf(&b, "\nTo call two tools at once:\n\n%s\n", f.Calls([]tool.Call{one, two}))
	b.WriteString("\nCall only tools of the list, with the arguments that their parameters name. " +
		"Say what you want to say before the calls, and stop after them: what they answer is given to you in the next message, like this:\n\n")
	b.WriteString(f.Result(one, "18 °C, clear") + "\n")
	return b.String()
}

func offerLine(t Offer) string {
	b := append([]byte(`{"name": `), quote(t.Name)...)
	if t.Description != "" {
		b = append(append(b, `, "description": `...), quote(t.Description)...)
	}
	if len(t.Parameters) > 0 {
		b = append(append(b, `, "parameters": `...), t.Parameters...)
	}
	return string(append(b, '}'))
}

// jsonText writes a call as a JSON object with this key for the arguments.
func jsonText(c tool.Call, key string) string {
	return `{"name": ` + string(quote(c.Name)) + `, "` + key + `": ` + string(c.Args) + `}`
}

// each writes calls one by one.
func each(write func(c tool.Call) string, sep string) func([]tool.Call) string {
	return func(calls []tool.Call) string {
		parts := make([]string, len(calls))
		for i, c := range calls {
			parts[i] = write(c)
		}
		return strings.Join(parts, sep)
	}
}

// eachJSON writes each call as JSON between tags.
func eachJSON(open, key, close, sep string) func([]tool.Call) string {
	return each(func(c tool.Call) string { return open + jsonText(c, key) + close }, sep)
}

// listJSON writes all calls as one JSON array between tags.
func listJSON(open, key, close string) func([]tool.Call) string {
	return func(calls []tool.Call) string {
		list := each(func(c tool.Call) string { return jsonText(c, key) }, ", ")
		return open + "[" + list(calls) + "]" + close
	}
}

// around writes something before and after what write writes.
func around(open string, write func([]tool.Call) string, close string) func([]tool.Call) string {
	return func(calls []tool.Call) string { return open + write(calls) + close }
}

// eachParam writes a call with one piece for each argument; strings are bare.
func eachParam(open func(name string) string, param func(key, value string, isString bool) string, close string) func(tool.Call) string {
	return func(c tool.Call) string {
		var b strings.Builder
		b.WriteString(open(c.Name))
		for _, m := range members(string(c.Args)) {
			isString := strings.HasPrefix(m.value, `"`)
			if isString {
				m.value = unquote(m.value)
			}
			b.WriteString(param(m.key, m.value, isString))
		}
		b.WriteString(close)
		return b.String()
	}
}

// pythonText writes a call as Python would.
func pythonText(c tool.Call) string {
	var parts []string
	for _, m := range members(string(c.Args)) {
		parts = append(parts, m.key+"="+pythonValue(m.value))
	}
	return c.Name + "(" + strings.Join(parts, ", ") + ")"
}

// pythonValue writes a JSON value as a Python literal.
func pythonValue(v string) string {
	switch {
	case v == "true":
		return "True"
	case v == "false":
		return "False"
	case v == "null":
		return "None"
	case v[0] == '[':
		var parts []string
		for _, el := range elements(v) {
			parts = append(parts, pythonValue(el))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case v[0] == '{':
		var parts []string
		for _, m := range members(v) {
			parts = append(parts, string(quote(m.key))+": "+pythonValue(m.value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return v
}
