package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// A Code classifies errors (SPEC X4).
type Code string

// The codes that a model may read.
const (
	CodeNotFound     Code = "tool_not_found"
	CodeNotVisible   Code = "not_visible"
	CodeValidation   Code = "validation_error"
	CodePermission   Code = "permission_denied"
	CodeDenied       Code = "approval_denied"
	CodeApprovalLate Code = "approval_timeout"
	CodeIgnoredPath  Code = "ignored_path"
	CodeRateLimited  Code = "rate_limited"
	CodeRepetition   Code = "repetition"
	CodeBudget       Code = "budget_exceeded"
	CodeTimeout      Code = "timeout"
	CodeCancelled    Code = "cancelled"
	CodeStaleFile    Code = "stale_file"
	CodeRuntime      Code = "runtime_error"
	CodeExternal     Code = "external_service_error"
)

// Refusal reports whether the code says that the call was not allowed to run,
// rather than that it ran and failed.
func (c Code) Refusal() bool {
	switch c {
	case CodeNotVisible, CodePermission, CodeDenied, CodeApprovalLate, CodeIgnoredPath,
		CodeRateLimited, CodeRepetition, CodeBudget:
		return true
	}
	return false
}

// An Error is why a call failed, in words for the model.
type Error struct {
	Code      Code            `json:"code"`
	Message   string          `json:"message"`
	Details   json.RawMessage `json:"details,omitempty"` // depends on the code: problems, candidates, a schema, a wait
	Retryable bool            `json:"retryable"`         // the same call may succeed later
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Errorf returns an Error with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With returns e with details, which must encode as JSON.
func (e *Error) With(details any) *Error {
	c := *e
	if data, err := Encode(details); err == nil {
		c.Details = data
	}
	return &c
}

// Retry returns e marked as retryable.
func (e *Error) Retry() *Error {
	c := *e
	c.Retryable = true
	return &c
}

// AsError returns err as an *Error: itself if it is one, a timeout or a
// cancellation if it stems from a context, else a runtime_error.
func AsError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return Errorf(CodeTimeout, "%v", err).Retry()
	case errors.Is(err, context.Canceled):
		return Errorf(CodeCancelled, "%v", err)
	}
	return Errorf(CodeRuntime, "%v", err)
}
