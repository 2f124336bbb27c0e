package root

import (
	"errors"
	"fmt"
)

// Code tells why a path was refused.
type Code int

// The reasons for which a path is refused. There is no zero code: an [Error] always has a reason.
const (
	// Outside: the path leads out of the root, at its end or on its way.
	Outside Code = iota + 1
	// Blocked: an ignore rule hides the path; it is neither read nor listed nor written.
	Blocked
	// Protected: the path may be read, never written, moved or deleted.
	Protected
	// Invalid: the name is not one that can be used.
	Invalid
	// Special: the path is a pipe, a socket or a device.
	Special
	// BadRules: a rule file cannot be read, so that everything is denied.
	BadRules
	// Changed: what was opened is not what was judged, because the folder changed meanwhile.
	Changed
)

var codeNames = [...]string{"unknown", "outside", "blocked", "protected", "invalid", "special", "bad_rules", "changed"}

// String is the code in lower case, such as "outside".
func (c Code) String() string {
	if c < 0 || int(c) >= len(codeNames) {
		return codeNames[0]
	}
	return codeNames[c]
}

// Error is a refused path. Reason is a sentence that says what is wrong and what would be right.
type Error struct {
	Path   string // as it was given
	Code   Code
	Reason string
}

// Error is the path and the reason, fit to be read by a model.
func (e *Error) Error() string { return fmt.Sprintf("path %q: %s", e.Path, e.Reason) }

// CodeOf is the code of the first [Error] in err's chain; zero when there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// ErrTooMany is wrapped by the error of a walk, or of a check before a deletion, that met more entries than its limit.
var ErrTooMany = errors.New("too many entries")

func refuse(path string, code Code, format string, args ...any) *Error {
	return &Error{Path: path, Code: code, Reason: fmt.Sprintf(format, args...)}
}
