package llm

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Error says who refused what, and what can be done where that is known.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Provider)
	if e.Status != 0 {
		b.WriteString(": " + strconv.Itoa(e.Status))
		if text := http.StatusText(e.Status); text != "" { // some providers have numbers of their own
			b.WriteString(" " + text)
		}
	}
	if e.Code != "" {
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	} else if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, "; it can be asked again in %s", e.RetryAfter)
	}
	return b.String()
}
