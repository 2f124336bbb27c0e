// Package script is a model that says what was declared, for demonstrations and tests of whole apps.
package script

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

// A Script is what a model says, turn by turn. Which turn it is follows from
// the conversation: as many as the model has spoken in it. So a conversation
// that is taken up again goes on where it was.
type Script struct {
	Turns []Turn `json:"turns"`
	Pause int    `json:"pause,omitempty"` // milliseconds between words; zero: none
}

// A Turn is one answer.
type Turn struct {
	// Expect is a regular expression that what was said last to the model must
	// match: the user's words, or the results of its calls. Otherwise the turn
	// is an error that shows both. "": nothing is expected.
	Expect string     `json:"expect,omitempty"`
	Think  string     `json:"think,omitempty"`
	Say    string     `json:"say,omitempty"` // [[last]] stands for what was said last to the model, [[1]] to [[9]] for what the groups of Expect matched
	Calls  []Call     `json:"calls,omitempty"`
	Fail   string     `json:"fail,omitempty"`  // in place of the rest: the provider fails so
	Usage  *llm.Usage `json:"usage,omitempty"` // what the provider says that the turn cost
}

// A Call is a call that the model makes.
type Call struct {
	Tool string          `json:"tool"`           // its name
	Args json.RawMessage `json:"args,omitempty"` // [[last]] and the groups stand as in Say
}

// Parse reads a script, and says what in it is wrong.
func Parse(raw json.RawMessage) (*Script, error) {
	var s Script
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	if len(s.Turns) == 0 {
		return nil, fmt.Errorf("script: turns: there are none; list what the model says, as in {turns: [{say: Hello.}]}")
	}
	for i, t := range s.Turns {
		if _, err := regexp.Compile(t.Expect); err != nil {
			return nil, fmt.Errorf("script: turns[%d].expect: %w", i, err)
		}
		for j, c := range t.Calls {
			if c.Tool == "" {
				return nil, fmt.Errorf("script: turns[%d].calls[%d]: has no tool", i, j)
			}
		}
	}
	return &s, nil
}

// Generate says the turn that comes next.
func (s *Script) Generate(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		n := spoken(req.Messages)
		if n >= len(s.Turns) {
			yield(llm.Chunk{}, failure("the script has %d turns, and this is turn %d", len(s.Turns), n+1))
			return
		}
		t, last := &s.Turns[n], lastSaid(req.Messages)
		re, err := regexp.Compile(t.Expect)
		if err != nil {
			yield(llm.Chunk{}, failure("turn %d: expect: %v", n+1, err))
			return
		}
		groups := re.FindStringSubmatch(last)
		if groups == nil {
			yield(llm.Chunk{}, failure("turn %d expects %q, but was told %.300q", n+1, t.Expect, last))
			return
		}
		if t.Fail != "" {
			yield(llm.Chunk{}, failure("%s", t.Fail))
			return
		}
		s.say(ctx, t, n, standIns(last, groups), yield)
	}
}

func failure(format string, args ...any) error {
	return &llm.Error{Provider: "script", Message: fmt.Sprintf(format, args...)}
}

// spoken returns how often the model has spoken.
func spoken(all []llm.Message) int {
	n := 0
	for _, m := range all {
		if m.Role == llm.Assistant {
			n++
		}
	}
	return n
}

// lastSaid returns what was said last to the model.
func lastSaid(all []llm.Message) string {
	if len(all) == 0 {
		return ""
	}
	m := &all[len(all)-1]
	texts := []string{m.Text()}
	for _, a := range m.Answers {
		texts = append(texts, (&tool.Result{Content: a.Content}).JoinText())
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// A standIn is what stands in a turn for something that was said to the model.
type standIn struct{ name, text string }

func standIns(last string, groups []string) []standIn {
	all := []standIn{{"[[last]]", last}}
	for i, g := range groups[1:min(len(groups), 10)] {
		all = append(all, standIn{fmt.Sprintf("[[%d]]", i+1), g})
	}
	return all
}

// fill puts in what stands in; in JSON, as it is written within quotes.
func fill(text string, all []standIn, quoted bool) string {
	var pairs []string
	for _, s := range all {
		if quoted {
			raw, _ := tool.Encode(s.text) // a text can be written
			s.text = string(raw[1 : len(raw)-1])
		}
		pairs = append(pairs, s.name, s.text)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (s *Script) say(ctx context.Context, t *Turn, n int, told []standIn, yield func(llm.Chunk, error) bool) {
	if t.Think != "" && !yield(llm.Chunk{Thought: &llm.Thought{Text: t.Think}}, nil) {
		return
	}
	text := fill(t.Say, told, false)
	for word := range strings.SplitAfterSeq(text, " ") {
		if err := s.wait(ctx); err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		if word != "" && !yield(llm.Chunk{Text: word}, nil) {
			return
		}
	}
	for i, c := range t.Calls {
		args := json.RawMessage(fill(string(c.Args), told, true))
		if len(args) == 0 {
			args = []byte("{}")
		}
		if !yield(llm.Chunk{Call: &llm.Call{ID: fmt.Sprintf("s%d_%d", n+1, i+1), Name: tool.Wire(c.Tool), Args: args}}, nil) {
			return
		}
	}
	stop := llm.StopEnd
	if len(t.Calls) > 0 {
		stop = llm.StopCalls
	}
	yield(llm.Chunk{Stop: stop, Usage: t.Usage}, nil)
}

func (s *Script) wait(ctx context.Context) error {
	if s.Pause <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(time.Duration(s.Pause) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
