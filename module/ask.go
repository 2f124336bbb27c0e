package module

import (
	"encoding/json"
	"errors"
)

// ErrNobody is the error of a question that nobody is there to answer.
var ErrNobody = errors.New("no user is attached who could be asked")

// A Question is what a tool asks the user on whose behalf it is called.
type Question struct {
	Text     string          // what is asked
	Content  string          // what the user is to look at, and may change; "": nothing
	Choices  []string        // among which the user chooses; none: the answer is a text
	Multiple bool            // several may be chosen
	Form     json.RawMessage // a JSON Schema of an object whose properties are entered one by one; nil: none
}

// A Reply is what the user says.
type Reply struct {
	Denied   bool            // the user will not
	Feedback string          // why, in the user's words; "": they did not say
	Content  string          // the text entered, or Question.Content as the user left it
	Chosen   []string        // of Choices
	Form     json.RawMessage // the object entered; nil: none
}
