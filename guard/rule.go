package guard

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/helve-ai/helve/command"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// A Rule names tools, and perhaps the arguments with which it applies.
//
// Conditions are matched by the argument's role and after normalisation: a
// path where it leads within the root, a command by its parsed words, a URL in
// its canonical form, in any of its spellings; anything else as text.
type Rule struct {
	Module  string   // the module; "" if Pattern is set
	Actions []string // globs of actions; none: all
	Pattern string   // a glob of full names
	Args    []Condition
	Reason  string // why, in the operator's words
	Root    *root.Root
}

// A Condition is a pattern that the arguments of a name or role must match.
type Condition struct {
	Arg     string // a top-level argument's name, a role, or a role's first part ("path")
	Pattern string
}

// ParseRule reads a rule's text form: a glob of tool names, optionally with
// conditions, such as
//
//	shell.run(command: "git status*")
//	filesystem.*(path: "docs/**")
func ParseRule(text string) (*Rule, error) {
	name, rest, conditional := strings.Cut(strings.TrimSpace(text), "(")
	r := &Rule{Pattern: strings.TrimSpace(name)}
	if r.Pattern == "" {
		return nil, fmt.Errorf("rule %q: no tool is named; write for example filesystem.write(path: \"docs/**\")", text)
	}
	if _, err := path.Match(r.Pattern, ""); err != nil {
		return nil, fmt.Errorf("rule %q: the pattern of names cannot be read: %v", text, err)
	}
	if !conditional {
		return r, nil
	}
	rest, closed := strings.CutSuffix(strings.TrimSpace(rest), ")")
	if !closed {
		return nil, fmt.Errorf("rule %q: no closing parenthesis", text)
	}
	for rest = strings.TrimSpace(rest); rest != ""; {
		c, more, err := parseCondition(rest)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", text, err)
		}
		r.Args, rest = append(r.Args, c), more
	}
	if len(r.Args) == 0 {
		return nil, fmt.Errorf("rule %q: no condition between the parentheses", text)
	}
	return r, nil
}

func parseCondition(s string) (Condition, string, error) {
	key, rest, ok := strings.Cut(s, ":")
	if !ok {
		return Condition{}, "", fmt.Errorf("condition %q: want NAME: \"PATTERN\"", s)
	}
	c := Condition{Arg: strings.TrimSpace(key)}
	rest = strings.TrimSpace(rest)
	if rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return c, "", fmt.Errorf("condition %q: the pattern must be quoted", s)
	}
	end := strings.IndexByte(rest[1:], rest[0])
	if end < 0 {
		return c, "", fmt.Errorf("condition %q: the quotation is not closed", s)
	}
	c.Pattern = rest[1 : 1+end]
	rest = strings.TrimSpace(rest[end+2:])
	if rest != "" {
		if rest[0] != ',' {
			return c, "", fmt.Errorf("condition %q: want a comma before %q", s, rest)
		}
		rest = strings.TrimSpace(rest[1:])
	}
	return c, rest, nil
}

// Conditional reports whether the rule depends on arguments.
func (r *Rule) Conditional() bool { return len(r.Args) > 0 }

// Names reports whether the rule is about the tool, whatever the arguments.
func (r *Rule) Names(t *tool.Tool) bool {
	if r.Pattern != "" {
		return globName(r.Pattern, t.Name)
	}
	module := t.ModuleName()
	if r.Module != module && !strings.HasPrefix(module, r.Module+".") && !globName(r.Module, module) {
		return false
	}
	return len(r.Actions) == 0 || anyGlob(r.Actions, t.Action()) || anyGlob(r.Actions, t.Name)
}

// String returns the rule as it is written in explanations.
func (r *Rule) String() string {
	var b strings.Builder
	switch {
	case r.Pattern != "":
		b.WriteString(r.Pattern)
	case len(r.Actions) == 0:
		b.WriteString(r.Module + ".*")
	case len(r.Actions) == 1:
		b.WriteString(r.Module + "." + r.Actions[0])
	default:
		b.WriteString(r.Module + ".{" + strings.Join(r.Actions, ",") + "}")
	}
	for i, c := range r.Args {
		b.WriteString([]string{", ", "("}[b2i(i == 0)])
		fmt.Fprintf(&b, "%s: %q", c.Arg, c.Pattern)
	}
	if len(r.Args) > 0 {
		b.WriteByte(')')
	}
	return b.String()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (r *Rule) because(what string) string {
	s := fmt.Sprintf("%s by the rule %s", what, r)
	if r.Reason != "" {
		s += ": " + r.Reason
	}
	return s
}

// A quantifier says which of the values that a condition is about must match:
// rules that restrict apply if any does, rules that permit only if all do.
type quantifier int

const (
	anyValue quantifier = iota
	everyValue
)

func matching(rules []*Rule, c *tool.Call, q quantifier) *Rule {
	for _, r := range rules {
		if r.Names(c.Tool) && r.holds(c, q) {
			return r
		}
	}
	return nil
}

// holds reports whether all conditions of the rule hold. What cannot be
// decided holds for rules that restrict, and does not for those that permit.
func (r *Rule) holds(c *tool.Call, q quantifier) bool {
	for _, cond := range r.Args {
		values, err := valuesOf(c, cond.Arg)
		if err != nil {
			return q == anyValue
		}
		if q == anyValue {
			values = append(values[:len(values):len(values)], defaultsOf(c, cond.Arg)...)
		}
		if !r.matchAll(cond, values, q) {
			return false
		}
	}
	return true
}

func (r *Rule) matchAll(cond Condition, values []schema.Value, q quantifier) bool {
	if len(values) == 0 {
		return false
	}
	for _, v := range values {
		ok, err := r.match(cond.Pattern, v, q)
		if err != nil {
			ok = q == anyValue
		}
		if ok != (q == everyValue) {
			return ok
		}
	}
	return q == everyValue
}

func (r *Rule) match(pattern string, v schema.Value, q quantifier) (bool, error) {
	switch {
	case v.Role.IsPath():
		if r.Root == nil {
			return false, fmt.Errorf("no root folder")
		}
		p, err := r.Root.Resolve(v.Text, access(v.Role))
		if err != nil {
			return false, err
		}
		return matchGlob(strings.TrimPrefix(pattern, "./"), p.Rel, q)
	case v.Role == schema.Command:
		return matchCommand(pattern, v.Text, q)
	case v.Role == schema.URL:
		return matchURL(pattern, v.Text, q)
	}
	plain := globName(pattern, plainText(v))
	if v.IsString || plain != (q == everyValue) {
		return plain, nil
	}
	return globName(pattern, v.Text), nil // as the caller wrote it
}

// matchGlob matches a path or URL. A rule that restricts means by ** at its end
// what is deeper as well: "secret**" is also secret/a/b, where globs take it
// for *.
func matchGlob(pattern, text string, q quantifier) (bool, error) {
	ok, err := doublestar.Match(pattern, text)
	if !ok && err == nil && q == anyValue && strings.HasSuffix(pattern, "**") {
		return doublestar.Match(pattern+"/**", text)
	}
	return ok, err
}

// plainText is the text of a value: of what is no text, its JSON without spaces
// and needless escapes, with whole numbers in plain digits.
func plainText(v schema.Value) string {
	if v.IsString {
		return v.Text
	}
	doc, ok := decodeArgs(v.Raw)
	if !ok {
		return v.Text
	}
	text, err := tool.Encode(plainNumbers(doc))
	if err != nil {
		return v.Text
	}
	return string(text)
}

func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f)
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	}
	return v
}

func matchCommand(pattern, text string, q quantifier) (bool, error) {
	line, err := command.Parse(text)
	if err != nil {
		return false, err
	}
	if q == everyValue {
		return command.MatchAll(pattern, line), nil
	}
	p, err := command.ParsePattern(pattern)
	if err != nil {
		return false, err
	}
	return p.MatchAny(line), nil
}

// valuesOf returns the values that a condition's argument names: those of a
// role, else those of a top-level property.
func valuesOf(c *tool.Call, arg string) ([]schema.Value, error) {
	var out []schema.Value
	for _, v := range c.Trail.Values {
		top, _, _ := strings.Cut(strings.TrimPrefix(v.Pointer, "/"), "/")
		if meant(arg, top, v.Role) {
			out = append(out, v)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	return schema.Property(c.Args, arg)
}

// meant reports whether a condition's argument means a property of that name and role.
func meant(arg, name string, role schema.Role) bool {
	first, _, _ := strings.Cut(string(role), ".")
	return arg == name || role != "" && (arg == string(role) || arg == first)
}

// defaultsOf returns what stands for the arguments that a condition names where
// a call leaves them out.
func defaultsOf(c *tool.Call, arg string) (out []schema.Value) {
	if c.Tool.Input == nil {
		return nil
	}
	var given map[string]json.RawMessage
	for _, p := range c.Tool.Input.Parameters() {
		if p.Default == nil || !meant(arg, p.Name, p.Role) {
			continue
		}
		if given == nil && json.Unmarshal(c.Args, &given) != nil {
			return nil
		}
		if _, found := given[p.Name]; found {
			continue
		}
		v := schema.Value{Role: p.Role, Pointer: "/" + escapePointer(p.Name), Text: string(p.Default), Raw: p.Default}
		v.IsString = json.Unmarshal(p.Default, &v.Text) == nil
		out = append(out, v)
	}
	return out
}

// globName matches names: * stands for any characters, dots and slashes included.
func globName(pattern, s string) bool {
	prefix, rest, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(s, prefix) {
		return false
	}
	s = s[len(prefix):]
	for star {
		var part string
		part, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return s == ""
}
