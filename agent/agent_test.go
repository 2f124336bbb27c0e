package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/llmtest"
	"github.com/helve-ai/helve/llm/script"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

type city struct {
	City string `json:"city"`
}

// bench is an agent with one tool, weather.now, and what it went through.
func bench(t testing.TB, m llm.Model) *agent.Agent {
	t.Helper()
	reg := new(tool.Registry)
	if err := reg.Add(tool.New(tool.Definition{Name: "weather.now", Description: "Tell the weather.", Effect: tool.Reads, ParallelSafe: true},
		func(_ context.Context, in city) (string, error) {
			if in.City == "Atlantis" {
				return "", errors.New("no such city")
			}
			return "sunny in " + in.City, nil
		})); err != nil {
		t.Fatal(err)
	}
	ex := pipeline.New(reg, guard.Resolve(reg, nil, nil, nil))
	return &agent.Agent{
		From:   tool.Origin{App: "test", Agent: "main", User: "me", Kind: tool.KindModel},
		Brains: []agent.Brain{{Name: "test", Model: m}},
		Show: func(tool.Origin, *agent.Brain) []inject.Item {
			return inject.Present(reg.Set(), inject.Options{Force: inject.Direct}).Items
		},
		Do: ex.DoAll,
	}
}

func ask(text string) llm.Message { return llm.Said(llm.User, text) }

func weather(id, city string) llm.Call {
	return llm.Call{ID: id, Name: "weather__now", Args: json.RawMessage(fmt.Sprintf(`{"city":%q}`, city))}
}

// run returns the outcome of a run, and its events as lines.
func run(ctx context.Context, a *agent.Agent, c *agent.Conversation, said llm.Message) (agent.Outcome, []string) {
	var lines []string
	var out agent.Outcome
	text := ""
	flush := func() {
		if text != "" {
			lines = append(lines, "text "+text)
		}
		text = ""
	}
	for e := range a.Run(ctx, c, said) {
		if e.Text == "" {
			flush()
		}
		switch {
		case e.Text != "":
			text += e.Text
		case e.Discard:
			lines = append(lines, "discard")
		case e.Notice != "":
			lines = append(lines, "notice "+e.Notice)
		case e.Result != nil:
			lines = append(lines, "result "+e.Result.JoinText())
		case e.Call != nil:
			lines = append(lines, "call "+e.Call.Name+" "+string(e.Call.Args))
		case e.Done != nil:
			out = *e.Done
		}
	}
	return out, lines
}

func TestCallsAndAnswers(t *testing.T) {
	m := new(llmtest.Model).Calls(weather("a", "Oslo"), weather("b", "Rome")).Says("Both are sunny.")
	c := &agent.Conversation{ID: "s"}
	out, lines := run(t.Context(), bench(t, m), c, ask("How is it in Oslo and Rome?"))
	want := []string{`call weather__now {"city":"Oslo"}`, `call weather__now {"city":"Rome"}`, "result sunny in Oslo", "result sunny in Rome", "text Both are sunny."}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	if out.Reason != agent.Answered || out.Text != "Both are sunny." || out.Turns != 2 || out.Calls != 2 {
		t.Errorf("outcome %+v", out)
	}
	asked := m.Asked()
	if len(asked) != 2 || len(asked[0].Tools) != 1 || asked[0].Tools[0].Name != "weather__now" {
		t.Fatalf("asked %d times, with the tools %v", len(asked), asked[0].Tools)
	}
	last := asked[1].Messages[2]
	if last.Role != llm.Results || last.Answers[0].CallID != "a" || last.Answers[1].CallID != "b" || last.Answers[1].Content[0].Text != "sunny in Rome" {
		t.Errorf("the model was told %+v", last)
	}
}

func TestFailuresAreTold(t *testing.T) {
	m := new(llmtest.Model).Calls(weather("a", "Atlantis"), llm.Call{ID: "b", Name: "nothing__here", Args: json.RawMessage(`{}`)}).Says("Sorry.")
	c := &agent.Conversation{ID: "s"}
	run(t.Context(), bench(t, m), c, ask("Atlantis?"))
	a := m.Asked()[1].Messages[2].Answers
	if !a[0].Failed || !strings.Contains(a[0].Content[0].Text, "no such city") || !a[1].Failed || !strings.Contains(a[1].Content[0].Text, "tool_not_found") {
		t.Errorf("the model was told %+v", a)
	}
}

func temporary(begun bool) error {
	return &llm.Error{Provider: "test", Status: 529, Message: "overloaded", Temporary: true, Begun: begun}
}

func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(llmtest.Model).Fails(temporary(false)).Fails(temporary(true), llm.Chunk{Text: "Hal"}).
			Fails(&llm.Error{Provider: "test", Status: 429, Temporary: true, RetryAfter: 7 * time.Second}).Says("Hello.")
		start := time.Now()
		out, lines := run(t.Context(), bench(t, m), &agent.Conversation{ID: "s"}, ask("Hi"))
		if out.Text != "Hello." || out.Turns != 1 {
			t.Errorf("outcome %+v", out)
		}
		if len(lines) != 6 || lines[1] != "text Hal" || lines[2] != "discard" || !strings.HasPrefix(lines[4], "notice ") {
			t.Errorf("events %q", lines)
		}
		if waited := time.Since(start); waited < 7*time.Second+1500*time.Millisecond {
			t.Errorf("waited %s in all; the provider alone wanted 7 s", waited)
		}
	})
}

func TestFallback(t *testing.T) {
	broken := new(llmtest.Model).Fails(&llm.Error{Provider: "first", Status: 401, Message: "bad key"})
	good := new(llmtest.Model).Says("Here.").Says("Again.")
	a := bench(t, broken)
	a.Brains = append(a.Brains, agent.Brain{Name: "second", Model: good})
	c := &agent.Conversation{ID: "s"}
	out, lines := run(t.Context(), a, c, ask("Hi"))
	if out.Text != "Here." || !strings.Contains(lines[0], "bad key") || !strings.Contains(lines[0], "second goes on") {
		t.Errorf("outcome %+v, events %q", out, lines)
	}
	a.Brains = a.Brains[:1]
	broken.Fails(&llm.Error{Provider: "first", Status: 401, Message: "bad key"})
	if out, _ = run(t.Context(), a, c, ask("Hi")); out.Reason != agent.Failed || !strings.Contains(out.Detail, "bad key") {
		t.Errorf("outcome %+v", out)
	}
}

func TestLimits(t *testing.T) {
	endless := func() *llmtest.Model {
		return &llmtest.Model{Answer: func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			c := weather(fmt.Sprint(n), "Oslo")
			return []llm.Chunk{{Call: &c}, {Usage: &llm.Usage{Input: 90, Output: 10}}, {Stop: llm.StopCalls}}, nil
		}}
	}
	for _, tt := range []struct {
		name   string
		limits agent.Limits
		turns  int
		detail string
	}{
		{"turns", agent.Limits{Turns: 3}, 3, "3 turns"},
		{"tokens", agent.Limits{Tokens: 450}, 5, "500 tokens"},
		{"money", agent.Limits{Money: 2}, 2, "$2 was spent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := bench(t, endless())
			a.Limits = tt.limits
			a.Price = func(*agent.Brain, llm.Usage) float64 { return 1 }
			out, _ := run(t.Context(), a, &agent.Conversation{ID: "s"}, ask("Go"))
			if out.Reason != agent.OutOf || out.Turns != tt.turns || !strings.Contains(out.Detail, tt.detail) {
				t.Errorf("outcome %+v", out)
			}
		})
	}
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(llmtest.Model).Calls(weather("a", "Oslo"))
		a := bench(t, m)
		a.Limits.Time = time.Minute
		a.Do = func(ctx context.Context, calls []*tool.Call) ([]*tool.Result, error) {
			<-ctx.Done()
			return make([]*tool.Result, len(calls)), context.Cause(ctx)
		}
		c := &agent.Conversation{ID: "s"}
		out, _ := run(t.Context(), a, c, ask("Go"))
		if out.Reason != agent.OutOf || !strings.Contains(out.Detail, "1m0s") {
			t.Errorf("outcome %+v", out)
		}
		if last := c.Messages[len(c.Messages)-1]; last.Role != llm.Results || !last.Answers[0].Failed {
			t.Errorf("the call was left without an answer: %+v", last)
		}
	})
}

// Whoever stops listening ends the run, and every call has an answer.
func TestLeaving(t *testing.T) {
	m := new(llmtest.Model).Calls(weather("a", "Oslo")).Says("never")
	a := bench(t, m)
	c := &agent.Conversation{ID: "s"}
	for e := range a.Run(t.Context(), c, ask("Go")) {
		if e.Call != nil {
			break
		}
	}
	if n := len(m.Asked()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	if last := c.Messages[len(c.Messages)-1]; last.Role != llm.Results || len(last.Answers) != 1 {
		t.Errorf("the conversation ends with %+v", last)
	}
}

// A conversation that ended between calls and results goes on.
func TestResume(t *testing.T) {
	m := new(llmtest.Model).Says("I looked again.")
	c := &agent.Conversation{ID: "s", Messages: []llm.Message{ask("Go"), {Role: llm.Assistant, Calls: []llm.Call{weather("a", "Oslo")}}}}
	out, _ := run(t.Context(), bench(t, m), c, ask("And now?"))
	if out.Text != "I looked again." {
		t.Errorf("outcome %+v", out)
	}
	told := m.Asked()[0].Messages
	if len(told) != 4 || told[2].Role != llm.Results || !strings.Contains(told[2].Answers[0].Content[0].Text, "interrupted") {
		t.Errorf("the model was told %+v", told)
	}
}

func TestOutput(t *testing.T) {
	m := new(llmtest.Model).Says("Forty-two.").Says("```json\n{\"answer\": \"42\"}\n```").Says(`{"answer": 42}`)
	a := bench(t, m)
	a.Output = schema.Must(`{"type":"object","properties":{"answer":{"type":"integer"}},"required":["answer"]}`)
	out, _ := run(t.Context(), a, &agent.Conversation{ID: "s"}, ask("The answer?"))
	if out.Reason != agent.Answered || string(out.Output) != `{"answer": 42}` || out.Turns != 3 {
		t.Errorf("outcome %+v", out)
	}
	told := m.Asked()
	if text := told[2].Messages[len(told[2].Messages)-1].Text(); !strings.Contains(text, "/answer") {
		t.Errorf("the model was told %q, which does not say where it was wrong", text)
	}
	m.Says("no").Says("no").Says("no")
	if out, _ = run(t.Context(), a, &agent.Conversation{ID: "s"}, ask("The answer?")); out.Reason != agent.Failed || out.Text != "no" {
		t.Errorf("outcome %+v", out)
	}
}

func TestMistakesStop(t *testing.T) {
	m := &llmtest.Model{Answer: func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		return []llm.Chunk{{Call: &llm.Call{ID: fmt.Sprint(n), Name: "weather__now", Args: json.RawMessage(`{"city":"Atlantis"}`)}}}, nil
	}}
	a := bench(t, m)
	s := new(guard.Sessions)
	reg := new(tool.Registry)
	_ = reg.Add(tool.New(tool.Definition{Name: "weather.now", Description: "Fail.", Effect: tool.Reads}, func(context.Context, city) (string, error) { return "", errors.New("no such city") }))
	a.Do = pipeline.New(reg, guard.CountMistakes(s, "", 3), guard.Resolve(reg, nil, nil, nil)).DoAll
	out, _ := run(t.Context(), a, &agent.Conversation{ID: "s"}, ask("Go"))
	if out.Reason != agent.Mistaken || out.Turns != 3 {
		t.Errorf("outcome %+v", out)
	}
}

// What others used on behalf of a session counts, also towards the limits.
func TestWhatOthersSpentCounts(t *testing.T) {
	s := &script.Script{Turns: []script.Turn{{Calls: []script.Call{{Tool: "x"}}}, {Calls: []script.Call{{Tool: "x"}}}, {Say: "never"}}}
	a := &agent.Agent{Brains: []agent.Brain{{Name: "script", Model: s}},
		Do: func(_ context.Context, calls []*tool.Call) ([]*tool.Result, error) {
			return []*tool.Result{tool.Text("done")}, nil
		},
		Spent: func(session string) agent.Spent {
			return agent.Spent{Usage: llm.Usage{Input: 100, Output: 10}, Money: 1}
		},
		Limits: agent.Limits{Money: 2},
	}
	var out agent.Outcome
	for e := range a.Run(t.Context(), &agent.Conversation{ID: "1"}, llm.Said(llm.User, "go")) {
		if e.Done != nil {
			out = *e.Done
		}
	}
	if out.Reason != agent.OutOf || out.Money != 2 || out.Usage.Input < 200 || out.Turns != 2 {
		t.Errorf("outcome %+v", out)
	}
}

// What was said of an answer that is interrupted stays, and the next answer
// goes on from there.
func TestInterruptedAnswer(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	m := new(llmtest.Model).Fails(errors.New("the connection is closed"), llm.Chunk{Text: "one two"}).Says("three")
	a, c := bench(t, m), &agent.Conversation{ID: "s"}
	var out agent.Outcome
	for e := range a.Run(ctx, c, ask("Count")) {
		switch {
		case e.Text != "":
			stop(errors.New("you interrupted it"))
		case e.Discard:
			t.Error("what was said does not count")
		case e.Done != nil:
			out = *e.Done
		}
	}
	if out.Reason != agent.Cancelled || out.Text != "one two" {
		t.Errorf("outcome %+v", out)
	}
	run(t.Context(), a, c, ask("Go on"))
	told := m.Asked()[1].Messages
	if len(told) != 3 || told[1].Role != llm.Assistant || !strings.HasPrefix(told[1].Text(), "one two\n[the answer was interrupted") {
		t.Errorf("the model was told %+v", told)
	}
}
