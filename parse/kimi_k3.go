package parse

import (
	"html"
	"strconv"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// KimiK3 is call and argument elements between <|open|>, <|sep|> and <|close|> tokens.
var KimiK3 = &Format{
	Name:   "kimi_k3",
	Doc:    "call and argument elements made of <|open|>, <|sep|> and <|close|> tokens.",
	Models: "Kimi K3",
	grammar: grammar{
		openers: join([]opener{
			{tag: "<|open|>tools<|sep|>", call: true, read: readKimiK3},
			{tag: "<|open|>tools ", call: true, read: readKimiK3},
			reasoning("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
		}, thinkTags, dropped("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|open|>message<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>")),
		implied: []string{"<|close|>think<|sep|>", "</think>"},
	},
	render: func(calls []tool.Call) string {
		var b strings.Builder
		b.WriteString("<|open|>tools<|sep|>")
		for i, c := range calls {
			b.WriteString(kimiK3Text(c, i+1))
		}
		return b.String() + kimiK3End
	},
	result: func(name, id, content string) string {
		return `<|open|>result tool="` + html.EscapeString(name) + `"<|sep|>` + content + "<|close|>result<|sep|>"
	},
}

const (
	k3Tools   = "<|open|>tools"
	kimiK3End = "<|close|>tools<|sep|>"
	k3Call    = "<|open|>call"
	k3CallEnd = "<|close|>call<|sep|>"
	k3Arg     = "<|open|>argument"
	k3ArgEnd  = "<|close|>argument<|sep|>"
	k3Sep     = "<|sep|>"
)

func kimiK3Text(c tool.Call, index int) string {
	var b strings.Builder
	b.WriteString(k3Call + ` tool="` + html.EscapeString(c.Name) + `" index="` + strconv.Itoa(index) + `"` + k3Sep)
	for _, m := range members(string(c.Args)) {
		kind, value := jsonKind(m.value), m.value
		if kind == "string" {
			value = unquote(value)
		}
		b.WriteString(k3Arg + ` key="` + html.EscapeString(m.key) + `" type="` + kind + `"` + k3Sep + value + k3ArgEnd)
	}
	return b.String() + k3CallEnd
}

func jsonKind(v string) string {
	switch typeOfValue([]byte(v)) {
	case typeString:
		return "string"
	case typeObject:
		return "object"
	case typeArray:
		return "array"
	case typeBoolean:
		return "boolean"
	case typeNull:
		return "null"
	}
	return "number"
}

func readKimiK3(e *env) verdict {
	i := e.matching(len(e.opener.tag), k3Tools, kimiK3End)
	end := i + len(kimiK3End)
	if i < 0 {
		if !e.eof {
			return more
		}
		i, end = len(e.s), len(e.s)
	}
	rest := e.s[:i]
	for {
		at := strings.Index(rest, k3Call)
		if at < 0 {
			return e.done(end)
		}
		rest = rest[at:]
		close := len(k3Call) + e.enclosed(rest[len(k3Call):], k3Call, k3CallEnd)
		if close < len(k3Call) {
			if e.wasCut(k3CallEnd); e.accepted {
				e.text(rest)
			}
			return e.done(end)
		}
		e.k3Call(rest[:close+len(k3CallEnd)])
		rest = rest[close+len(k3CallEnd):]
	}
}

func (e *env) k3Call(raw string) {
	head, body, _ := strings.Cut(raw, k3Sep)
	name := html.UnescapeString(attribute(head, "tool"))
	e.params = e.params[:0]
	for {
		at := strings.Index(body, k3Arg)
		if at < 0 {
			break
		}
		var attrs, value string
		attrs, body, _ = strings.Cut(body[at:], k3Sep)
		end := e.enclosed(body, k3Arg, k3ArgEnd)
		if end < 0 {
			value, body = body, ""
		} else {
			value, body = body[:end], body[end+len(k3ArgEnd):]
		}
		p := param{name: html.UnescapeString(attribute(attrs, "key")), value: value}
		if attribute(attrs, "type") == "string" {
			p.json = quote(value)
		} else {
			p.json = guess(value)
		}
		e.params = append(e.params, p)
	}
	e.call(name, "", e.object(name, e.params, asStrings), raw)
}
