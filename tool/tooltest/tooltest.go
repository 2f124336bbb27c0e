// Package tooltest checks that tools are defined as their users may expect.
package tooltest

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/helve-ai/helve/tool"
)

var snake = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$`)

// maxDescription is how long a description may be, in characters: it is sent
// with every request.
const maxDescription = 400

// Check fails t for each tool that breaks a rule: the name is module.action in
// snake case; the description is a sentence, and not too long; schemas can be
// read, and the input is closed; examples are valid, and there is one where
// something is required; parameters are described, or speak for themselves;
// effects are stated, and side effects told where there are any; aliases are
// not names of other tools.
func Check(t *testing.T, tools ...*tool.Tool) {
	t.Helper()
	var reg tool.Registry
	if err := reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	set := reg.Set()
	taken := map[string]string{}
	for tl := range set.All() {
		t.Run(tl.Name, func(t *testing.T) {
			checkText(t, tl)
			checkSchemas(t, tl)
			for _, a := range tl.Aliases {
				if other, dup := taken[strings.ToLower(a)]; dup {
					t.Errorf("the alias %q is also one of %s", a, other)
				}
				taken[strings.ToLower(a)] = tl.Name
				if other, ok := set.Lookup(a); ok && other != tl {
					t.Errorf("the alias %q is the name of another tool", a)
				}
			}
		})
	}
}

func checkText(t *testing.T, tl *tool.Tool) {
	t.Helper()
	if !snake.MatchString(tl.Name) {
		t.Error("the name is not module.action in snake case")
	}
	if !strings.HasSuffix(strings.TrimSpace(tl.Description), ".") {
		t.Errorf("the description is no sentence: %q", tl.Description)
	}
	if n := utf8.RuneCountInString(tl.Description); n > maxDescription {
		t.Errorf("the description has %d characters, more than %d; the rest belongs into Help", n, maxDescription)
	}
	if tl.Effect == tool.Unknown && tl.Targets == nil {
		t.Error("the effect is not stated")
	}
	if tl.Effect > tool.Reads && len(tl.SideEffects) == 0 {
		t.Error("what it changes is not told: SideEffects is empty")
	}
}

func checkSchemas(t *testing.T, tl *tool.Tool) {
	t.Helper()
	if err := tl.Input.Compile(); err != nil {
		t.Errorf("input schema: %v", err)
		return
	}
	if w := tl.Input.Warnings(); len(w) > 0 {
		t.Errorf("input schema: %q", w)
	}
	if !tl.Input.Closed() {
		t.Error("the input schema does not refuse unknown properties")
	}
	if tl.Output != nil {
		if err := tl.Output.Compile(); err != nil {
			t.Errorf("output schema: %v", err)
		}
	}
	required := false
	for _, p := range tl.Input.Parameters() {
		required = required || p.Required
	}
	if required && len(tl.Examples) == 0 && !tl.Meta && len(tl.Input.Example()) == 0 {
		t.Error("there is no example")
	}
	for _, e := range tl.Examples {
		if problems := tl.Input.Validate(e); problems != nil {
			t.Errorf("the example %s is not valid: %v", e, problems)
		}
	}
}
