package guard

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// What was taken out of arguments as they were shown comes back where it is
// left as it is, and nowhere else.
func TestUnredacted(t *testing.T) {
	const shown = `{"headers":{"x_token":"[redacted]"},"url":"https://a/","list":["Bearer [redacted]"],"n":12345678901234567890}`
	const raw = `{"headers":{"x_token":"hush"},"url":"https://a/","list":["Bearer tell"],"n":12345678901234567890}`
	for args, want := range map[string]string{
		shown: `{"headers":{"x_token":"hush"},"list":["Bearer tell"],"n":12345678901234567890,"url":"https://a/"}`,
		`{"headers":{"x_token":"[redacted]"},"url":"https://b/"}`: `{"headers":{"x_token":"hush"},"url":"https://b/"}`,
		`{"headers":{"x_token":"new"}}`:                           `{"headers":{"x_token":"new"}}`,
		`{}`:                                                      `{}`,
		`{"url":"[redacted]"}`:                                    "",
		`{"body":"[redacted]"}`:                                   "",
		`{"headers":{"x_token":"my [redacted]"}}`:                 "",
		`{"list":["","Bearer [redacted]"]}`:                       "",
		`[]`:                                                      "",
		`null`:                                                    "",
		`{`:                                                       "",
	} {
		got, err := unredacted(json.RawMessage(args), json.RawMessage(shown), json.RawMessage(raw))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v; want %s", args, got, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "tell")) {
			t.Errorf("%s: the error tells a secret: %v", args, err)
		}
	}
}

// The time of calls that make calls stands still while one of these is asked
// about, and goes on where it stood.
func TestTimeStandsStillWhileApprovalIsSought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		maker := &tool.Tool{Definition: tool.Definition{Name: "x.y"}, Targets: func(json.RawMessage) []tool.Target { return nil }}
		outer, end := within(t.Context(), &tool.Call{Tool: maker}, time.Minute)
		defer end()
		inner, endInner := within(outer, &tool.Call{Tool: maker}, 30*time.Second)
		defer endInner()
		time.Sleep(20 * time.Second)
		one, two := hold(inner), hold(inner)
		time.Sleep(time.Hour)
		one()
		time.Sleep(time.Hour)
		two()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if inner.Err() != nil || outer.Err() != nil {
			t.Fatalf("ended early: %v, %v", context.Cause(inner), context.Cause(outer))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(inner), errTooLong) || outer.Err() != nil {
			t.Errorf("after its time: %v, %v", context.Cause(inner), context.Cause(outer))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !errors.Is(context.Cause(outer), errTooLong) {
			t.Errorf("after its time: %v", context.Cause(outer))
		}
	})
}

// An approval for the session covers a compound command by a rule only if the
// rule matches every part; else, and where no rule asks, the same arguments.
func TestScope(t *testing.T) {
	rules := new(Rules)
	for _, text := range []string{`sh.run(command: "git push*")`, "sh.free"} {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules.Approve = append(rules.Approve, r)
	}
	scope := func(name, cmd string) string {
		args, _ := json.Marshal(map[string]string{"cmd": cmd})
		c := &tool.Call{Args: args, Tool: &tool.Tool{Definition: tool.Definition{Name: name}},
			Trail: &tool.Trail{Values: []schema.Value{{Role: schema.Command, Pointer: "/cmd", Text: cmd, IsString: true}}}}
		return rules.Scope(c).Key
	}
	push := scope("sh.run", "git push origin")
	if !strings.HasPrefix(push, "rule ") || scope("sh.run", "git push -f && git push b") != push {
		t.Errorf("of the rule: %q", push)
	}
	both := scope("sh.run", "git push && rm -rf x")
	if !strings.HasPrefix(both, "args ") || both == push || scope("sh.run", "git push && rm -rf y") == both || scope("sh.run", "git push && rm -rf x") != both {
		t.Errorf("of a compound command: %q", both)
	}
	if other := scope("sh.run", "ls"); !strings.HasPrefix(other, "args ") || scope("sh.run", "ls -l") == other {
		t.Errorf("where no rule asks: %q", other)
	}
	if free := scope("sh.free", "a"); free != "rule sh.free" || scope("sh.free", "b") != free {
		t.Errorf("of a rule without conditions: %q", free)
	}
}
