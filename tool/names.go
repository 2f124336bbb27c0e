package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxWire is the longest name that model APIs accept, in bytes (SPEC T4).
const MaxWire = 64

// MaxName is the longest name that a tool may have, in bytes.
const MaxName = 256

// Wire returns the form of name that model APIs accept (^[a-zA-Z0-9_-]+$, 64
// bytes at most): dots become two underscores. A name that this would not
// bring back unharmed gets a stable suffix made from its hash; Set.Resolve
// knows every form.
func Wire(name string) string {
	if w := strings.ReplaceAll(name, ".", "__"); reversible(name) && len(w) <= MaxWire {
		return w
	}
	return hashedWire(name, 8)
}

// reversible reports whether replacing dots by two underscores can be undone.
func reversible(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !wireByte(c) && c != '.' {
			return false
		}
		if i > 0 && (c == '_' && (name[i-1] == '_' || name[i-1] == '.') || c == '.' && name[i-1] == '_') {
			return false
		}
	}
	return name != ""
}

func wireByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// hashedWire returns a readable form of name that ends in n hexadecimal digits of its hash.
func hashedWire(name string, n int) string {
	sum := sha256.Sum256([]byte(name))
	var b strings.Builder
	for _, r := range strings.ReplaceAll(name, ".", "__") {
		if b.Len() >= MaxWire-n-1 {
			break
		}
		if r < utf8.RuneSelf && wireByte(byte(r)) {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	return b.String() + "_" + hex.EncodeToString(sum[:])[:n]
}

// checkName returns an error if no tool may have this name.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a tool has no name")
	case len(name) > MaxName:
		return fmt.Errorf("tool %.40q…: the name has %d bytes; at most %d are allowed", name, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("tool %q: the name is not valid UTF-8", name)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("tool %q: the name begins or ends with white space", name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("tool %q: the name has the unprintable character %U", name, r)
		}
	}
	return nil
}

// callable reports whether an alias has the form of a name, so that calls by it resolve.
func callable(alias string) bool {
	return alias != "" && !strings.ContainsFunc(alias, unicode.IsSpace)
}
