package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// DefaultMistakes is how many mistakes in a row stop a turn (SPEC X8).
const DefaultMistakes = 3

// Mistakes is what an error tells of the mistakes in a row that it ends.
type Mistakes struct {
	InARow int  `json:"in_a_row"`
	Limit  int  `json:"limit"`
	Stop   bool `json:"stop"` // the turn is to be ended
}

// MistakesOf returns what a result's error tells of mistakes in a row. A loop
// ends its turn on Stop.
func MistakesOf(res *tool.Result) Mistakes {
	var d struct {
		Mistakes Mistakes `json:"mistakes"`
	}
	if res != nil && res.Err != nil && bytes.Contains(res.Err.Details, []byte(`"mistakes"`)) {
		_ = json.Unmarshal(res.Err.Details, &d) // details of another form tell of none
	}
	return d.Mistakes
}

// CountMistakes returns the stage that counts the mistakes that a session
// makes in a row: names and arguments that are wrong, repetitions, tools that
// fail. At the limit (zero: 3; negative: there is none) the error says that
// the turn is to be ended; a success begins anew. Refusals by the policy,
// limits, timeouts and outages are nobody's mistake and change nothing. The
// members of one run_parallel make one mistake at most, and so do the calls of
// one reply (Sessions.Reply). A nil s watches nobody.
func CountMistakes(s *Sessions, callers Callers, limit int) pipeline.Stage {
	if limit == 0 {
		limit = DefaultMistakes
	}
	return pipeline.Stage{
		Name: "mistakes", Doc: "count mistakes in a row",
		Wrap: func(next tool.Handler) tool.Handler {
			if s == nil || limit < 0 || callers == NoCallers {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				res, err := next(ctx, c)
				if err != nil || !callers.include(c.From.Kind) || c.Tool != nil && c.Tool.Targets != nil && c.Trail.Decision != tool.Deny {
					return res, err
				}
				if n := s.outcome(c, res.Err); n > 0 {
					return marked(res, Mistakes{n, limit, n >= limit}), nil
				}
				return res, nil
			}
		},
	}
}

// outcome notes how a call went, and returns how many mistakes in a row there
// were if it was one.
func (s *Sessions) outcome(c *tool.Call, e *tool.Error) int {
	if e != nil && !isMistake(e.Code) {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(&c.From)
	if e == nil {
		m.mistakes, m.batch, m.erred = 0, "", false
		return 0
	}
	if !m.erred && (c.From.Parent == "" || c.From.Parent != m.batch) {
		m.mistakes++
	}
	m.batch, m.erred = c.From.Parent, m.replies > 0
	return m.mistakes
}

// Reply is told that the calls of one reply of a model begin, and returns what
// is told their end. What goes wrong with them before one goes well is one
// mistake: the model has not read yet what was wrong with the first.
func (s *Sessions) Reply(from tool.Origin) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(&from)
	m.replies++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		m.replies--
		m.erred = m.erred && m.replies > 0
	}
}

// Anew forgets the mistakes in a row of a session: somebody has told it how to
// go on.
func (s *Sessions) Anew(from tool.Origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(&from)
	m.mistakes, m.batch, m.erred = 0, "", false
}

func isMistake(code tool.Code) bool {
	switch code {
	case tool.CodeNotFound, tool.CodeNotVisible, tool.CodeValidation, tool.CodeRepetition, tool.CodeRuntime, tool.CodeStaleFile:
		return true
	}
	return false
}

// marked returns res with an error that tells of the mistakes.
func marked(res *tool.Result, m Mistakes) *tool.Result {
	e := *res.Err
	details := map[string]json.RawMessage{}
	if len(e.Details) > 0 && json.Unmarshal(e.Details, &details) != nil {
		return res // details of another form stay as they are
	}
	text, err := tool.Encode(m)
	if err != nil {
		return res
	}
	details["mistakes"] = text
	e = *e.With(details)
	if m.Stop {
		e.Message += fmt.Sprintf("\n(%d calls in a row have failed. Stop, say what is in the way, and ask for help or begin differently.)", m.InARow)
	}
	r := *res
	r.Err = &e
	return &r
}
