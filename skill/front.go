package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helve-ai/helve/tool"
)

const (
	maxFront  = 256 << 10 // bytes of a front matter
	maxNodes  = 10_000    // values in it, aliases followed
	maxNested = 64
)

// Split returns the front matter of a SKILL.md as a JSON object, and what
// stands below it. Plain values are read as YAML 1.2 has them, so that a date
// is a text. The line break before the closing dashes is theirs.
func Split(text []byte) (front json.RawMessage, body []byte, err error) { return split(text, "") }

// split is Split for a front matter that ends with end.
func split(text []byte, end string) (front json.RawMessage, body []byte, err error) {
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(text, []byte("---\n"))
	if !ok {
		return nil, nil, errors.New("does not begin with front matter")
	}
	head, body, ok := cutFence(rest)
	switch {
	case !ok:
		return nil, nil, errors.New("has a front matter without an end")
	case len(head) > maxFront:
		return nil, nil, fmt.Errorf("has a front matter of more than %d KiB", maxFront>>10)
	}
	var doc yaml.Node
	head = slices.Concat(bytes.TrimSuffix(head, []byte("\n")), []byte(end))
	if err := yaml.Unmarshal(head, &doc); err != nil {
		return nil, nil, fmt.Errorf("has a front matter that is no YAML: %w", err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil, errors.New("has a front matter that is no map")
	}
	r := &reader{}
	v, err := r.value(doc.Content[0], 0)
	if err != nil {
		return nil, nil, fmt.Errorf("has a front matter that cannot be read: %w", err)
	}
	front, err = tool.Encode(v)
	return front, body, err
}

// cutFence cuts a text at its first line of three dashes.
func cutFence(text []byte) (before, after []byte, ok bool) {
	for at := 0; at < len(text); {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if string(bytes.TrimRight(text[at:end], " \t\n")) == "---" {
			return text[:at], text[end:], true
		}
		at = end
	}
	return nil, nil, false
}

// A reader makes JSON of YAML.
type reader struct{ nodes int }

func (r *reader) value(n *yaml.Node, depth int) (any, error) {
	if r.nodes++; r.nodes > maxNodes || depth > maxNested {
		return nil, fmt.Errorf("it has more than %d values, or is nested more than %d deep", maxNodes, maxNested)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case yaml.ScalarNode:
		return scalar(n), nil
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			v, err := r.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, twice := out[key.Value]; twice || key.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("line %d: the key %.60q stands there twice, or is no text", key.Line+1, key.Value)
			}
			v, err := r.value(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			out[key.Value] = v
		}
		return out, nil
	}
	return nil, fmt.Errorf("line %d: it is no value", n.Line+1)
}

var (
	integer = regexp.MustCompile(`^[-+]?[0-9]+$`)
	based   = regexp.MustCompile(`^0(?:o[0-7]+|x[0-9a-fA-F]+)$`)
	float   = regexp.MustCompile(`^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?$`)
)

// scalar returns a plain value by the core schema of YAML 1.2; one in quotes,
// or with a tag of text, is a text.
func scalar(n *yaml.Node) any {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	if n.Style&quoted != 0 {
		return n.Value
	}
	switch s := n.Value; s {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	default:
		switch {
		case integer.MatchString(s) && len(s) < 400:
			i, _ := new(big.Int).SetString(s, 10) // it has digits only
			return i
		case based.MatchString(s) && len(s) < 400:
			i, _ := new(big.Int).SetString(s, 0) // it has digits of its base only
			return i
		case float.MatchString(s) && len(s) < 400:
			if f, err := json.Number(strings.TrimPrefix(s, "+")).Float64(); err == nil {
				return f
			}
		}
		return s
	}
}

// differ returns a field in which two objects differ; "": there is none. What
// is null is not there.
func differ(a, b json.RawMessage) string {
	var x, y map[string]any
	if decode(a, &x) != nil || decode(b, &y) != nil {
		return "---"
	}
	fields := maps.Clone(x)
	if fields == nil {
		fields = map[string]any{}
	}
	maps.Copy(fields, y)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if !same(x[field], y[field]) {
			return field
		}
	}
	return ""
}

func decode(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}

func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, same)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, same)
	case json.Number:
		y, ok := b.(json.Number)
		return ok && sameNumber(x.String(), y.String())
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

func sameNumber(a, b string) bool {
	if a == b || len(a) > 400 || len(b) > 400 {
		return a == b
	}
	if integer.MatchString(a) && integer.MatchString(b) {
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		return x.Cmp(y) == 0
	}
	x, err := json.Number(a).Float64()
	y, errY := json.Number(b).Float64()
	return err == nil && errY == nil && x == y
}
