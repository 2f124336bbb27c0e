package command

import (
	"fmt"
	"regexp"
	"strings"
)

// kind is what a value may be: a name from the documentation of [Shape], and
// for /…/ the expression.
type kind struct {
	name  string
	match *regexp.Regexp
}

var (
	numberKind = regexp.MustCompile(`^[+-]?[0-9]+[A-Za-z]{0,3}$`)
	nameKind   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)
)

func readKind(text string) (kind, error) {
	switch text {
	case "text", "path", "write", "dir", "rev", "arg", "format", "sed", "awk", "jq":
		return kind{name: text}, nil
	case "number":
		return kind{name: text, match: numberKind}, nil
	case "name":
		return kind{name: text, match: nameKind}, nil
	}
	if inner, ok := strings.CutPrefix(text, "/"); ok && strings.HasSuffix(inner, "/") {
		re, err := regexp.Compile(`^(?:` + strings.TrimSuffix(inner, "/") + `)$`)
		return kind{name: "match", match: re}, err
	}
	return kind{}, fmt.Errorf("kind %q is unknown", text)
}

// globs reports whether a wildcard may stand where the kind is expected.
func (k kind) globs() bool {
	return k.name == "path" || k.name == "text" || k.name == "arg" || k.name == "write"
}

// check returns why value is not of the kind, or nothing.
func (k kind) check(value string) (reason string) {
	if k.match != nil && !k.match.MatchString(value) {
		if k.name == "match" {
			return "the value must match " + k.match.String()
		}
		return "a " + k.name + " is expected there"
	}
	switch k.name {
	case "format":
		return checkFormat(value)
	case "sed":
		return checkSed(value)
	case "awk":
		return checkAwk(value)
	case "jq":
		return checkJQ(value)
	}
	return ""
}

// looksLikePath reports whether text names a file outside the working
// directory: it is absolute, begins at a home directory, or climbs.
func looksLikePath(text string) bool {
	if text == "" {
		return false
	}
	if text[0] == '/' || text[0] == '\\' || text[0] == '~' || len(text) > 1 && text[1] == ':' && isLetter(text[0]) {
		return true
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// hiddenPaths returns what may be a path in an argument of project code: the
// argument itself unless it is an option or an address, and the pieces of it
// that look like paths outside the working directory (--opt=x, -ox, a:x).
func hiddenPaths(arg string) []string {
	var found []string
	if arg != "" && arg[0] != '-' && !strings.Contains(arg, "://") {
		found = append(found, arg)
	}
	for _, piece := range pathPieces(arg) {
		if looksLikePath(piece) {
			found = append(found, piece)
		}
	}
	return found
}

func pathPieces(arg string) []string {
	var pieces []string
	if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
		pieces = append(pieces, arg[2:])
	}
	if rest, ok := strings.CutPrefix(strings.ToLower(arg), "file:"); ok {
		return append(pieces, "/"+strings.TrimLeft(rest, "/"))
	}
	arg = strings.NewReplacer("https://", "", "http://", "").Replace(arg)
	return append(pieces, strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(":,;=@", r) })...)
}
