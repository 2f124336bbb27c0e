package command_test

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/helve-ai/helve/command"
)

// FuzzParse holds the laws of reading: it never panics; what is read is written
// so that it reads the same; and what a profile permits holds, when a shell's
// parser reads it again, nothing but plain words and the four operators.
func FuzzParse(f *testing.F) {
	for _, shape := range command.Shapes() {
		for _, text := range append(shape.Allow, shape.Refuse...) {
			f.Add(text)
		}
	}
	f.Add("ls | cat && pwd || id; wc -l *.go")
	f.Add(`echo "a\$b" 'c' d\ e {x} ~ ! [a]`)
	f.Fuzz(func(t *testing.T, text string) {
		line, err := command.Parse(text)
		if err != nil {
			return
		}
		written := line.String()
		again, err := command.Parse(written)
		if err != nil {
			t.Fatalf("%q is written as %q, which is refused: %v", text, written, err)
		}
		if again.String() != written || len(again.Parts) != len(line.Parts) {
			t.Fatalf("%q is written as %q, and that as %q", text, written, again)
		}
		for i, part := range again.Parts {
			if strings.Join(part.Argv, "\x00") != strings.Join(line.Parts[i].Argv, "\x00") || part.Joined != line.Parts[i].Joined {
				t.Fatalf("%q: part %d reads %q, and again %q", text, i, line.Parts[i].Argv, part.Argv)
			}
		}
		rules := command.Rules{Profile: command.Full, Compound: true, Resolve: strict}
		if rules.Judge(line) != nil {
			return
		}
		demandPlain(t, text)
		demandPlain(t, written)
		for _, part := range line.Parts {
			if argv, _ := command.Prepare(part, command.Full); len(argv) == 0 {
				t.Fatalf("%q is permitted, but cannot be prepared", part)
			}
		}
	})
}

func demandPlain(t *testing.T, text string) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("%q is permitted, but not a shell command: %v", text, err)
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case nil, *syntax.File, *syntax.BinaryCmd, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		case *syntax.Stmt:
			if len(n.Redirs) > 0 || n.Background || n.Negated || n.Coprocess {
				t.Fatalf("%q is permitted with a redirection, in the background or negated", text)
			}
		case *syntax.CallExpr:
			if len(n.Assigns) > 0 {
				t.Fatalf("%q is permitted with an assignment", text)
			}
		default:
			t.Fatalf("%q is permitted with a %T", text, node)
		}
		return true
	})
}
