package parse

import (
	"bytes"
	"strings"

	"github.com/helve-ai/helve/tool"
)

const (
	m3Mark           = "]<]minimax[>["
	m3Open, m3Close  = m3Mark + "<tool_call>", m3Mark + "</tool_call>"
	m3Invoke, m3Done = m3Mark + "<invoke name=", m3Mark + "</invoke>"
)

// MiniMaxM3 is elements whose tags all follow a mark.
var MiniMaxM3 = &Format{
	Name:   "minimax_m3",
	Doc:    "Elements named after the arguments within <invoke name=\"…\">, each tag after the mark " + m3Mark + ".",
	Models: "MiniMax-M3",
	grammar: grammar{
		openers: join([]opener{{tag: m3Open, call: true, read: readMiniMaxM3}}, thinkTags, afterCall(m3Close, "[e~[")),
		implied: closesThink,
	},
	render: around(m3Open+"\n", each(func(c tool.Call) string {
		var b strings.Builder
		b.WriteString(m3Invoke + `"` + c.Name + `">`)
		for _, m := range members(string(c.Args)) {
			b.WriteString(m3Text(m.key, m.value))
		}
		return b.String() + m3Done + "\n"
	}, ""), m3Close),
}

// m3Text writes an argument as an element.
func m3Text(name, v string) string {
	inner := v
	switch v[0] {
	case '"':
		inner = unquote(v)
	case '{':
		inner = ""
		for _, m := range members(v) {
			inner += m3Text(m.key, m.value)
		}
	case '[':
		inner = ""
		for _, el := range elements(v) {
			inner += m3Text("item", el)
		}
	}
	return m3Mark + "<" + name + ">" + inner + m3Mark + "</" + name + ">"
}

func readMiniMaxM3(e *env) verdict {
	i := e.matching(len(m3Open), m3Open, m3Close)
	end := i + len(m3Close)
	if i < 0 {
		if !e.eof {
			return more
		}
		i, end = len(e.s), len(e.s)
	}
	rest := e.s[len(m3Open):i]
	for {
		at := strings.Index(rest, m3Invoke)
		if at < 0 {
			return e.done(end)
		}
		rest = rest[at:]
		done := e.enclosed(rest[len(m3Invoke):], m3Invoke, m3Done)
		if done < 0 {
			if e.wasCut(m3Done); e.accepted {
				e.text(rest)
			}
			return e.done(end)
		}
		one := rest[:len(m3Invoke)+done]
		head, body, _ := strings.Cut(strings.TrimPrefix(one, m3Mark), ">")
		name := attribute(head, "name")
		e.call(name, "", e.m3Object(name, body), one+m3Done)
		rest = rest[len(one)+len(m3Done):]
	}
}

// m3Object reads the arguments of a call.
func (e *env) m3Object(name, body string) []byte {
	known := e.paramsOf(name)
	return m3Members(m3Children(body), func(el m3Element) []byte {
		if strings.Contains(el.body, m3Mark) && known.of(el.name)&^typeNull != typeString {
			return m3Value(el.body, known.tree().property(el.name))
		}
		return m3Scalar(el.body, known.of(el.name))
	})
}

// m3Scalar reads an element that holds no others.
func m3Scalar(body string, t types) []byte {
	if strings.TrimSpace(body) == "" {
		switch {
		case t&typeArray != 0:
			return []byte("[]")
		case t&typeObject != 0:
			return []byte("{}")
		}
	}
	return typed(body, t)
}

// An m3Element is an element with a name; what it holds is text or elements.
type m3Element struct{ name, body string }

// m3Children returns the elements that body holds.
func m3Children(body string) (out []m3Element) {
	for {
		at := strings.Index(body, m3Mark+"<")
		if at < 0 {
			return out
		}
		name, rest, ok := strings.Cut(body[at+len(m3Mark)+1:], ">")
		if !ok || strings.HasPrefix(name, "/") {
			return out
		}
		inner, after := m3Inner(name, rest)
		out = append(out, m3Element{name, inner})
		body = after
	}
}

// m3Inner returns what stands before the closing tag that belongs to an
// element of this name, and what follows that. Models forget the mark of a
// closing tag.
func m3Inner(name, s string) (inner, after string) {
	open, close := m3Mark+"<"+name+">", m3Mark+"</"+name+">"
	depth, i := 1, 0
	for {
		c := strings.Index(s[i:], close)
		if c < 0 {
			if inner, after, ok := strings.Cut(s, "</"+name+">"); ok {
				return inner, after
			}
			return s, ""
		}
		if o := strings.Index(s[i:], open); o >= 0 && o < c {
			depth++
			i += o + len(open)
			continue
		}
		if depth--; depth == 0 {
			return s[:i+c], s[i+c+len(close):]
		}
		i += c + len(close)
	}
}

// m3Members writes elements as an object. Those of one name are a list.
func m3Members(els []m3Element, value func(m3Element) []byte) []byte {
	var names []string
	values := map[string][][]byte{}
	for _, el := range els {
		if values[el.name] == nil {
			names = append(names, el.name)
		}
		values[el.name] = append(values[el.name], value(el))
	}
	b := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, name), ':')
		if vs := values[name]; len(vs) == 1 {
			b = append(b, vs[0]...)
		} else {
			b = append(append(append(b, '['), bytes.Join(vs, []byte{','})...), ']')
		}
	}
	return append(b, '}')
}

// m3Value reads what an element holds, by its schema where there is one. Items
// without one are a list.
func m3Value(body string, n *schemaTree) []byte {
	els := m3Children(body)
	t := n.types()
	switch {
	case len(els) == 0:
		return m3Scalar(body, t)
	case t&typeArray != 0 || t == 0 && allItems(els):
		b := []byte{'['}
		for i, el := range els {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, m3Value(el.body, n.items())...)
		}
		return append(b, ']')
	}
	return m3Members(els, func(el m3Element) []byte { return m3Value(el.body, n.property(el.name)) })
}

func allItems(els []m3Element) bool {
	for _, el := range els {
		if el.name != "item" {
			return false
		}
	}
	return true
}
