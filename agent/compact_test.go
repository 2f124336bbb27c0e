package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/llmtest"
	"github.com/helve-ai/helve/parse"
	"github.com/helve-ai/helve/tool"
)

// whole reports what is wrong with a conversation as a provider sees it: every
// call needs its result in the message after.
func whole(all []llm.Message) error {
	for i, m := range all {
		if m.Role == llm.Results && (i == 0 || len(all[i-1].Calls) != len(m.Answers)) {
			return fmt.Errorf("message %d answers calls that are not before it", i)
		}
		if len(m.Calls) > 0 && i+1 < len(all) && all[i+1].Role != llm.Results {
			return fmt.Errorf("the calls of message %d have no results after them", i)
		}
		if i > 0 && m.Role == llm.User && all[i-1].Role == llm.User {
			return fmt.Errorf("messages %d and %d are both the user's", i-1, i)
		}
	}
	if len(all) > 0 && all[0].Role != llm.User {
		return errors.New("it does not begin with the user")
	}
	return nil
}

// long is a model that calls n times before it answers, and that summarizes.
func long(t testing.TB, n int, summary func() ([]llm.Chunk, error)) *llmtest.Model {
	turn := 0
	return &llmtest.Model{Answer: func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if len(req.Messages) == 1 && strings.HasPrefix(req.Messages[0].Text(), "Summarize ") {
			return summary()
		}
		if err := whole(req.Messages); err != nil {
			t.Error(err)
		}
		if turn++; turn > n {
			return []llm.Chunk{{Text: "done"}, {Stop: llm.StopEnd}}, nil
		}
		a, b := weather(fmt.Sprint("a", turn), strings.Repeat("Oslo ", 100)), weather(fmt.Sprint("b", turn), "Rome")
		return []llm.Chunk{{Call: &a}, {Call: &b}, {Stop: llm.StopCalls}}, nil
	}}
}

func TestCompaction(t *testing.T) {
	for _, tt := range []struct {
		name     string
		truncate bool
		summary  func() ([]llm.Chunk, error)
		want     string
	}{
		{"summarized", false, func() ([]llm.Chunk, error) { return []llm.Chunk{{Text: "It was sunny."}}, nil }, "It was sunny."},
		{"left out", true, nil, "were left out"},
		{"no summary to be had", false, func() ([]llm.Chunk, error) { return nil, errors.New("no") }, "were left out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := long(t, 60, tt.summary)
			a := bench(t, m)
			a.Brains[0].Window = 8000
			a.Context = agent.Context{Reserved: 1000, Truncate: tt.truncate}
			c := &agent.Conversation{ID: "s"}
			out, _ := run(t.Context(), a, c, ask("Go"))
			if out.Reason != agent.Answered || out.Text != "done" {
				t.Fatalf("outcome %+v", out)
			}
			if first := c.Messages[0].Text(); !strings.Contains(first, tt.want) {
				t.Errorf("the conversation begins with %q", first)
			}
			if len(c.Messages) > 60 || c.Base+len(c.Messages) < 122 {
				t.Errorf("%d messages from number %d on", len(c.Messages), c.Base)
			}
		})
	}
}

// A single result that fills the window is left out; what must stay and does
// not fit is an error that says so.
func TestHugeMessages(t *testing.T) {
	m := new(llmtest.Model).Calls(weather("a", strings.Repeat("x", 200_000))).Says("done")
	a := bench(t, m)
	a.Brains[0].Window = 20_000
	c := &agent.Conversation{ID: "s"}
	out, _ := run(t.Context(), a, c, ask("Go"))
	if out.Reason != agent.Failed || !strings.Contains(out.Detail, "does not fit") {
		t.Errorf("outcome %+v", out) // the call itself is as long
	}
	m = new(llmtest.Model).Calls(weather("a", "Oslo")).Says("done")
	a = bench(t, m)
	a.Brains[0].Window = 20_000
	inner := a.Do
	a.Do = func(ctx context.Context, calls []*tool.Call) ([]*tool.Result, error) {
		res, err := inner(ctx, calls)
		res[0] = tool.Text(strings.Repeat("long ", 50_000))
		return res, err
	}
	if out, _ = run(t.Context(), a, &agent.Conversation{ID: "s"}, ask("Go")); out.Text != "done" {
		t.Errorf("outcome %+v", out)
	}
	if said := m.Asked()[1].Messages[2].Answers[0].Content[0].Text; !strings.Contains(said, "left out") {
		t.Errorf("the model was told %.80q", said)
	}
}

// What the provider says is too long is made shorter, though the estimate says
// that it would fit.
func TestTooLong(t *testing.T) {
	tooLong := &llm.Error{Provider: "test", Status: 400, TooLong: true}
	m := new(llmtest.Model)
	for i := range 30 {
		m.Calls(weather(fmt.Sprint(i), strings.Repeat("Oslo ", 1000)))
	}
	m.Fails(tooLong).Fails(tooLong).Says("done")
	a := bench(t, m)
	a.Context.Truncate = true
	a.Brains[0].Window = 100_000
	c := &agent.Conversation{ID: "s"}
	out, _ := run(t.Context(), a, c, ask("Go"))
	if out.Text != "done" {
		t.Fatalf("outcome %+v", out)
	}
	asked := m.Asked()
	if was, is := len(asked[30].Messages), len(asked[32].Messages); is >= was {
		t.Errorf("%d messages, and %d after the provider had refused them", was, is)
	}
	if err := whole(asked[32].Messages); err != nil {
		t.Error(err)
	}
}

// BenchmarkLoop is a session of 200 turns and 400 calls: what the loop takes
// beside the model and the calls.
func BenchmarkLoop(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		m := long(b, 200, func() ([]llm.Chunk, error) { return []llm.Chunk{{Text: "It was sunny."}}, nil })
		a := bench(b, m)
		a.Brains[0].Window = 32_000
		a.Do = func(_ context.Context, calls []*tool.Call) ([]*tool.Result, error) {
			out := make([]*tool.Result, len(calls))
			for i := range out {
				out[i] = tool.Text("sunny")
			}
			return out, nil
		}
		out, _ := run(b.Context(), a, &agent.Conversation{ID: "s"}, ask("Go"))
		if out.Calls != 400 {
			b.Fatalf("outcome %+v", out)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*201), "µs/turn")
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	b.ReportMetric(float64(mem.HeapInuse>>20), "heap-MB")
}

// A model that writes its calls in its text.
func TestInText(t *testing.T) {
	m := new(llmtest.Model).Says("I look.\n<tool_call>\n{\"name\": \"weather__now\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>").Says("Sunny.")
	a := bench(t, m)
	a.Brains[0].Format = parse.Hermes
	a.Offered = func(tool.Origin) *parse.Tools { return parse.NewTools(parse.Offer{Name: "weather__now"}) }
	c := &agent.Conversation{ID: "s"}
	out, lines := run(t.Context(), a, c, ask("Go"))
	if out.Text != "Sunny." || len(lines) != 4 || lines[1] != `call weather__now {"city": "Oslo"}` {
		t.Fatalf("outcome %+v, events %q", out, lines)
	}
	asked := m.Asked()
	if len(asked[0].Tools) != 0 {
		t.Error("tools were offered by the API")
	}
	told := asked[1].Messages
	if said := told[1].Text(); !strings.HasPrefix(said, "I look.\n<tool_call>") || len(told[1].Calls) != 0 {
		t.Errorf("its own words are told as %q", said)
	}
	if said := told[2].Text(); told[2].Role != llm.User || !strings.Contains(said, "sunny in Oslo") {
		t.Errorf("the result is told by %s as %q", told[2].Role, said)
	}
}

// The memory in the prompt is that of the first turn, until messages are left
// out or somebody else goes on; what it says then is told, in the same turn.
func TestMemoryIsToldAnewWhenMessagesAreLeftOut(t *testing.T) {
	m := long(t, 60, nil)
	a := bench(t, m)
	a.Brains[0].Window = 8000
	a.Context = agent.Context{Reserved: 1000, Truncate: true}
	turn := 0
	a.Prompt = func(context.Context, tool.Origin, *agent.Brain) (*agent.Prompt, error) {
		turn++
		return &agent.Prompt{Memory: fmt.Sprintf("Known after %d asks.", turn), Identity: "You are a test."}, nil
	}
	c := &agent.Conversation{ID: "s"}
	if out, _ := run(t.Context(), a, c, ask("Go")); out.Text != "done" {
		t.Fatalf("outcome %+v", out)
	}
	shortened, asked := 0, m.Asked()
	for i, req := range asked[1:] {
		before := asked[i]
		shorter := len(req.Messages) < len(before.Messages)
		if shorter {
			shortened++
		}
		if changed := req.System != before.System; changed != shorter {
			t.Errorf("request %d: prompt changed %t, messages left out %t: %q", i+1, changed, shorter, req.System)
		}
	}
	if shortened < 2 {
		t.Errorf("made shorter %d times", shortened)
	}
	before, err := a.System(t.Context(), c, &a.Brains[0])
	if err != nil || before != asked[len(asked)-1].System {
		t.Errorf("told %q in the end, %v", before, err)
	}
	a.From.Agent = "other"
	if after, err := a.System(t.Context(), c, &a.Brains[0]); err != nil || after == before {
		t.Errorf("another agent is told %q, %v", after, err)
	}
}
