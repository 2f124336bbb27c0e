package command

import (
	"regexp"
	"strings"
)

// checkFormat refuses the placeholders with which git runs a signature checker.
func checkFormat(format string) string {
	if strings.Contains(format, "%G") || strings.Contains(format, "%(signature") {
		return "signature placeholders run the program that the repository's configuration names"
	}
	return ""
}

var (
	jqModules = regexp.MustCompile(`\b(import|include|modulemeta|get_search_list|input_filename)\b`)
	jqEnviron = regexp.MustCompile(`\$ENV\b|(^|[^.\w"$])env\b`)
)

// checkJQ refuses filters that read further files or the environment. It looks
// at the text as a whole, strings included: it refuses too much, never too little.
func checkJQ(filter string) string {
	if word := jqModules.FindString(filter); word != "" {
		return "the filter says " + word + ", which reads other files"
	}
	if jqEnviron.MatchString(filter) {
		return "the filter reads environment variables"
	}
	return ""
}

var awkUnsafe = regexp.MustCompile(`system|getline|close|fflush|ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB|FUNCTAB|extension`)

// checkAwk refuses programs with any character or name by which awk writes,
// runs or reads something beside its operands. It looks at the text as a whole,
// strings and expressions included: it refuses too much, never too little.
func checkAwk(program string) string {
	switch {
	case strings.Contains(strings.ReplaceAll(program, "||", ""), "|"):
		return "a | in an awk program can start a program"
	case strings.Contains(program, ">"):
		return "a > in an awk program can write a file; turn a comparison around with <"
	case strings.Contains(program, "@"):
		return "an @ in an awk program can call or load code"
	case strings.Contains(program, "\\\n"):
		return "a continued line in an awk program is not read"
	}
	if word := awkUnsafe.FindString(program); word != "" {
		return "the awk program says " + word + ", which reaches beyond its input"
	}
	return ""
}

// sedScript reads a sed script from the left.
type sedScript struct {
	rest  string
	depth int
}

// checkSed refuses scripts that are not made of addresses and the commands
// = { } d D g G h H l n N p P q Q s x y, with s not writing or running anything.
func checkSed(script string) string {
	s := &sedScript{rest: script}
	for {
		s.skip(" \t\n;")
		if s.rest == "" {
			if s.depth != 0 {
				return "the sed script's braces are not closed"
			}
			return ""
		}
		if reason := s.command(); reason != "" {
			return reason
		}
	}
}

func (s *sedScript) skip(set string) { s.rest = strings.TrimLeft(s.rest, set) }

func (s *sedScript) take(set string) string {
	rest := strings.TrimLeft(s.rest, set)
	taken := s.rest[:len(s.rest)-len(rest)]
	s.rest = rest
	return taken
}

const digits = "0123456789"

func (s *sedScript) command() string {
	if reason := s.addresses(); reason != "" {
		return reason
	}
	if s.rest == "" {
		return "the sed script ends where a command is expected"
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	switch c {
	case '{':
		s.depth++
		return ""
	case '}':
		if s.depth--; s.depth < 0 {
			return "the sed script closes a brace that is not open"
		}
	case 'q', 'Q', 'l':
		s.skip(" \t")
		s.take(digits)
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x':
	case 's', 'y':
		if reason := s.substitute(c); reason != "" {
			return reason
		}
	case 'e', 'w', 'W', 'r', 'R', 'F':
		return "the sed command " + string(c) + " runs a program, or reads or writes another file"
	default:
		return "the sed command " + quote(string(c)) + " is not among those known to only print"
	}
	return s.end()
}

// end demands that a command be over: hidden letters would be more of it.
func (s *sedScript) end() string {
	s.skip(" \t")
	if s.rest == "" || strings.IndexByte("\n;}", s.rest[0]) >= 0 {
		return ""
	}
	return "the sed script goes on with " + quote(s.rest[:1]) + " where a command must end"
}

func (s *sedScript) addresses() string {
	first, reason := s.address(false)
	if reason != "" || !first {
		return reason
	}
	s.skip(" \t")
	if strings.HasPrefix(s.rest, ",") {
		s.rest = s.rest[1:]
		s.skip(" \t")
		second, reason := s.address(true)
		if reason != "" {
			return reason
		}
		if !second {
			return "the sed script's second address is missing"
		}
	}
	s.skip(" \t")
	if strings.HasPrefix(s.rest, "!") {
		s.rest = s.rest[1:]
		s.skip(" \t")
	}
	return ""
}

func (s *sedScript) address(second bool) (found bool, reason string) {
	if s.rest == "" {
		return false, ""
	}
	switch c := s.rest[0]; {
	case strings.IndexByte(digits, c) >= 0:
		s.take(digits)
		if strings.HasPrefix(s.rest, "~") {
			s.rest = s.rest[1:]
			s.take(digits)
		}
		return true, ""
	case c == '$':
		s.rest = s.rest[1:]
		return true, ""
	case second && (c == '+' || c == '~'):
		s.rest = s.rest[1:]
		return s.take(digits) != "", ""
	case c == '/' || c == '\\' && len(s.rest) > 1:
		if c == '\\' {
			s.rest = s.rest[1:]
		}
		if _, reason := s.delimited(true); reason != "" {
			return false, reason
		}
		s.rest = s.rest[1:]
		s.take("IM")
		return true, ""
	}
	return false, ""
}

// delimited reads text up to the delimiter that it begins with, leaving the
// script at what follows the closing one.
func (s *sedScript) delimited(pattern bool) (text, reason string) {
	if s.rest == "" || strings.IndexByte(`/|,:#%!@_+=^.~-&"'`, s.rest[0]) < 0 {
		return "", "the sed script has no delimiter that is surely one"
	}
	delim := s.rest[0]
	text, ok := s.until(1, delim)
	if !ok {
		return "", "the sed script has no closing " + quote(string(delim))
	}
	if strings.Contains(text, `\c`) || pattern && (strings.Contains(text, "\n") || openBracket(text)) {
		return "", "implementations of sed disagree where the expression " + quote(text) + " ends"
	}
	s.rest = s.rest[1+len(text):]
	return text, ""
}

// until returns the text from the place at to the next delimiter that no
// backslash precedes.
func (s *sedScript) until(at int, delim byte) (string, bool) {
	for i := at; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case delim:
			return s.rest[at:i], true
		}
	}
	return "", false
}

// openBracket reports whether a regular expression ends inside a bracket
// expression, in which some implementations do not see the delimiter.
func openBracket(re string) bool {
	for i := 0; i < len(re); i++ {
		switch re[i] {
		case '\\':
			i++
		case '[':
			length := bracket(re[i:])
			if length == 0 {
				return true
			}
			i += length - 1
		}
	}
	return false
}

// bracket returns the length of the bracket expression that re begins with, or
// 0 if it is not closed.
func bracket(re string) int {
	i := 1
	if i < len(re) && re[i] == '^' {
		i++
	}
	if i < len(re) && re[i] == ']' {
		i++
	}
	for ; i < len(re); i++ {
		if re[i] == ']' {
			return i + 1
		}
		if strings.HasPrefix(re[i:], `\]`) {
			return 0
		}
		if re[i] == '[' && i+1 < len(re) && strings.IndexByte(":.=", re[i+1]) >= 0 {
			end := strings.Index(re[i+2:], re[i+1:i+2]+"]")
			if end < 0 {
				return 0
			}
			i += 2 + end + 1
		}
	}
	return 0
}

func (s *sedScript) substitute(c byte) string {
	if _, reason := s.delimited(c == 's'); reason != "" {
		return reason
	}
	// The closing delimiter of the first text opens the second.
	if _, reason := s.delimited(false); reason != "" {
		return reason
	}
	s.rest = s.rest[1:]
	if c == 'y' {
		return ""
	}
	s.take("gpiIM" + digits)
	if s.rest != "" && strings.IndexByte("emwW", s.rest[0]) >= 0 {
		if s.rest[0] == 'm' {
			return "the flag m of s is written M"
		}
		return "the flag " + s.rest[:1] + " of s runs a program or writes a file"
	}
	return ""
}
