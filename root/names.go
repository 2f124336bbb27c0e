package root

import (
	"strings"
	"unicode/utf8"
)

// The names that Helve itself gives a meaning to.
const (
	IgnoreFile  = ".helveignore"  // what it matches is neither read nor listed nor written
	ProtectFile = ".helveprotect" // what it matches is read, never written
	StateDir    = ".helve"        // Helve's own state, always blocked

	gitDir     = ".git"
	tempPrefix = ".helve-tmp-" // files being written: never listed, never opened by name
)

const (
	maxName      = 4096 // bytes of a whole name: PATH_MAX
	maxComponent = 255  // bytes of one component: NAME_MAX
	maxLinks     = 40   // links on one way: the kernel's MAXSYMLINKS
)

// alwaysBlocked reports whether a component is .git, .helve or a file being written, in any spelling that some file
// system takes for it.
func alwaysBlocked(component string) bool {
	if component[0] < utf8.RuneSelf && component[0] != '.' && strings.IndexByte(component, '~') < 0 {
		return false
	}
	name := diskName(component)
	if len(name) >= len(tempPrefix) && strings.EqualFold(name[:len(tempPrefix)], tempPrefix) {
		return true
	}
	return strings.EqualFold(name, gitDir) || strings.EqualFold(name, StateDir) ||
		strings.EqualFold(name, "git~1") || shortName(name, "helve~")
}

// alwaysProtected reports whether rel is one of the two rule files.
func alwaysProtected(rel string) bool {
	if rel == "" || strings.IndexByte(rel, '/') >= 0 {
		return false
	}
	name := diskName(rel)
	return strings.EqualFold(name, IgnoreFile) || strings.EqualFold(name, ProtectFile) ||
		shortName(name, "helvei~") || shortName(name, "helvep~")
}

// shortName reports whether name is prefix and one digit: an 8.3 name.
func shortName(name, prefix string) bool {
	if len(name) != len(prefix)+1 || !strings.EqualFold(name[:len(prefix)], prefix) {
		return false
	}
	return '0' <= name[len(prefix)] && name[len(prefix)] <= '9'
}

// diskName is what HFS+ and NTFS make of a component: without code points that the one ignores, and without the stream
// and the closing dots and spaces that the other does.
func diskName(component string) string {
	name := component
	for i := 0; i < len(name); i++ {
		if name[i] >= utf8.RuneSelf {
			name = strings.Map(dropIgnorable, name)
			break
		}
	}
	// A stream name follows a colon, and a backslash separates components there.
	if i := strings.IndexAny(name, ":\\"); i > 0 {
		name = name[:i]
	}
	return strings.TrimRight(name, ". ")
}

// dropIgnorable drops the code points that HFS+ leaves out of comparisons: the list of git's utf8.c.
func dropIgnorable(r rune) rune {
	switch {
	case 0x200c <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x206a <= r && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}

// checkName refuses names that are no names, before anything is looked up.
func checkName(name string) *Error {
	switch {
	case name == "":
		return refuse(name, Invalid, `the path is empty; write "." for the root itself`)
	case len(name) > maxName:
		return refuse(name[:64]+"…", Invalid, "the path is %d bytes long; %d is the most", len(name), maxName)
	case !utf8.ValidString(name):
		return refuse(name, Invalid, "the path is not valid UTF-8; write it as UTF-8 text")
	case name[0] == '~' && strings.IndexByte(name, '/') > 0:
		return refuse(name, Invalid, `"~" is not expanded; write a path relative to the root, or "./%s" when a folder is really called so`, name)
	}
	start := 0
	for i := 0; i <= len(name); i++ {
		if i == len(name) || name[i] == '/' {
			if i-start > maxComponent {
				return refuse(name, Invalid, "a component of the path is %d bytes long; %d is the most", i-start, maxComponent)
			}
			start = i + 1
		} else if name[i] < ' ' || name[i] == 0x7f {
			return refuse(name, Invalid, "the path holds the control character %#02x at byte %d; remove it", name[i], i)
		}
	}
	return nil
}

// addressable reports whether a file of this name can be named to Resolve.
func addressable(component string) bool {
	if len(component) > maxComponent || !utf8.ValidString(component) {
		return false
	}
	for i := 0; i < len(component); i++ {
		if component[i] < ' ' || component[i] == 0x7f {
			return false
		}
	}
	return true
}
