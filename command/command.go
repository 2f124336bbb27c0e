// Package command reads a command line without running it: its parts, and whether a profile's allowlist permits each.
package command

import (
	"fmt"
	"strings"
)

// Line is a command line made of simple commands only, joined by the
// operators |, &&, || and ; (a line break counts as ;). It holds no
// expansion, substitution or redirection: those are refused by [Parse].
type Line struct {
	Parts []Part
}

// Compound reports whether the line holds more than one command.
func (l *Line) Compound() bool { return len(l.Parts) > 1 }

// Pipeline reports whether some command of the line reads another's output.
func (l *Line) Pipeline() bool {
	for _, p := range l.Parts {
		if p.Joined == "|" {
			return true
		}
	}
	return false
}

// String writes the line so that [Parse] reads the same parts from it.
func (l *Line) String() string {
	var b strings.Builder
	for i, p := range l.Parts {
		if i > 0 {
			if p.Joined != ";" {
				b.WriteByte(' ')
			}
			b.WriteString(p.Joined)
			b.WriteByte(' ')
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// Part is one simple command.
type Part struct {
	// Argv is the program's name and its arguments, quotes removed. Words with
	// globs stand here as written.
	Argv []string
	// Joined is the operator before the command: "" for the first, else "|",
	// "&&", "||" or ";".
	Joined string
	// Globs are the arguments that a shell would replace by file names.
	// [Expand] replaces them.
	Globs []Glob
}

// Glob is an argument with an unquoted *, ? or [...].
type Glob struct {
	// Arg is the argument's place in Argv.
	Arg int
	// Pattern is the argument in the notation of [path.Match]; characters that
	// were quoted in the command are escaped in it.
	Pattern string
}

// String writes the part as a shell would read it back, globs unquoted.
func (p Part) String() string {
	words := make([]string, len(p.Argv))
	for i, arg := range p.Argv {
		words[i] = quote(arg)
	}
	if len(words) > 0 && nameNeedsQuotes(p.Argv[0]) {
		words[0] = "'" + strings.ReplaceAll(p.Argv[0], "'", `'\''`) + "'"
	}
	for _, g := range p.Globs {
		words[g.Arg] = quoteGlob(g.Pattern)
	}
	return strings.Join(words, " ")
}

// glob returns the pattern of the argument at i, if it has one.
func (p Part) glob(i int) (string, bool) {
	for _, g := range p.Globs {
		if g.Arg == i {
			return g.Pattern, true
		}
	}
	return "", false
}

const plainRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"

func quote(arg string) string {
	if arg != "" && strings.Trim(arg, plainRunes) == "" && !strings.ContainsAny(arg[:1], "=") {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// nameNeedsQuotes reports whether a shell would take an unquoted first word for
// something else than a program's name.
func nameNeedsQuotes(name string) bool {
	const keywords = " if then else elif fi do done case esac while until for in select function time coproc let declare typeset local export readonly nameref "
	return strings.Contains(name, "=") || strings.Contains(keywords, " "+name+" ")
}

// quoteGlob quotes what a pattern holds beside its wildcards.
func quoteGlob(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(quoteByte(pattern[i]))
		case strings.IndexByte("*?[]^!"+plainRunes, c) >= 0 || c >= 0x80:
			b.WriteByte(c)
		default:
			b.WriteString(quoteByte(c))
		}
	}
	return b.String()
}

func quoteByte(c byte) string {
	if c == '\'' {
		return `"'"`
	}
	return "'" + string([]byte{c}) + "'"
}

// Profile names an allowlist. The zero value permits nothing.
type Profile string

const (
	// Passive permits programs that only read and parse: nothing of the
	// project's own code runs, no file changes.
	Passive Profile = "passive"
	// Full adds the execution of project files, tests and package commands.
	Full Profile = "full"
	// Unrestricted has no allowlist: a real shell runs the text.
	Unrestricted Profile = "unrestricted"
)

// Permits reports whether p grants all that q grants. Unknown profiles grant
// nothing and are granted by none.
func (p Profile) Permits(q Profile) bool {
	return p.rank() > 0 && q.rank() > 0 && p.rank() >= q.rank()
}

func (p Profile) rank() int {
	switch p {
	case Passive:
		return 1
	case Full:
		return 2
	case Unrestricted:
		return 3
	}
	return 0
}

// Refusal is why a command line is not read or not permitted.
type Refusal struct {
	// Construct is the kind of thing refused: "variable expansion", "option",
	// "program".
	Construct string
	// Text is the refused piece of the command, as written.
	Text string
	// Reason says why, and Remedy what would be right; Remedy may be empty.
	Reason, Remedy string
	// Part counts the line's commands from 1; 0 means the line as a whole.
	Part int
	// Pos is the byte at which a construct that [Parse] refuses begins; 0 for
	// refusals of [Judge].
	Pos int
	// Needs is the profile that would permit the command, if one would.
	Needs Profile
}

// Error is one sentence: where, what, why, and what would be right.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString("command")
	if r.Part > 0 {
		fmt.Fprintf(&b, " %d", r.Part)
	}
	if r.Pos > 0 {
		fmt.Fprintf(&b, ": byte %d", r.Pos+1)
	}
	fmt.Fprintf(&b, ": %s", r.Construct)
	if r.Text != "" {
		fmt.Fprintf(&b, " %q", r.Text)
	}
	fmt.Fprintf(&b, " refused: %s", r.Reason)
	if r.Remedy != "" {
		fmt.Fprintf(&b, "; %s", r.Remedy)
	}
	return b.String()
}
