package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// A Code classifies errors, in the words that tools use for theirs (SPEC X4).
type Code string

// The codes.
const (
	CodeInvalid   Code = "validation_error"       // the URL is not one that has a single meaning
	CodeRefused   Code = "permission_denied"      // the policy does not allow it
	CodeTimeout   Code = "timeout"                // it took too long
	CodeCancelled Code = "cancelled"              // the caller gave up
	CodeExternal  Code = "external_service_error" // the other side, or the way there, failed
)

// ErrTooLarge is what an Error wraps when a body is longer than the limit.
var ErrTooLarge = errors.New("the body is too large")

// An Error says why an exchange did not come about.
type Error struct {
	URL       string // as it was given, or where a redirect led
	Code      Code
	Reason    string // a sentence without its URL
	Retryable bool   // the same request may succeed later
	Err       error  // the cause, if there is one
}

// Error returns the reason, after the URL.
func (e *Error) Error() string {
	if e.URL == "" {
		return e.Reason
	}
	u := e.URL
	if len(u) > 200 {
		u = u[:200] + "…"
	}
	if q := strconv.Quote(u); q != `"`+u+`"` {
		u = q
	}
	return u + ": " + e.Reason
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// invalid returns an Error about text that is not a URL we accept.
func invalid(raw, format string, args ...any) *Error {
	return &Error{URL: raw, Code: CodeInvalid, Reason: fmt.Sprintf(format, args...)}
}

// refused returns an Error about something the policy does not allow.
func refused(raw, format string, args ...any) *Error {
	return &Error{URL: raw, Code: CodeRefused, Reason: fmt.Sprintf(format, args...)}
}

// AsError returns what a client's error means: the [*Error] within it, or one
// made from the network's. It returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var at string
	var outer *url.Error
	if errors.As(err, &outer) {
		at = outer.URL
	}
	var own *Error
	if errors.As(err, &own) {
		c := *own
		c.URL = or(c.URL, at)
		return &c
	}
	e := explain(err)
	e.URL, e.Err = at, err
	return e
}

// explain says what an error of the network means.
func explain(err error) *Error {
	var (
		outer *url.Error
		dns   *net.DNSError
		cert  *tls.CertificateVerificationError
		plain tls.RecordHeaderError
		op    *net.OpError
		timer interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &timer) && timer.Timeout():
		return &Error{Code: CodeTimeout, Reason: "no complete answer came in time", Retryable: true}
	case errors.Is(err, context.Canceled):
		return &Error{Code: CodeCancelled, Reason: "the request was cancelled"}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &Error{Code: CodeExternal, Reason: fmt.Sprintf("there is no host %s: check the spelling", dns.Name)}
	case errors.As(err, &dns):
		return &Error{Code: CodeExternal, Reason: fmt.Sprintf("the name %s could not be resolved: %s", dns.Name, dns.Err), Retryable: true}
	case errors.As(err, &cert):
		return &Error{Code: CodeExternal, Reason: fmt.Sprintf("the server's certificate is not trusted: %v", cert.Err)}
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return &Error{Code: CodeExternal, Reason: "the server does not speak TLS on this port: an http URL may be meant"}
	case errors.As(err, &op):
		return &Error{Code: CodeExternal, Reason: op.Error(), Retryable: true}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Code: CodeExternal, Reason: "the server closed the connection before its answer was complete", Retryable: true}
	case errors.As(err, &outer):
		return &Error{Code: CodeExternal, Reason: outer.Err.Error()}
	}
	return &Error{Code: CodeExternal, Reason: err.Error()}
}
