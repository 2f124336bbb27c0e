package command

import (
	"path"
	"slices"
	"strings"
)

// Pattern is the condition of a policy rule on a command: "git status*",
// "npm run test:*", "go test ./...".
//
// It is read as words by the rules of [Parse] and compared with a command word
// by word, so it never matches across a word's end. A last word "*", or one
// that ends in a letter, digit or ) and a "*" ("status*"), stands for that word
// and any further arguments. A "*" anywhere else matches a piece of one word:
// not an option, unless the pattern's word begins with "-", and no path that
// climbs by "..". Without a "*" at its end a pattern matches exactly.
type Pattern struct {
	words []string // with an unquoted * as \x00
	open  bool     // further arguments may follow
	reads bool     // and the words are a command that only reads
}

// ParsePattern reads a pattern. Rules should be read when they are loaded, so
// that one that can never match is an error and not a rule without effect.
func ParsePattern(text string) (*Pattern, error) {
	line, err := Parse(patternText(text))
	if err != nil {
		return nil, err
	}
	if line.Compound() {
		return nil, &Refusal{Construct: "operator", Text: line.Parts[1].Joined, Part: 2, Reason: "a pattern describes one command", Remedy: "write a rule for each"}
	}
	part, p := line.Parts[0], &Pattern{}
	for i, arg := range part.Argv {
		if glob, ok := part.glob(i); ok {
			arg = wildcards(glob)
		}
		p.words = append(p.words, arg)
	}
	p.openEnd()
	if len(p.words) > 0 && strings.Contains(p.words[0], "\x00") {
		return nil, &Refusal{Construct: "pattern", Text: text, Reason: "the program's name is not spelled out", Remedy: "write a rule for each program"}
	}
	for operands := 0; p.open && !p.reads && operands <= 2; operands++ {
		p.reads = onlyReads(Part{Argv: append(slices.Clone(p.words), slices.Repeat([]string{"a.txt"}, operands)...)})
	}
	return p, nil
}

// onlyReads reports whether the passive profile permits a command, wherever its
// files are, as a shell would run it: for which the name of a file that a glob
// finds may be an option.
func onlyReads(part Part) bool {
	if len(part.Argv) == 0 {
		return false
	}
	for i, arg := range part.Argv {
		if arg == "--" {
			break
		}
		if _, wild := part.glob(i); wild && strings.ContainsAny(arg[:1], "*?[") {
			return false
		}
	}
	_, err := Rules{Profile: Passive, Resolve: func(string) error { return nil }}.judge(part)
	return err == nil
}

// patternText makes a pattern whose first word ends in * one that [Parse]
// reads: a program's name cannot hold a glob.
func patternText(text string) string {
	text = strings.TrimSpace(text)
	if name, ok := strings.CutSuffix(text, "*"); ok && name != "" && !strings.ContainsAny(name, " \t\n") {
		return name + " *"
	}
	return text
}

// wildcards turns the notation of path.Match into text with \x00 for *.
func wildcards(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch {
		case glob[i] == '\\' && i+1 < len(glob):
			i++
			b.WriteByte(glob[i])
		case glob[i] == '*':
			b.WriteByte(0)
		default:
			b.WriteByte(glob[i])
		}
	}
	return b.String()
}

// openEnd recognises a last word that stands for any further arguments.
func (p *Pattern) openEnd() {
	last := len(p.words) - 1
	stem, ok := strings.CutSuffix(p.words[last], "\x00")
	switch {
	case !ok:
	case stem == "":
		p.words, p.open = p.words[:last], true
	case !strings.Contains(stem, "\x00") && endsWord(stem):
		p.words[last], p.open = stem, true
	}
}

func endsWord(stem string) bool {
	c := stem[len(stem)-1]
	return isLetter(c) || c >= '0' && c <= '9' || c == ')' || c >= 0x80
}

// Match reports whether the pattern describes the part. The program must be
// named as in the pattern: a path never matches a bare name.
func (p *Pattern) Match(part Part) bool {
	if len(part.Argv) < len(p.words) || len(part.Argv) > len(p.words) && !p.open {
		return false
	}
	for i, w := range p.words {
		if !matchWord(w, part.Argv[i]) {
			return false
		}
	}
	return len(p.words) > 0
}

// MatchAll reports whether the pattern describes every part of the line: the
// question for rules that grant. Where the words that a pattern spells out only
// read, the arguments that may follow are those with which the command still
// does: "git log*" is not about git log --output=FILE, which writes, nor
// "rg *" about rg --pre, which runs. A pattern that spells the option is.
func (p *Pattern) MatchAll(line *Line) bool {
	for _, part := range line.Parts {
		if !p.Match(part) || p.reads && !onlyReads(part) {
			return false
		}
	}
	return len(line.Parts) > 0
}

// MatchAny reports whether the pattern describes some part of the line: the
// question for rules that deny or ask. It is asked generously: a program named
// by a path counts by its last element too, options before a subcommand do not
// hide it (git -C . push), nor do programs that start another (env, timeout,
// xargs), nor a shell that is given a text (sh -c), whatever the text is if it
// cannot be read.
func (p *Pattern) MatchAny(line *Line) bool { return p.matchAny(line, 0) }

func (p *Pattern) matchAny(line *Line, depth int) bool {
	return slices.ContainsFunc(line.Parts, func(part Part) bool { return p.Match(part) || p.within(part.Argv, depth) })
}

// starters are programs that start the one that their arguments name; of those
// that are true, an argument may be a text for a shell.
var starters = map[string]bool{
	"env": true, "eval": true, "trap": true, "sh": true, "bash": true, "dash": true, "ash": true, "zsh": true, "ksh": true, "fish": true, "busybox": true, "toybox": true,
	"su": true, "runuser": true, "script": true, "watch": true, "parallel": true, "flock": true, "xargs": true, "ssh": true,
	"command": false, "exec": false, "builtin": false, "nohup": false, "timeout": false, "nice": false, "ionice": false, "setsid": false, "stdbuf": false,
	"time": false, "sudo": false, "doas": false, "find": false, "fd": false, "chroot": false, "unshare": false, "nsenter": false, "strace": false,
	"ltrace": false, "chrt": false, "taskset": false, "systemd-run": false, "proot": false, "fakeroot": false, "setarch": false, "bwrap": false, "firejail": false,
}

// within reports whether the pattern describes a command, or one that it starts.
func (p *Pattern) within(argv []string, depth int) bool {
	if len(argv) == 0 {
		return false
	}
	name := path.Base(strings.ReplaceAll(argv[0], `\`, "/"))
	for from := 1; from <= len(argv); from++ {
		if p.Match(Part{Argv: append([]string{name}, argv[from:]...)}) {
			return true
		}
		if from < len(argv) && !strings.HasPrefix(argv[from], "-") && !strings.HasPrefix(argv[from-1], "-") {
			break // what stands here is no option, nor the value of one
		}
	}
	text, starts := starters[name]
	if !starts {
		return false
	}
	for i, arg := range argv[1:] {
		if p.within(argv[i+1:], depth) {
			return true
		}
		if text && p.inText(arg, depth) {
			return true
		}
	}
	return false
}

// inText reports whether an argument is a text for a shell that holds what the
// pattern describes, also behind the option to which it is attached.
func (p *Pattern) inText(arg string, depth int) bool {
	if !strings.ContainsAny(arg, " \t\n;|&`$(<>") {
		return false
	}
	if depth >= 3 {
		return true
	}
	texts := []string{arg}
	if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
		texts = append(texts, value)
	}
	if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
		texts = append(texts, arg[2:])
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		line, err := Parse(text)
		return err != nil || p.matchAny(line, depth+1)
	})
}

// Match reports whether pattern describes the part; see [Pattern]. A pattern
// that cannot be read matches nothing.
func Match(pattern string, part Part) bool {
	p, err := ParsePattern(pattern)
	return err == nil && p.Match(part)
}

// MatchAll reports whether pattern describes every part of the line. A pattern
// that cannot be read matches nothing.
func MatchAll(pattern string, line *Line) bool {
	p, err := ParsePattern(pattern)
	return err == nil && p.MatchAll(line)
}

// matchWord compares a pattern's word, with \x00 for any text, with a word.
func matchWord(pattern, word string) bool {
	first, rest, wild := strings.Cut(pattern, "\x00")
	if !wild {
		return pattern == word
	}
	if strings.HasPrefix(word, "-") && !strings.HasPrefix(pattern, "-") {
		return false
	}
	for _, element := range strings.Split(strings.ReplaceAll(word, `\`, "/"), "/") {
		if element == ".." {
			return false
		}
	}
	word, ok := strings.CutPrefix(word, first)
	if !ok {
		return false
	}
	pieces := strings.Split(rest, "\x00")
	last := pieces[len(pieces)-1]
	for _, piece := range pieces[:len(pieces)-1] {
		_, after, found := strings.Cut(word, piece)
		if !found {
			return false
		}
		word = after
	}
	return strings.HasSuffix(word, last)
}
