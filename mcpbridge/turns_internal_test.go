package mcpbridge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What is asked by several requests at one time is asked in one round, each
// under a name of its own; what is taken back before, not at all.
func TestQuestionsAtOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tu := &turn{ctx: ctx, cancel: cancel, asked: make(chan mcp.InputRequestMap), answer: make(chan mcp.InputResponseMap),
			stop: make(chan struct{}), begin: func(f func()) bool { go f(); return true }}
		ask := func(ctx context.Context, what string) <-chan string {
			said := make(chan string, 1)
			go func() {
				got, err := tu.ask(ctx, mcp.InputRequestMap{questionID: &mcp.ElicitParams{Mode: modeURL, Message: what}}, false)
				if err != nil {
					said <- err.Error()
					return
				}
				said <- got[questionID].(*mcp.ElicitResult).Action
			}()
			synctest.Wait()
			return said
		}
		leaving, leave := context.WithCancel(ctx)
		first, second, third := ask(ctx, "first"), ask(leaving, "second"), ask(ctx, "third")
		leave()
		if got := <-second; got != context.Canceled.Error() {
			t.Errorf("what was taken back is answered with %q", got)
		}
		round := <-tu.asked
		late := ask(ctx, "late") // is asked after that
		answers := mcp.InputResponseMap{}
		actions := map[string]string{"first": "accept", "third": "decline"}
		for id, q := range round {
			answers[id] = &mcp.ElicitResult{Action: actions[q.(*mcp.ElicitParams).Message]}
		}
		if names := fmt.Sprint(slices.Sorted(maps.Keys(round))); names != "[question question-3]" {
			t.Errorf("asked are %s", names)
		}
		tu.answer <- answers
		if a, b := <-first, <-third; a != "accept" || b != "decline" {
			t.Errorf("answered are %q and %q", a, b)
		}
		round = <-tu.asked
		if q, _ := round[questionID].(*mcp.ElicitParams); len(round) != 1 || q.Message != "late" {
			t.Errorf("the next round asks %v", round)
		}
		tu.answer <- mcp.InputResponseMap{questionID: &mcp.ElicitResult{Action: "cancel"}}
		if got := <-late; got != "cancel" {
			t.Errorf("the late one is answered with %q", got)
		}

		// One that nobody waits for any more leaves nothing behind.
		leaving, leave = context.WithCancel(ctx)
		gone := ask(leaving, "gone")
		leave()
		<-gone
		time.Sleep(gatherTime)
		synctest.Wait()
		select {
		case round := <-tu.asked:
			t.Errorf("asked is %v", round)
		default:
		}
		alone := ask(ctx, "alone")
		<-tu.asked
		tu.answer <- mcp.InputResponseMap{questionID: &mcp.ElicitResult{Action: "accept"}}
		if got := <-alone; got != "accept" {
			t.Errorf("after that: %q", got)
		}
	})
}
