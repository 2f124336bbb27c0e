package command

import (
	"fmt"
	"slices"
	"strings"
)

// reading is a part as a shape understands it.
type reading struct {
	program *Program
	shape   *Shape
	words   []string // the subcommand, fixed by the shape
	globals []string // the words before the subcommand
	rest    []string // the words after it, harmless ones in place of others
	files   []File

	part     Part
	at       int // the next word of part.Argv
	base     string
	seen     []string // options that were given
	operands int      // operands so far, or replaced by options
	given    int      // operands so far
	stopped  bool     // the rest are arguments of the code that runs
}

func read(part Part, program *Program, c candidate) (*reading, *Refusal) {
	r := &reading{program: program, shape: c.shape, words: c.words, part: part, at: 1}
	if err := r.readGlobals(); err != nil {
		return nil, err
	}
	for _, w := range c.words {
		if r.at >= len(part.Argv) || part.Argv[r.at] != w {
			return nil, r.wrongWords()
		}
		r.at++
	}
	if err := r.readRest(); err != nil {
		return nil, err
	}
	if err := r.checkWhole(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *reading) wrongWords() *Refusal {
	name, text := r.part.Argv[0], ""
	if r.at < len(r.part.Argv) {
		text = r.part.Argv[r.at]
	}
	var forms []string
	for _, c := range loaded().byName[name] {
		if form := strings.Join(append([]string{name}, c.words...), " "); !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	return &Refusal{Construct: "subcommand", Text: text, Reason: "this use of " + name + " is not on the allowlist", Remedy: "it knows " + strings.Join(forms, ", ")}
}

// readGlobals reads the options between the program's name and its subcommand.
func (r *reading) readGlobals() *Refusal {
	from := r.at
	for len(r.words) > 0 && r.at < len(r.part.Argv) && strings.HasPrefix(r.part.Argv[r.at], "-") && r.part.Argv[r.at] != r.words[0] {
		word := r.part.Argv[r.at]
		opt, ok := r.program.options[word]
		switch {
		case ok && opt.refused != "":
			return r.refuse("option", word, opt.refused, "")
		case !ok:
			if name, _, cut := strings.Cut(word, "="); cut && r.program.options[name].refused != "" {
				return r.refuse("option", name, r.program.options[name].refused, "")
			}
			return r.wrongWords()
		}
		r.at++
		if _, err := r.values(word, opt); err != nil {
			return err
		}
	}
	r.globals = slices.Clone(r.part.Argv[from:r.at])
	return nil
}

func (r *reading) readRest() *Refusal {
	if r.shape.Style == "test" {
		return r.readTest()
	}
	for r.at < len(r.part.Argv) {
		word := r.part.Argv[r.at]
		isOption := len(word) > 1 && word[0] == '-' && !r.stopped
		if r.shape.Style == "words" {
			_, isOption = r.shape.compiled.options[word]
			isOption = isOption || strings.HasPrefix(word, "-")
		}
		var err *Refusal
		switch {
		case r.shape.Style == "plain":
			err = r.operand(word)
		case r.shape.Style == "loose":
			err = r.loose(word)
		case isOption && word == "--" && r.shape.Style == "":
			r.rest, r.at = append(r.rest, word), r.at+1
			err = r.operandsOnly()
		case isOption:
			err = r.option(word)
		case r.shape.Bundle && r.given == 0 && len(r.seen) == 0:
			err = r.bundle(word)
		default:
			err = r.operand(word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// operandsOnly reads what follows "--". For revisions, what follows are paths.
func (r *reading) operandsOnly() *Refusal {
	for r.at < len(r.part.Argv) {
		if err := r.operand(r.part.Argv[r.at]); err != nil {
			return err
		}
	}
	return nil
}

// option reads the option at r.at, and its values.
func (r *reading) option(word string) *Refusal {
	if _, wild := r.part.glob(r.at); wild && !r.freeText(word) {
		return r.refuse("glob", word, "files would decide which options are given", "quote it with '…'")
	}
	r.at++
	switch {
	case r.shape.Style == "words":
		return r.wordOption(word)
	case r.shape.Style == "go":
		name, value, attached := strings.Cut("-"+strings.TrimLeft(word, "-"), "=")
		return r.longOption(word, name, value, attached)
	case r.shape.Numeric && strings.Trim(word[1:], digits) == "":
		r.rest = append(r.rest, word)
		return nil
	case strings.HasPrefix(word, "--"):
		name, value, attached := strings.Cut(word, "=")
		return r.longOption(word, name, value, attached)
	}
	return r.shortOptions(word)
}

// freeText reports whether word is a long option with its text attached, as in
// --include=*.go: whatever a wildcard in the text becomes, it remains that.
func (r *reading) freeText(word string) bool {
	name, _, attached := strings.Cut(word, "=")
	opt, known := r.shape.compiled.options[name]
	return r.shape.Style == "" && strings.HasPrefix(name, "--") && attached && known &&
		!strings.ContainsAny(name, "*?[") && len(opt.kinds) == 1 && opt.kinds[0].name == "text"
}

func (r *reading) lookup(name string) (option, *Refusal) {
	opt, ok := r.shape.compiled.options[name]
	switch {
	case !ok:
		return opt, r.refuse("option", name, "it is not among the options known to be harmless", r.unabbreviated(name))
	case opt.refused != "":
		return opt, r.refuse("option", name, opt.refused, "")
	}
	r.seen = append(r.seen, name)
	if slices.Contains(r.shape.compiled.operandFrom, name) {
		if r.given == r.operands && r.given > 0 {
			return opt, r.refuse("option", name, "after it the first operand would be a file", "write it before the operands")
		}
		r.operands = max(r.operands, 1)
	}
	return opt, nil
}

// unabbreviated tells which permitted option a shortened one could mean.
func (r *reading) unabbreviated(name string) string {
	var full []string
	for known, opt := range r.shape.compiled.options {
		if opt.refused == "" && len(name) > 3 && strings.HasPrefix(known, name) {
			full = append(full, known)
		}
	}
	if len(full) == 0 {
		return "leave it out"
	}
	slices.Sort(full)
	return "write " + strings.Join(full, " or ") + " in full"
}

func (r *reading) wordOption(word string) *Refusal {
	opt, err := r.lookup(word)
	if err != nil {
		return err
	}
	r.rest = append(r.rest, word)
	return r.takeValues(word, opt)
}

func (r *reading) longOption(word, name, value string, attached bool) *Refusal {
	opt, err := r.lookup(name)
	if err != nil {
		return err
	}
	switch {
	case attached && len(opt.kinds) != 1:
		return r.refuse("option", word, "it does not take one value", "write "+name)
	case attached:
		if err := r.value(name, opt.kinds[0], value); err != nil {
			return err
		}
		r.rest = append(r.rest, word)
		r.end(name)
		return nil
	}
	r.rest = append(r.rest, word)
	if opt.instead != "" {
		r.rest[len(r.rest)-1] = opt.instead
	}
	return r.takeValues(name, opt)
}

// shortOptions reads a cluster such as -la, -n5 or -rn5.
func (r *reading) shortOptions(word string) *Refusal {
	out := "-"
	for i := 1; i < len(word); i++ {
		name := "-" + word[i:i+1]
		opt, err := r.lookup(name)
		if err != nil {
			return err
		}
		if opt.instead != "" {
			out += strings.TrimPrefix(opt.instead, "-")
			continue
		}
		out += word[i : i+1]
		if len(opt.kinds) == 0 {
			continue
		}
		if rest := word[i+1:]; rest != "" || opt.attached {
			if rest != "" {
				if err := r.value(name, opt.kinds[0], rest); err != nil {
					return err
				}
			}
			r.rest = append(r.rest, out+rest)
			if len(opt.kinds) > 1 {
				return r.takeValues(name, option{kinds: opt.kinds[1:]})
			}
			r.end(name)
			return nil
		}
		r.rest = append(r.rest, out)
		return r.takeValues(name, opt)
	}
	r.rest = append(r.rest, out)
	return nil
}

// takeValues reads an option's values from the words that follow.
func (r *reading) takeValues(name string, opt option) *Refusal {
	words, err := r.values(name, opt)
	r.rest = append(r.rest, words...)
	r.end(name)
	return err
}

func (r *reading) values(name string, opt option) ([]string, *Refusal) {
	if opt.attached {
		return nil, nil
	}
	from := r.at
	for _, k := range opt.kinds {
		if r.at >= len(r.part.Argv) {
			if opt.last {
				break
			}
			return nil, r.refuse("option", name, "its value is missing", "")
		}
		word := r.part.Argv[r.at]
		if _, wild := r.part.glob(r.at); wild {
			return nil, r.refuse("glob", word, "files would decide the value of "+name, "quote it with '…'")
		}
		r.at++
		if err := r.value(name, k, word); err != nil {
			return nil, err
		}
		// A program that takes no options after an operand reads this as a file.
		if r.given > 0 && looksLikePath(word) {
			if err := r.file(File{Path: word}); err != nil {
				return nil, err
			}
		}
	}
	return r.part.Argv[from:r.at], nil
}

// end notes that what follows are arguments of the code that an option named.
func (r *reading) end(name string) {
	if slices.Contains(r.shape.compiled.ends, name) {
		r.stopped, r.operands = true, max(r.operands, len(r.shape.compiled.operands)-1)
	}
}

// value checks one value of an option or operand, and notes the files in it.
func (r *reading) value(owner string, k kind, value string) *Refusal {
	if reason := k.check(value); reason != "" {
		return r.refuse("value of "+owner, value, reason, "")
	}
	switch k.name {
	case "path", "rev":
		return r.file(File{Path: value})
	case "write":
		return r.file(File{Path: value, Write: true})
	case "dir":
		err := r.file(File{Path: value})
		r.base = r.inBase(value)
		return err
	case "arg":
		for _, p := range hiddenPaths(value) {
			if err := r.file(File{Path: p, Maybe: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reading) file(f File) *Refusal {
	path := f.Path
	if path == "-" {
		return nil
	}
	if path == "" {
		return r.refuse("path", path, "it is empty", "name a file")
	}
	for _, n := range r.shape.compiled.never {
		if n.match.MatchString(path) {
			return r.refuse("path", path, n.reason, "")
		}
	}
	f.Path = r.inBase(path)
	r.files = append(r.files, f)
	return nil
}

// inBase places a name in the directory that an option moved the program to.
func (r *reading) inBase(path string) string {
	if r.base == "" || path == "" || path[0] == '/' || path[0] == '\\' || len(path) > 1 && path[1] == ':' {
		return path
	}
	return r.base + "/" + path
}

// operand reads the operand at r.at.
func (r *reading) operand(word string) *Refusal {
	c := r.shape.compiled
	place := r.operands
	repeats := c.more && place >= len(c.operands)-1
	if place >= len(c.operands) && !c.more {
		reason := "it takes no operands"
		if len(c.operands) > 0 {
			reason = "there are more operands than this use permits"
		}
		return r.refuse("operand", word, reason, "")
	}
	k := c.operands[min(place, len(c.operands)-1)]
	if _, wild := r.part.glob(r.at); wild && (!repeats || !k.globs()) {
		return r.refuse("glob", word, "files would decide how many operands there are", "quote it with '…', or name the files")
	}
	for _, n := range c.never {
		if n.match.MatchString(word) {
			return r.refuse("operand", word, n.reason, "")
		}
	}
	if err := r.value("operand", k, word); err != nil {
		return err
	}
	r.rest = append(r.rest, word)
	r.at, r.operands, r.given = r.at+1, r.operands+1, r.given+1
	r.stopped = r.stopped || r.shape.Stop
	return nil
}

// loose reads a word of a program that runs project code anyway: only the
// refused options and paths outside the root matter.
func (r *reading) loose(word string) *Refusal {
	if strings.HasPrefix(word, "-") {
		name, _, _ := strings.Cut(word, "=")
		for refused, opt := range r.shape.compiled.options {
			short := len(refused) == 2 && !strings.HasPrefix(word, "--") && strings.Contains(name, refused[1:])
			abbreviated := len(name) > 3 && strings.HasPrefix(name, "--") && strings.HasPrefix(refused, name)
			if opt.refused != "" && (name == refused || short || abbreviated) {
				return r.refuse("option", word, opt.refused, "")
			}
		}
	}
	return r.operand(word)
}

// bundle reads the options of tar's old style, whose values follow in order.
func (r *reading) bundle(word string) *Refusal {
	r.at++
	r.rest = append(r.rest, word)
	for i := range len(word) {
		name := "-" + word[i:i+1]
		opt, err := r.lookup(name)
		if err != nil {
			return err
		}
		if err := r.takeValues(name, opt); err != nil {
			return err
		}
	}
	return nil
}

// checkWhole checks what depends on all of the words.
func (r *reading) checkWhole() *Refusal {
	c := r.shape.compiled
	if len(c.requires) > 0 && !r.gave(c.requires) {
		return r.refuse("option", "", "without "+strings.Join(c.requires, " or ")+" it does more than read", "add it")
	}
	if r.given > 0 && len(c.operandsWith) > 0 && !r.gave(c.operandsWith) {
		return r.refuse("operand", "", "operands are only known to be harmless with "+strings.Join(c.operandsWith, " or "), "add it")
	}
	return nil
}

func (r *reading) gave(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(r.seen, n) })
}

func (r *reading) refuse(construct, text, reason, remedy string) *Refusal {
	name := strings.Join(append(r.part.Argv[:1:1], r.words...), " ")
	return &Refusal{Construct: construct, Text: text, Reason: fmt.Sprintf("%s: %s", name, reason), Remedy: remedy}
}

// fileTests are the operators of test(1) that are followed by a file.
const fileTests = "-b -c -d -e -f -g -G -h -k -L -N -O -p -r -s -S -u -w -x"

// readTest reads the operators and operands of test(1) and [.
func (r *reading) readTest() *Refusal {
	args := r.part.Argv[r.at:]
	if len(r.part.Globs) > 0 {
		return r.refuse("glob", r.part.Argv[r.part.Globs[0].Arg], "files would decide what is tested", "quote it with '…', or name the file")
	}
	if r.part.Argv[0] == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			return r.refuse("operand", "", "the closing ] is missing", "")
		}
		args = args[:len(args)-1]
	}
	for i, word := range args {
		if word == "-v" || word == "-R" {
			return r.refuse("option", word, "shells evaluate what follows it", "")
		}
		var paths []string
		switch {
		case slices.Contains(strings.Fields(fileTests), word) && i+1 < len(args):
			paths = args[i+1 : i+2]
		case slices.Contains([]string{"-nt", "-ot", "-ef"}, word) && i > 0 && i+1 < len(args):
			paths = []string{args[i-1], args[i+1]}
		}
		for _, p := range paths {
			if err := r.file(File{Path: p}); p != "" && err != nil {
				return err
			}
		}
	}
	r.rest, r.at = r.part.Argv[r.at:], len(r.part.Argv)
	return nil
}
