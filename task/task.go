// Package task keeps the calls that outlive the requests that made them, and what became of them.
package task

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/helve-ai/helve/tool"
)

// A Status says how far a task is.
type Status string

// The statuses, of which the last three are final.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Over reports whether the status is final.
func (s Status) Over() bool { return s == Completed || s == Failed || s == Cancelled }

// An Owner is who may see a task and cancel it. To all others there is no such task.
type Owner struct {
	App     string `json:"app,omitempty"`
	User    string `json:"user,omitempty"`
	Session string `json:"session,omitempty"`
}

// OwnerOf returns the owner of what a caller begins.
func OwnerOf(from tool.Origin) Owner {
	return Owner{App: from.App, User: from.User, Session: from.Session}
}

// A Task is a call that outlives the request that made it.
type Task struct {
	ID      string    `json:"id"` // cannot be guessed
	Owner   Owner     `json:"owner"`
	Tool    string    `json:"tool"` // as the caller named it
	Status  Status    `json:"status"`
	Message string    `json:"message,omitempty"` // how it goes, or why it ended so
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`

	Keep  time.Duration `json:"keep"`           // how long it is kept after its end; 0: DefaultKeep
	Until time.Time     `json:"until,omitzero"` // it is kept; zero while it runs

	// What it came to, in the form of whoever began it. Result is that of a
	// completed task, Error of a failed one: nil where Message says it all.
	Result json.RawMessage `json:"-"`
	Error  json.RawMessage `json:"-"`

	Runner string `json:"runner,omitempty"` // the table in whose process it runs
	Stop   bool   `json:"stop,omitempty"`   // its owner wants it cancelled
}

// ErrNotFound is the error for tasks that do not exist, exist no longer, or
// belong to another owner.
var ErrNotFound = errors.New("there is no such task (any more)")

// ErrFull is the error of Add for owners who have as many tasks as they may.
var ErrFull = errors.New("too many tasks are kept")

// Interrupted is the message of tasks whose process ended before they did.
const Interrupted = "interrupted: the server ended before the call did; what it had done until then stays done"
