package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Limits of an app file. Aliases count as what they stand for.
const (
	maxFile  = 1 << 20 // bytes
	maxNodes = 100_000
	maxDepth = 100
	maxPath  = 80 // bytes of a path that is shown where it is too deep
)

// A reader turns the YAML of one file into nodes. What is wrong is collected.
type reader struct {
	file     string
	problems Problems
	nodes    int
	open     []*yaml.Node // the anchors that are being followed
	full     bool         // a limit was passed; it is reported once
}

// readYAML reads one document. It returns nil if there are problems that leave
// nothing to look at, or only a part.
func readYAML(file string, data []byte) (*node, Problems) {
	r := &reader{file: file}
	data, ok := r.text(data)
	if !ok {
		return nil, r.problems
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		r.fail(1, 1, "the file is empty", "begin with app: {app_id: my-app, name: My app}")
		return nil, r.problems
	} else if err != nil {
		r.syntax(data, err)
		return nil, r.problems
	}
	var second yaml.Node
	if err := d.Decode(&second); err == nil {
		r.fail(second.Line, second.Column, "a second document begins here; an app file is one document", "remove the line ---, or put the second part into a file of its own and name it under dev.include")
	} else if !errors.Is(err, io.EOF) {
		r.syntax(data, err)
		return nil, r.problems
	}
	n := &node{}
	if len(doc.Content) > 0 {
		n = r.read(doc.Content[0], "", 0)
	}
	if n.kind == isNull && len(r.problems) == 0 {
		r.fail(1, 1, "the file is empty", "begin with app: {app_id: my-app, name: My app}")
		return nil, r.problems
	}
	if r.full || n.kind != isMap {
		if !r.full && len(r.problems) == 0 {
			r.fail(n.at.line, n.at.col, "the file is "+n.kind.String()+", where a map is wanted", "begin with app: {app_id: my-app, name: My app}")
		}
		return nil, r.problems
	}
	return n, r.problems
}

func (r *reader) fail(line, col int, message, suggestion string) {
	r.failAt("", place{r.file, max(line, 1), max(col, 1)}, message, suggestion)
}

func (r *reader) failAt(path string, at place, message, suggestion string) {
	if len(r.problems) >= maxProblems {
		return
	}
	r.problems = append(r.problems, Problem{at.file, at.line, at.col, path, message, suggestion})
}

// text checks what stands before all syntax: size and encoding.
func (r *reader) text(data []byte) ([]byte, bool) {
	switch {
	case len(data) > maxFile:
		r.fail(1, 1, fmt.Sprintf("the file has %d bytes; at most %d are read", len(data), maxFile), "split it with dev.include")
		return nil, false
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		r.fail(1, 1, "the file is UTF-16", "save it as UTF-8")
		return nil, false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && n == 1 {
			line, col := lineOf(data, i)
			r.fail(line, col, fmt.Sprintf("the byte 0x%02x is not UTF-8", data[i]), "save the file as UTF-8")
			return nil, false
		}
		i += n
	}
	return data, true
}

func lineOf(data []byte, at int) (line, col int) {
	before := data[:at]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

var (
	yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	// The library counts lines from zero in errors of its parser, from one in
	// those of its scanner.
	parserError = regexp.MustCompile(`^did not find expected (<document start>|<stream-start>|node content|'-' indicator|key|',' or)`)
)

// maxBisect is the longest text, in bytes, of which parts are parsed to find
// the line of an error more exactly than the library does.
const maxBisect = 64 << 10

// syntax reports an error of the YAML library.
func (r *reader) syntax(data []byte, err error) {
	m := yamlLine.FindStringSubmatch(err.Error())
	message := err.Error()
	line := 0
	if m != nil {
		message = message[len(m[0]):]
		line, _ = strconv.Atoi(m[1])
		if parserError.MatchString(message) {
			line++
		}
	}
	lines := bytes.Split(data, []byte("\n"))
	if len(data) <= maxBisect {
		line = max(line, firstBadLine(data, lines))
	}
	line = min(max(line, 1), len(lines))
	text := lines[line-1]
	col := len(text) - len(bytes.TrimLeft(text, " ")) + 1
	suggestion := ""
	switch {
	case col <= len(text) && text[col-1] == '\t':
		message, suggestion = "the line is indented with a tab", "YAML is indented with spaces"
	case strings.Contains(message, "mapping values are not allowed"):
		suggestion = "a text that holds a colon and a space must be quoted; check the indentation"
	case strings.Contains(message, "cannot start any token"):
		suggestion = "quote texts that begin with @, ` or %"
	case strings.Contains(message, "did not find expected"):
		suggestion = "check the indentation, and that brackets and quotes are closed"
	}
	r.fail(line, col, "not readable as YAML: "+message, suggestion)
}

// firstBadLine seeks the line with which the text ceases to be readable. It is
// a lower bound: a text that is cut within brackets is not readable either.
func firstBadLine(data []byte, lines [][]byte) int {
	ends := make([]int, len(lines)+1)
	for i, l := range lines {
		ends[i+1] = min(ends[i]+len(l)+1, len(data))
	}
	good, bad := 0, len(lines)
	for good+1 < bad {
		mid := (good + bad) / 2
		if readable(data[:ends[mid]]) {
			good = mid
		} else {
			bad = mid
		}
	}
	return bad
}

func readable(data []byte) bool {
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		if err := d.Decode(&n); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// read turns a YAML node into one of ours.
func (r *reader) read(y *yaml.Node, path string, depth int) *node {
	n := &node{at: place{r.file, max(y.Line, 1), max(y.Column, 1)}}
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		if !r.full {
			r.full = true
			message := fmt.Sprintf("is nested deeper than %d levels", maxDepth)
			if r.nodes > maxNodes {
				message = fmt.Sprintf("the file holds more than %d values, aliases counted as what they stand for", maxNodes)
			}
			if len(path) > maxPath {
				path = path[:maxPath] + "…"
			}
			r.failAt(path, n.at, message, "")
		}
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		return r.alias(y, n, path, depth)
	case yaml.ScalarNode:
		r.scalar(y, n, path)
	case yaml.SequenceNode:
		r.checkTag(y, n, path)
		n.kind = isList
		for i, item := range y.Content {
			if r.full {
				break
			}
			n.items = append(n.items, r.read(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case yaml.MappingNode:
		r.checkTag(y, n, path)
		n.kind = isMap
		r.mapping(y, n, path, depth)
	}
	return n
}

func (r *reader) alias(y *yaml.Node, n *node, path string, depth int) *node {
	for _, o := range r.open {
		if o == y.Alias {
			r.failAt(path, n.at, fmt.Sprintf("*%s stands within itself", y.Value), "")
			return n
		}
	}
	r.open = append(r.open, y.Alias)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	return r.read(y.Alias, path, depth)
}

func (r *reader) checkTag(y *yaml.Node, n *node, path string) {
	if tag := y.ShortTag(); tag != "!!map" && tag != "!!seq" {
		r.failAt(path, n.at, fmt.Sprintf("the tag %s is not known here", tag), "remove it")
	}
}

func (r *reader) scalar(y *yaml.Node, n *node, path string) {
	n.kind, n.text = isString, y.Value
	if y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		n.source = y.Value
	}
	switch tag := y.ShortTag(); tag {
	case "!!str", "!!timestamp":
	case "!!null":
		n.kind, n.text = isNull, ""
	case "!!bool":
		var b bool
		if err := y.Decode(&b); err != nil {
			r.failAt(path, n.at, fmt.Sprintf("%s is not a boolean", y.Value), "write true or false")
		}
		n.kind, n.text = isBool, strconv.FormatBool(b)
	case "!!int", "!!float":
		n.kind = isNumber
		text, ok := number(y)
		if !ok {
			text = "0"
			r.failAt(path, n.at, fmt.Sprintf("%s is not a number that can be used: it is too large, or not finite", y.Value), "")
		}
		n.text = text
	default:
		r.failAt(path, n.at, fmt.Sprintf("the tag %s is not known here", tag), "remove it, or quote the text")
	}
}

// number returns a YAML number in JSON, a whole one without point and exponent.
func number(y *yaml.Node) (string, bool) {
	var v any
	if err := y.Decode(&v); err != nil {
		return "", false
	}
	switch v := v.(type) {
	case int, int64:
		return fmt.Sprint(v), true
	case float64:
		if v == math.Trunc(v) {
			return strconv.FormatInt(int64(v), 10), math.Abs(v) < 1<<53
		}
		text, err := json.Marshal(v) // which refuses what is not finite
		return string(text), err == nil
	}
	return "", false
}

// mapping reads the keys of a map, then those that it takes over by <<.
func (r *reader) mapping(y *yaml.Node, n *node, path string, depth int) {
	var merges []*yaml.Node
	seen := make(map[string]int, len(y.Content)/2) // the line of each key
	for i := 0; i+1 < len(y.Content) && !r.full; i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		at := place{r.file, max(k.Line, 1), max(k.Column, 1)}
		if k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge" {
			merges = append(merges, v)
			continue
		}
		key, ok := r.key(k, at, path)
		if !ok {
			continue
		}
		if line, twice := seen[key]; twice {
			r.failAt(joinPath(path, key), at, fmt.Sprintf("the key %q stands here again; it is already on line %d", key, line), "remove one of the two")
			continue
		}
		seen[key] = at.line
		n.fields = append(n.fields, field{key, at, r.read(v, joinPath(path, key), depth+1)})
	}
	for _, m := range merges {
		r.merge(m, n, seen, path, depth)
	}
}

func (r *reader) key(k *yaml.Node, at place, path string) (string, bool) {
	if k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind == yaml.MappingNode && k.Style&yaml.FlowStyle != 0 {
		r.failAt(path, at, "a text that begins with {{ must be quoted", `write "{{…}}"`)
		return "", false
	}
	if k.Kind != yaml.ScalarNode {
		r.failAt(path, at, "a key must be a text", "")
		return "", false
	}
	switch tag := k.ShortTag(); tag {
	case "!!str", "!!timestamp":
		return k.Value, true
	default:
		r.failAt(path, at, fmt.Sprintf("the key %s is not a text", k.Value), fmt.Sprintf("write %q", k.Value))
		return "", false
	}
}

// merge adds to n the keys of a merged map (or list of maps) that it lacks.
func (r *reader) merge(m *yaml.Node, n *node, seen map[string]int, path string, depth int) {
	from := r.read(m, path, depth+1)
	maps := []*node{from}
	if from.kind == isList {
		maps = from.items
	}
	for _, from := range maps {
		if from.kind != isMap && !r.full {
			r.failAt(path, from.at, "<< takes over a map or a list of maps, and this is "+from.kind.String(), "")
		}
		for _, f := range from.fields {
			if _, own := seen[f.key]; !own {
				seen[f.key] = f.at.line
				n.fields = append(n.fields, f)
			}
		}
	}
}
