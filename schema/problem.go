package schema

import (
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Problem is one thing that is wrong with a document.
type Problem struct {
	// Pointer is where: RFC 6901 into the document, "" for the whole.
	Pointer string `json:"pointer"`
	// Message says what, as a sentence whose subject is the place:
	// `is 12, which is more than the maximum of 10`.
	Message string `json:"message"`
	// Expected says shortly what would have been right, where that can be said.
	Expected string `json:"expected,omitempty"`
	// Keyword is the schema's keyword that was broken, or "" where the
	// document could not be read.
	Keyword string `json:"keyword,omitempty"`
}

// String is the problem on one line, with its place.
func (p Problem) String() string {
	if p.Pointer == "" {
		return p.Message
	}
	return p.Pointer + ": " + p.Message
}

const maxProblems = 20

// Validate checks a JSON text. Nil means that it is valid. At most 20 problems
// are given, the most useful first. A text that is not JSON, that repeats a
// key, or that is nested deeper than 1,000 levels is a problem, too; so is
// everything where the schema itself does not compile.
func (s *Schema) Validate(doc []byte) []Problem {
	c := s.compiled()
	if c.accepts(doc) {
		return nil
	}
	return c.validate(doc)
}

// validate asks the library.
func (c *compiled) validate(doc []byte) []Problem {
	lib, err := c.library()
	if err != nil {
		return []Problem{{Message: "cannot be checked: " + err.Error()}}
	}
	v, dups, err := parse(doc, maxDocDepth)
	if err != nil {
		return []Problem{{Message: "is not readable JSON: " + err.Error(), Expected: "JSON"}}
	}
	var out []Problem
	for _, p := range dups {
		out = append(out, Problem{Pointer: p, Message: "stands there twice", Expected: "each key once"})
	}
	if c.tree.knotty && c.tree.tooHard(v) {
		return append(out, Problem{Message: fmt.Sprintf("cannot be checked: the schema would need more than %d steps", maxSteps)})
	}
	err = lib.validate(v.any())
	var verr *jsonschema.ValidationError
	switch {
	case errors.As(err, &verr):
		out = append(out, problemsOf(verr, c.tree, v)...)
	case err != nil:
		out = append(out, Problem{Message: err.Error()})
	}
	if len(out) == 0 {
		return nil
	}
	return out[:min(len(out), maxProblems)]
}

func didYouMean(name string, among []string) string {
	if near := Closest(name, among, 1); len(near) == 1 {
		return fmt.Sprintf(": did you mean %q?", near[0])
	}
	return ""
}
