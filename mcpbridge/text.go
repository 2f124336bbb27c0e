package mcpbridge

import (
	"regexp"
	"strings"
	"unicode"
)

// escapes are the sequences by which terminals are controlled.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|.)|\x{9b}[0-?]*[ -/]*[@-~]`)

// printable returns s without terminal escapes and control characters, but
// with its line breaks and tabs.
func printable(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return -1
		}
		return r
	}, escapes.ReplaceAllString(s, ""))
}

// unprintable characters neither show nor join others: controls, marks of
// text direction, characters for private use by nobody, and invalid bytes.
func unprintable(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // overrides of direction
		return true
	case r >= 0xe0000 && r <= 0xe007f: // tags: invisible ASCII
		return true
	case r == unicode.ReplacementChar:
		return true
	}
	return unicode.IsControl(r)
}
