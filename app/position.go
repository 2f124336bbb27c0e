package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A place is where in a file something stands.
type place struct {
	file      string
	line, col int // from 1
}

func (p place) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.col) }

type kind int

const (
	isNull kind = iota
	isBool
	isNumber
	isString
	isList
	isMap
)

// String returns the kind as messages name it.
func (k kind) String() string {
	return [...]string{"nothing", "a boolean", "a number", "a string", "a list", "a map"}[k]
}

// A node is a value of the file: what JSON can say, with places.
type node struct {
	at     place
	kind   kind
	text   string // a string's characters; of a boolean or number, its JSON
	source string // a boolean, number or unquoted string as it was written, "" if it was quoted
	raw    string // a string before its templates were filled, "" if there were none
	fields []field
	items  []*node
}

// A field is a key of a map and what stands under it.
type field struct {
	key   string
	at    place
	value *node
}

// get follows keys through maps; nil stands for what is not there.
func (n *node) get(keys ...string) *node {
	for _, k := range keys {
		f := n.field(k)
		if f == nil {
			return nil
		}
		n = f.value
	}
	return n
}

func (n *node) field(key string) *field {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if n.fields[i].key == key {
			return &n.fields[i]
		}
	}
	return nil
}

// list returns the items of a list, none of anything else.
func (n *node) list() []*node {
	if n == nil {
		return nil
	}
	return n.items
}

// members returns the fields of a map, none of anything else.
func (n *node) members() []field {
	if n == nil {
		return nil
	}
	return n.fields
}

// str returns the text of a string, "" of anything else.
func (n *node) str() string {
	if n == nil || n.kind != isString {
		return ""
	}
	return n.text
}

// empty reports whether the node says nothing: null, false, or without content.
func (n *node) empty() bool {
	if n == nil {
		return true
	}
	switch n.kind {
	case isBool:
		return n.text == "false"
	case isNumber:
		return false
	}
	return n.text == "" && len(n.fields) == 0 && len(n.items) == 0
}

// json returns the node as JSON.
func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case isNull:
		b.WriteString("null")
	case isBool, isNumber:
		b.WriteString(n.text)
	case isString:
		writeString(b, n.text)
	case isList:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case isMap:
		b.WriteByte('{')
		for i, f := range n.fields {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, f.key)
			b.WriteByte(':')
			f.value.write(b)
		}
		b.WriteByte('}')
	}
}

// writeString writes a string as JSON, without escapes meant for HTML.
func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string can always be written
	}
	b.Truncate(b.Len() - 1) // the encoder's line feed
}

// A spot is a node together with how one comes to it.
type spot struct {
	at   place    // of its key or, in a list, of itself
	path string   // as messages name it
	segs []string // the keys, "[]" for an index
	node *node
}

// survey returns every spot of a tree, by JSON pointer, and the pointers in order.
func survey(root *node) (map[string]*spot, []string) {
	all := map[string]*spot{}
	var order []string
	var walk func(pointer string, s *spot)
	walk = func(pointer string, s *spot) {
		all[pointer] = s
		order = append(order, pointer)
		for _, f := range s.node.fields {
			walk(pointer+"/"+escapePointer(f.key),
				&spot{f.at, joinPath(s.path, f.key), append(s.segs[:len(s.segs):len(s.segs)], f.key), f.value})
		}
		for i, item := range s.node.items {
			walk(pointer+"/"+strconv.Itoa(i),
				&spot{item.at, s.path + "[" + strconv.Itoa(i) + "]", append(s.segs[:len(s.segs):len(s.segs)], "[]"), item})
		}
	}
	walk("", &spot{at: root.at, node: root})
	return all, order
}

func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// joinPath returns the path of a key: a.b, or a["b.c"] for keys that are not words.
func joinPath(path, key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// parentPath returns the path without its last part.
func parentPath(path string) string {
	if strings.HasSuffix(path, `"]`) {
		if i := strings.LastIndex(path, `["`); i >= 0 {
			return path[:i]
		}
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// under reports whether the keys match a pattern such as tools.modules.*.config,
// where * stands for one key and ** at the end for whatever follows.
func under(segs []string, pattern string) bool {
	want := strings.Split(pattern, ".")
	for i, w := range want {
		if w == "**" {
			return true
		}
		if i >= len(segs) || w != "*" && w != segs[i] {
			return false
		}
	}
	return len(want) == len(segs)
}

// Place returns where in the app's files the value at a path stands, such as
// tools.modules.shell or agents[0].brain; for what is not written there, where
// the nearest thing around it stands. The line is zero if the Config does not
// come from a file.
func (c *Config) Place(path string) (file string, line, col int) {
	for {
		if p, ok := c.places[path]; ok || path == "" {
			return p.file, p.line, p.col
		}
		path = parentPath(path)
	}
}
