package parse

import (
	"html"
	"strings"
)

// MiniCPM5XML is <function name="…"> elements with <param name="…"> elements.
var MiniCPM5XML = &Format{
	Name:   "minicpm5_xml",
	Doc:    "<function name=\"…\"> elements with <param name=\"…\"> elements.",
	Models: "MiniCPM 5",
	grammar: grammar{
		openers: join(miniCPMOpeners, thinkTags, afterCall("<|im_end|>", "</s>")),
		implied: closesThink,
	},
	render: each(eachParam(
		func(name string) string { return `<function name="` + html.EscapeString(name) + `">` },
		func(key, value string, _ bool) string {
			return `<param name="` + html.EscapeString(key) + `">` + miniCPMText(value) + "</param>"
		},
		"</function>"), "\n"),
}

// miniCPMOpeners read the tag, also as broken tokenizers write it.
var miniCPMOpeners = []opener{
	{tag: "<function name=", call: true, read: readMiniCPM},
	{tag: "<functionname=", call: true, read: readMiniCPM},
	{tag: "<functionĠname=", call: true, read: readMiniCPM},
}

func miniCPMText(value string) string {
	if strings.ContainsAny(value, "<&") {
		return "<![CDATA[" + strings.ReplaceAll(value, "]]>", "]]]]><![CDATA[>") + "]]>"
	}
	return value
}

// readMiniCPM reads one element. Unlike other formats this one is checked
// against the tool's schema at once: what does not fit is text.
func readMiniCPM(e *env) verdict {
	i := e.miniCPMEnd()
	if i < 0 {
		if !e.eof {
			return more
		}
		e.wasCut(functionClose)
		e.n = len(e.s)
		return not
	}
	n := i + len(functionClose)
	head, body, ok := strings.Cut(e.s[:i], ">")
	if !ok {
		return e.done(n)
	}
	e.name = html.UnescapeString(attribute(head, "name"))
	if why := e.miniCPMParams(body); why != "" {
		e.note("the call of %s was left as text: %s", e.name, why)
		return e.done(n)
	}
	args, why := e.miniCPMArgs()
	if why != "" {
		e.note("the call of %s was left as text: %s", e.name, why)
		return e.done(n)
	}
	e.call(e.name, "", args, e.s[:n])
	return e.done(n)
}

// miniCPMEnd returns the place of the closing tag, which does not count within
// a CDATA section.
func (e *env) miniCPMEnd() int {
	for {
		if e.stage == 1 {
			i, _ := e.find("]]>")
			if i < 0 {
				return -1
			}
			e.look, e.stage = i+3, 0
		}
		i, tag := e.find(functionClose, "<![CDATA[")
		if i < 0 || tag == functionClose {
			return i
		}
		e.look, e.stage = i+len(tag), 1
	}
}

// miniCPMParams reads the parameters. It returns why they cannot be read.
func (e *env) miniCPMParams(body string) string {
	seen := map[string]bool{}
	for {
		body = strings.TrimSpace(body)
		if body == "" {
			return ""
		}
		if !strings.HasPrefix(body, "<param") {
			return "there is something between its parameters"
		}
		head, rest, _ := strings.Cut(body, ">")
		name := html.UnescapeString(attribute(head, "name"))
		switch {
		case name == "":
			return "a parameter has no name"
		case seen[name]:
			return "the parameter " + name + " stands there twice"
		}
		seen[name] = true
		value, after := paramText(rest)
		e.params = append(e.params, param{name: name, value: value})
		body = after
	}
}

// paramText returns the text of a parameter and what follows it.
func paramText(s string) (value, rest string) {
	const close = "</param>"
	var b strings.Builder
	for {
		end := strings.Index(s, close)
		data := strings.Index(s, "<![CDATA[")
		if data < 0 || end >= 0 && end < data {
			if end < 0 {
				b.WriteString(html.UnescapeString(s))
				return b.String(), ""
			}
			b.WriteString(html.UnescapeString(s[:end]))
			return b.String(), s[end+len(close):]
		}
		b.WriteString(html.UnescapeString(s[:data]))
		section, after, _ := strings.Cut(s[data+len("<![CDATA["):], "]]>")
		b.WriteString(section)
		s = after
	}
}

// miniCPMArgs returns the arguments, or why the tool cannot take them.
func (e *env) miniCPMArgs() (args []byte, why string) {
	known := e.paramsOf(e.name)
	if known == nil {
		return e.object(e.name, e.params, asStrings), ""
	}
	if w, ok := e.unwrapped(e.name, e.params, "properties", "arguments", "parameters"); ok {
		for _, m := range members(string(w)) {
			e.params = append(e.params, param{name: m.key, json: []byte(m.value)})
		}
		e.params = e.params[1:]
	}
	kept := e.params[:0]
	given := map[string]bool{}
	for _, p := range e.params {
		if _, ok := known.types[p.name]; ok || known.open {
			kept = append(kept, p)
			given[p.name] = true
			continue
		}
		e.note("%s has no parameter %s: it was dropped", e.name, p.name)
	}
	for _, r := range known.required {
		if !given[r] {
			return nil, "the parameter " + r + " is missing"
		}
	}
	return e.object(e.name, kept, asStrings), ""
}
