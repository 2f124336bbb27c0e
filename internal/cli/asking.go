package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/tool"
)

// asker has the person at the terminal answer what tools ask. Nil: there is none.
func (c *cli) asker(lines *lineReader) func(context.Context, *tool.Call, module.Question) (module.Reply, error) {
	return func(ctx context.Context, _ *tool.Call, q module.Question) (module.Reply, error) {
		leave, err := lines.turn(ctx)
		if err != nil {
			return module.Reply{}, err
		}
		defer leave()
		a := asking{c, ctx, lines, time.Now()}
		return a.ask(q)
	}
}

// An asking is one question at the terminal.
type asking struct {
	*cli
	ctx   context.Context // of the question, as long as it is asked
	lines *lineReader
	since time.Time // when it was asked
}

func (a *asking) ask(q module.Question) (module.Reply, error) {
	s := a.style(a.err)
	fmt.Fprintf(a.err, "%s %s\n", s.bold("?"), cleanText(q.Text))
	if q.Content != "" {
		fmt.Fprintf(a.err, "  %s\n", indent(cleanText(q.Content), "  "))
	}
	switch {
	case len(q.Form) > 0:
		return a.form(q)
	case len(q.Choices) > 0:
		return a.choice(q)
	case q.Content != "":
		return a.content(q)
	}
	line, err := a.line("your answer, or an empty line to refuse")
	if line == "" {
		return module.Reply{Denied: true}, err
	}
	return module.Reply{Content: line}, err
}

func (a *asking) line(hint string) (string, error) {
	fmt.Fprintf(a.err, "%s ", a.style(a.err).dim("["+hint+"]"))
	line, err := a.lines.next(a.ctx, a.since)
	return strings.TrimSpace(line), err
}

// content shows a text that is taken as it is, or refused with words.
func (a *asking) content(q module.Question) (module.Reply, error) {
	line, err := a.line("y: take it; = and a text: take that instead; anything else: why not")
	text, instead := strings.CutPrefix(line, "=")
	switch {
	case err != nil:
		return module.Reply{}, err
	case line == "y" || line == "yes":
		return module.Reply{Content: q.Content}, nil
	case instead:
		return module.Reply{Content: strings.TrimSpace(text)}, nil
	}
	return module.Reply{Denied: true, Feedback: line}, nil
}

func (a *asking) choice(q module.Question) (module.Reply, error) {
	for i, choice := range q.Choices {
		fmt.Fprintf(a.err, "  %d  %s\n", i+1, cleanText(choice))
	}
	hint := "a number"
	if q.Multiple {
		hint = "numbers"
	}
	for {
		line, err := a.line(hint + ", or an empty line to refuse")
		if err != nil || line == "" {
			return module.Reply{Denied: true}, err
		}
		chosen, ok := chosenOf(q, line)
		if ok {
			return module.Reply{Chosen: chosen}, nil
		}
		fmt.Fprintf(a.err, "%q is none of them.\n", line)
	}
}

// chosenOf reads numbers, or a choice itself.
func chosenOf(q module.Question, line string) ([]string, bool) {
	if slices.Contains(q.Choices, line) {
		return []string{line}, true
	}
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' })
	if len(fields) > 1 && !q.Multiple {
		return nil, false
	}
	var chosen []string
	for _, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil || n < 1 || n > len(q.Choices) {
			return nil, false
		}
		chosen = append(chosen, q.Choices[n-1])
	}
	return chosen, len(chosen) > 0
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// form asks for the properties of an object one by one.
func (a *asking) form(q module.Question) (module.Reply, error) {
	var s struct {
		Properties map[string]struct {
			Type  string `json:"type"`
			Title string `json:"title"`
			About string `json:"description"`
			Enum  []any  `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(q.Form, &s); err != nil {
		return module.Reply{}, fmt.Errorf("the form is no JSON Schema: %w", err)
	}
	out := map[string]any{}
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := s.Properties[name]
		hint := orElse(p.Type, "text")
		if len(p.Enum) > 0 {
			hint = strings.Trim(fmt.Sprint(p.Enum), "[]")
		}
		fmt.Fprintf(a.err, "  %s %s\n", a.style(a.err).bold(cleanText(orElse(p.Title, name))), cleanText(p.About))
		line, err := a.line(cleanText(hint))
		if err != nil {
			return module.Reply{}, err
		}
		switch {
		case line == "" && slices.Contains(s.Required, name):
			return module.Reply{Denied: true, Feedback: name + " was left empty"}, nil
		case line != "":
			out[name] = entered(p.Type, line)
		}
	}
	raw, err := json.Marshal(out)
	return module.Reply{Form: raw}, err
}

// entered reads a line as a value of a type.
func entered(kind, line string) any {
	switch kind {
	case "integer", "number":
		if json.Valid([]byte(line)) {
			return json.Number(line)
		}
	case "boolean":
		switch strings.ToLower(line) {
		case "y", "yes", "true", "1":
			return true
		case "n", "no", "false", "0":
			return false
		}
	}
	return line
}
