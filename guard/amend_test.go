package guard

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
