package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxPatternLen  = 32 << 10
	maxPatternSize = 20_000  // of the program of one pattern, in instructions
	maxPatternSum  = 400_000 // of all patterns of one schema
)

// readPattern compiles a pattern of JSON Schema: ECMA-262, as far as RE2 knows
// it. Patterns that would take much memory or time count as unreadable.
func readPattern(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPatternLen {
		return nil, fmt.Errorf("is %d bytes long", len(pattern))
	}
	text := translate(pattern)
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if size(tree) > maxPatternSize {
		return nil, errors.New("is too large when its repetitions are written out")
	}
	return regexp.Compile(text)
}

// size estimates the instructions of a pattern.
func size(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n = min(n+size(sub), maxPatternSum)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(re.Max, re.Min, 1), maxPatternSum)
	}
	return n
}

// translate rewrites \uXXXX and \u{X}, which ECMA knows and Go does not.
func translate(pattern string) string {
	if !strings.Contains(pattern, `\u`) {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); {
		switch {
		case pattern[i] != '\\' || i+1 == len(pattern):
			b.WriteByte(pattern[i])
			i++
		case pattern[i+1] != 'u':
			b.WriteString(pattern[i : i+2])
			i += 2
		default:
			i += 2
			n := codePoint(&b, pattern[i:])
			if n == 0 {
				b.WriteString(`\u`)
			}
			i += n
		}
	}
	return b.String()
}

// codePoint writes the character that follows \u in Go's way and gives the
// length of what it read, 0 if that is none.
func codePoint(b *strings.Builder, s string) int {
	if end := strings.IndexByte(s, '}'); strings.HasPrefix(s, "{") && end > 1 {
		b.WriteString(`\x` + s[:end+1])
		return end + 1
	}
	r := hex4([]byte(s[:min(4, len(s))]))
	if r < 0 {
		return 0
	}
	if utf16.IsSurrogate(r) && len(s) >= 10 && s[4:6] == `\u` {
		if both := utf16.DecodeRune(r, hex4([]byte(s[6:10]))); both != utf8.RuneError {
			fmt.Fprintf(b, `\x{%x}`, both)
			return 10
		}
	}
	fmt.Fprintf(b, `\x{%x}`, r)
	return 4
}

// warner reads patterns for the library, and remembers those it cannot read.
type warner struct {
	warnings []string
	seen     map[string]bool
	sum      int
	// sealed is set when the schema is compiled. From then on the library asks
	// only for texts whose format is "regex".
	sealed, strict bool
}

func (w *warner) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w.seen[text] {
		return
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[text] = true
	w.warnings = append(w.warnings, text)
}

func (w *warner) compile(pattern string) (jsonschema.Regexp, error) {
	if w.sealed {
		if !w.strict {
			return anything(pattern), nil
		}
		return readPattern(pattern)
	}
	re, err := readPattern(pattern)
	if err == nil {
		if tree, _ := syntax.Parse(re.String(), syntax.Perl); tree != nil {
			w.sum += size(tree)
		}
		if w.sum <= maxPatternSum {
			return re, nil
		}
		err = errors.New("the patterns of this schema are too large together")
	}
	w.add("the pattern %q is not enforced: %v", pattern, err)
	return anything(pattern), nil
}
