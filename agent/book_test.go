package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/llmtest"
	"github.com/helve-ai/helve/store/mem"
)

// A conversation that is loaded goes on as the one that was saved would have,
// and nothing that was said is lost by compaction.
func TestBook(t *testing.T) {
	book := &agent.Book{Store: new(mem.Store)}
	m := new(llmtest.Model).Calls(llm.Call{ID: "x", Name: "weather__now", Args: json.RawMessage(`{"city": oops`)})
	for range 20 {
		m.Calls(weather("a", strings.Repeat("Oslo ", 200)))
	}
	m.Says("done").Says("again")
	a := bench(t, m)
	a.Brains[0].Window = 8000
	a.Context = agent.Context{Reserved: 1000, Truncate: true}
	k := agent.Kept{App: "test", User: "me"}
	a.Save = func(ctx context.Context, c *agent.Conversation) error { return book.Save(ctx, c, k) }
	c := &agent.Conversation{ID: book.NewID()}
	if out, _ := run(t.Context(), a, c, ask("What is the weather in all of Norway?")); out.Text != "done" {
		t.Fatalf("outcome %+v", out)
	}
	if c.Base == 0 {
		t.Fatal("nothing was left out; the test shows nothing")
	}
	got, kept, err := book.Load(t.Context(), c.ID[:12], nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c.Messages, got.Messages, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	if kept.Title != "What is the weather in all of Norway?" || kept.Count != 44 {
		t.Errorf("kept %+v", kept)
	}
	all, err := book.Said(t.Context(), c.ID)
	if err != nil || len(all) != 44 || string(all[1].Calls[0].Args) != `{"city": oops` {
		t.Errorf("%d messages (error %v), the first call %q", len(all), err, all[1].Calls)
	}
	if out, _ := run(t.Context(), a, got, ask("And now?")); out.Text != "again" {
		t.Errorf("outcome %+v", out)
	}
	other := &agent.Conversation{ID: c.ID, Messages: []llm.Message{ask("Mine!")}}
	if err := book.Save(t.Context(), other, agent.Kept{App: "test", User: "you"}); err == nil {
		t.Error("a user wrote into another's session")
	}
	if err := book.Delete(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err = book.Load(t.Context(), c.ID, nil); !errors.Is(err, agent.ErrNoConversation) {
		t.Errorf("error %v", err)
	}
}
