package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helve-ai/helve/schema"
)

// maxRounds bounds how often a file is checked anew without what was wrong:
// the schema reports no more than fullReport problems at a time.
const (
	maxRounds  = 20
	fullReport = 20
)

// checkForm checks a tree against the schema of the whole file.
func (l *loader) checkForm(root *node) {
	s := fileSchema(l.o.Modules)
	all, _ := survey(root)
	bad := map[*node]bool{}
	seen := map[schema.Problem]bool{}
	for range maxRounds {
		left, pointers := without(root, bad)
		found := s.Validate(left.json())
		fresh := false
		for _, p := range found {
			p.Pointer = pointers[p.Pointer]
			at, ok := all[p.Pointer]
			if !ok || seen[p] || p.Keyword == "required" && lacksBad(at.node, bad) {
				continue
			}
			seen[p], fresh = true, true
			if p.Keyword != "required" {
				bad[at.node] = true
			}
			l.report(at, p)
		}
		if len(found) < fullReport || !fresh {
			return
		}
	}
}

// lacksBad reports whether a map lacks something only because it was taken out.
func lacksBad(n *node, bad map[*node]bool) bool {
	return slices.ContainsFunc(n.fields, func(f field) bool { return bad[f.value] })
}

// without returns a copy of the tree that lacks the bad nodes, and the pointers
// of the tree by those of the copy.
func without(root *node, bad map[*node]bool) (*node, map[string]string) {
	pointers := map[string]string{}
	var copyOf func(n *node, now, was string) *node
	copyOf = func(n *node, now, was string) *node {
		pointers[now] = was
		c := *n
		c.fields, c.items = nil, nil
		for _, f := range n.fields {
			if !bad[f.value] {
				key := "/" + escapePointer(f.key)
				f.value = copyOf(f.value, now+key, was+key)
				c.fields = append(c.fields, f)
			}
		}
		for i, item := range n.items {
			if !bad[item] {
				c.items = append(c.items, copyOf(item, fmt.Sprintf("%s/%d", now, len(c.items)), fmt.Sprintf("%s/%d", was, i)))
			}
		}
		return &c
	}
	return copyOf(root, "", ""), pointers
}

// report tells of one problem that the schema found at a spot.
func (l *loader) report(s *spot, p schema.Problem) {
	message, suggestion := p.Message, ""
	if before, near, ok := strings.Cut(message, ": did you mean "); ok {
		message, suggestion = before, "did you mean "+near
	}
	place := s.node.at
	switch p.Keyword {
	case "additionalProperties":
		place = s.at
		message = strings.Replace(message, "unknown property", "unknown key", 1)
		if under(s.segs, "tools.modules.*") {
			l.unknownModule(s)
			return
		}
		if suggestion == "" && p.Expected != "" {
			suggestion = strings.Replace(p.Expected, "one of the properties", "known here are", 1)
		}
	case "required":
		place = s.at
		message = strings.Replace(message, "property", "key", 1)
	case "enum":
		message = strings.Replace(message, ", which is none of the allowed values", ", where "+p.Expected+" is wanted", 1)
	case "type":
		suggestion = typeHint(s.node, p.Expected)
	}
	message, suggestion = inYAML.Replace(message), inYAML.Replace(suggestion)
	if s.node.raw != "" {
		message = strings.ReplaceAll(message, quote(s.node.text), quote(s.node.raw))
	}
	l.fail(place, s.path, message, suggestion)
}

// inYAML puts JSON's words into those of people who write YAML.
var inYAML = strings.NewReplacer("an array", "a list", "an object", "a map", " properties,", " keys,", " property,", " key,")

// typeHint says how a value is written that was taken for another type.
func typeHint(n *node, want string) string {
	want = strings.TrimSuffix(want, " or null")
	switch {
	case want == "boolean" && n.kind == isString && slices.Contains([]string{"yes", "on", "y", "true"}, strings.ToLower(n.text)):
		return "write true"
	case want == "boolean" && n.kind == isString && slices.Contains([]string{"no", "off", "n", "false"}, strings.ToLower(n.text)):
		return "write false"
	case strings.Contains(want, "string") && (n.kind == isNumber || n.kind == isBool):
		return fmt.Sprintf("write %q", n.source)
	case want == "array" && (n.kind == isString || n.kind == isNumber || n.kind == isMap):
		return "write a list, such as [a, b]"
	case (want == "integer" || want == "number") && n.raw != "":
		return "a template always gives a text; write the number itself"
	case (want == "integer" || want == "number") && n.kind == isString && n.source == "" && n.text != "":
		return "write it without quotes"
	}
	return ""
}
