// Package approval keeps the calls that wait for somebody's word, and what was said of them.
package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/helve-ai/helve/tool"
)

// A State says what became of a question.
type State string

// The states. Only Waiting can be answered, and only Approved runs the call.
const (
	Waiting   State = "waiting"
	Approved  State = "approved"
	Denied    State = "denied"
	TimedOut  State = "denied-by-timeout"
	Restarted State = "denied-by-restart" // the process that would have run the call has ended
	Withdrawn State = "withdrawn"         // the call was given up by whoever made it
)

// An Owner is whose call it is. Answers for a session hold for the same owner only.
type Owner struct {
	App     string `json:"app,omitempty"`
	User    string `json:"user,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Profile string `json:"profile,omitempty"`
	Kind    string `json:"kind,omitempty"`
}

// OwnerOf returns the owner of a call.
func OwnerOf(from tool.Origin) Owner {
	return Owner{from.App, from.User, from.Agent, from.Session, from.Profile, string(from.Kind)}
}

// A Question is about one call. Nothing in it is secret: arguments and diff
// are redacted. The arguments that will run are with the process that asks.
type Question struct {
	ID       string          `json:"id"` // cannot be guessed
	Owner    Owner           `json:"owner"`
	Tool     string          `json:"tool"`
	Call     string          `json:"call"`
	Via      []string        `json:"via,omitempty"` // the tools through which it came
	Args     json.RawMessage `json:"args"`
	Diff     string          `json:"diff,omitempty"` // what it would change; "": nobody can tell
	Reasons  []string        `json:"reasons"`        // why it is asked
	Scope    Scope           `json:"scope"`          // of an approval for the session
	Asked    time.Time       `json:"asked"`
	Deadline time.Time       `json:"deadline"` // after which it is denied
	State    State           `json:"state"`
	Answer   *Answer         `json:"answer,omitempty"`

	Runner string `json:"runner"` // the process that waits
}

// A Scope is what an approval for the session covers: calls of the same tool,
// asked about for the same reasons, that a rule covers or whose arguments are
// the same. The zero Scope covers nothing.
type Scope struct {
	Shown string `json:"shown,omitempty"` // in words
	Key   string `json:"key,omitempty"`   // equal for what one approval covers
}

// An Answer is what somebody says of a question. The zero Answer denies.
type Answer struct {
	Approve  bool            `json:"approve"`
	Session  bool            `json:"for_session,omitempty"` // with Approve: and what lies in its scope, for the session
	Args     json.RawMessage `json:"args,omitempty"`        // with Approve: in place of the call's, judged anew; nil: as they are
	Feedback string          `json:"feedback,omitempty"`    // with a denial: for the model
	By       string          `json:"by"`                    // who
	How      string          `json:"how"`                   // such as "in the terminal"
	At       time.Time       `json:"at"`
}

// Who says who answered, and how.
func (a Answer) Who() string {
	how := a.How
	if a.Args != nil {
		how += ", with other arguments"
	}
	if a.Session {
		how += ", for the session"
	}
	if how == "" {
		return a.By
	}
	return a.By + " (" + how + ")"
}

// maxFeedback bounds what a model is told, and maxArgs what is run instead, in bytes.
const (
	maxFeedback = 4000
	maxArgs     = 1 << 20
)

// check returns what is wrong with an answer. What is wrong approves nothing.
func (a Answer) check() error {
	var object map[string]json.RawMessage
	switch {
	case a.By == "":
		return errors.New("an answer must say who gives it")
	case len(a.Feedback) > maxFeedback:
		return fmt.Errorf("the feedback has %d bytes, at most %d are allowed", len(a.Feedback), maxFeedback)
	case len(a.Args) > maxArgs:
		return fmt.Errorf("the arguments have %d bytes, at most %d are allowed", len(a.Args), maxArgs)
	case !a.Approve && (a.Session || a.Args != nil):
		return errors.New("only an approval can be for the session or change the arguments")
	case a.Session && a.Args != nil:
		return errors.New("an approval that changes the arguments is for this call only, not for the session")
	case a.Args != nil && (json.Unmarshal(a.Args, &object) != nil || object == nil):
		return errors.New("the arguments are not a JSON object")
	}
	return nil
}

// A Grant is an approval for a session. It ends with the session, with the
// process in which it was given, after GrantFor, or when it is revoked.
type Grant struct {
	ID      string    `json:"id"`
	Owner   Owner     `json:"owner"`
	Tool    string    `json:"tool"`
	Scope   Scope     `json:"scope"`
	Reasons []string  `json:"reasons"`
	By      string    `json:"by"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Runner  string    `json:"runner"`
}

// The errors of answers that come to nothing.
var (
	// ErrNone: there is no such question, or not for this app.
	ErrNone = errors.New("no such question")
	// ErrOver: it is answered already, or too late.
	ErrOver = errors.New("it is not waiting any more")
	// ErrBad: the answer makes no sense.
	ErrBad = errors.New("this is no answer")
	// ErrMany: too many questions wait.
	ErrMany = errors.New("too many questions wait for answers")
)
