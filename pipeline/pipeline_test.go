package pipeline_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

type city struct {
	City string `json:"city"`
}

func weather(t testing.TB) *tool.Registry {
	t.Helper()
	var reg tool.Registry
	err := reg.Add(
		tool.New(tool.Definition{Name: "weather.now", Description: "Tell the weather.", Effect: tool.Reads},
			func(_ context.Context, in city) (string, error) {
				if in.City == "Atlantis" {
					panic("drowned")
				}
				return "sunny in " + in.City, nil
			}),
		&tool.Tool{
			Definition: tool.Definition{Name: "relay", Description: "Call another.", Effect: tool.Reads, Input: tool.New(tool.Definition{Name: "x", Description: "x"}, func(context.Context, struct {
				To string `json:"to"`
			}) (string, error) {
				return "", nil
			}).Input},
			Handle: func(context.Context, *tool.Call) (*tool.Result, error) { return nil, nil },
			Targets: func(args json.RawMessage) []tool.Target {
				var in struct{ To string }
				json.Unmarshal(args, &in)
				return []tool.Target{{Name: in.To, Args: args}}
			},
		})
	if err != nil {
		t.Fatal(err)
	}
	return &reg
}

func do(t testing.TB, ex *pipeline.Executor, name, args string) *tool.Result {
	t.Helper()
	res, err := ex.Do(t.Context(), &tool.Call{Name: name, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestDoWithoutStages(t *testing.T) {
	ex := pipeline.New(weather(t))
	if res := do(t, ex, "weather.now", `{"city":"Paris"}`); res.JoinText() != "sunny in Paris" {
		t.Errorf("result %+v", res)
	}
	for _, test := range []struct {
		name, args string
		want       tool.Code
	}{
		{"weather.now", `{"town":"Paris"}`, tool.CodeValidation},
		{"weather.now", `{"city":"Atlantis"}`, tool.CodeRuntime},
		{"weather.then", `{}`, tool.CodeNotFound},
		{"relay", `{"to":"x"}`, tool.CodeRuntime}, // neither a result nor an error
	} {
		res := do(t, ex, test.name, test.args)
		if res.Err == nil || res.Err.Code != test.want {
			t.Errorf("%s %s: %+v, want the error %s", test.name, test.args, res.Err, test.want)
		}
	}
}

func TestJudgedArgumentsCannotChange(t *testing.T) {
	stage := func(name string, edit func(*tool.Call)) pipeline.Stage {
		return pipeline.Stage{Name: name, Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) { edit(c); return next(ctx, c) }
		}}
	}
	ex := pipeline.New(weather(t),
		stage("judge", func(c *tool.Call) { c.Trail.Judged = c.Args }),
		stage("cheat", func(c *tool.Call) { c.Args = json.RawMessage(`{"city":"Rome"}`) }))
	if res := do(t, ex, "weather.now", `{"city":"Oslo"}`); res.Err == nil || !strings.Contains(res.Err.Message, "changed") {
		t.Errorf("arguments changed after judgement ran: %+v", res)
	}
}

func TestPanicInStage(t *testing.T) {
	ex := pipeline.New(weather(t), pipeline.Stage{Name: "bad", Wrap: func(tool.Handler) tool.Handler {
		return func(context.Context, *tool.Call) (*tool.Result, error) { panic("oops") }
	}})
	if res := do(t, ex, "weather.now", `{"city":"Oslo"}`); res.Err == nil || res.Err.Code != tool.CodeRuntime {
		t.Errorf("result %+v", res)
	}
}

func TestCancelledRunIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ex := pipeline.New(weather(t), pipeline.Stage{Name: "slow", Wrap: func(tool.Handler) tool.Handler {
		return func(ctx context.Context, _ *tool.Call) (*tool.Result, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}})
	if res, err := ex.Do(ctx, &tool.Call{Name: "weather.now"}); err == nil {
		t.Errorf("Do = %+v without an error", res)
	}
}

func TestExplainFollowsTargets(t *testing.T) {
	deny := pipeline.Stage{Name: "policy", Judges: true, Wrap: func(next tool.Handler) tool.Handler {
		return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			if strings.HasPrefix(c.Name, "weather") {
				return nil, c.Trail.Deny("policy", tool.Errorf(tool.CodePermission, "no weather today"))
			}
			return next(ctx, c)
		}
	}}
	ran := pipeline.Stage{Name: "approval", Wrap: func(tool.Handler) tool.Handler {
		return func(context.Context, *tool.Call) (*tool.Result, error) {
			t.Error("an explanation ran a stage that acts")
			return nil, nil
		}
	}}
	ex := pipeline.New(weather(t), deny, ran)
	x := ex.Explain(t.Context(), &tool.Call{Name: "relay", Args: json.RawMessage(`{"to":"weather.now"}`)})
	if x.Decision != "deny" || x.Stage != "policy" || !strings.Contains(x.Reason, "no weather") || len(x.Targets) != 1 {
		t.Errorf("explanation %+v", x)
	}
	x = ex.Explain(t.Context(), &tool.Call{Name: "relay", Args: json.RawMessage(`{"to":"relay"}`)})
	if x.Decision != "deny" || !strings.Contains(x.Reason, "nested") {
		t.Errorf("endless nesting: %+v", x)
	}
}

// Calls of one reply run beside each other only if all are parallel-safe reads;
// an indirection is as safe as its target.
func TestDoAll(t *testing.T) {
	var reg tool.Registry
	var now, most atomic.Int32
	var order []string
	var mu sync.Mutex
	meet := make(chan struct{})
	add := func(name string, e tool.Effect, safe bool) *tool.Tool {
		return tool.New(tool.Definition{Name: name, Description: "x", Effect: e, ParallelSafe: safe}, func(context.Context, struct{}) (string, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			if name == "read.a" || name == "read.b" {
				select { // both at the same time, or never
				case meet <- struct{}{}:
				case <-meet:
				case <-time.After(time.Second):
				}
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return name, nil
		})
	}
	relay := &tool.Tool{Definition: tool.Definition{Name: "relay", Description: "x", Effect: tool.Reads, Input: schema.Must(`{"type":"object"}`)},
		Targets: func(args json.RawMessage) []tool.Target { return []tool.Target{{Name: "write.c"}} },
		Handle:  func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text("relay"), nil }}
	if err := reg.Add(add("read.a", tool.Reads, true), add("read.b", tool.Reads, true), add("write.c", tool.Writes, false), add("read.d", tool.Reads, false), relay); err != nil {
		t.Fatal(err)
	}
	ex := pipeline.New(&reg)
	calls := func(names ...string) (out []*tool.Call) {
		for _, n := range names {
			out = append(out, &tool.Call{Name: n})
		}
		return out
	}
	res, err := ex.DoAll(t.Context(), calls("read.a", "nope", "read.b"))
	if err != nil || res[0].JoinText() != "read.a" || res[1].Err == nil || res[2].JoinText() != "read.b" || most.Load() != 2 {
		t.Errorf("parallel reads: %v, %v, %d at once", res, err, most.Load())
	}
	for _, batch := range [][]string{{"write.c", "read.d"}, {"read.d", "write.c"}, {"relay", "read.d"}} {
		most.Store(0)
		order = nil
		if _, err := ex.DoAll(t.Context(), calls(batch...)); err != nil || most.Load() > 1 {
			t.Errorf("%v: %v, %d at once", batch, err, most.Load())
		}
		if len(order) == 2 && (order[0] != batch[0] || order[1] != batch[1]) {
			t.Errorf("%v ran as %v", batch, order)
		}
	}
}

// Progress that comes late, from a goroutine that the tool left behind, is not shown.
func TestNoProgressAfterTheEnd(t *testing.T) {
	var reg tool.Registry
	var late func(tool.Content)
	reg.Add(&tool.Tool{Definition: tool.Definition{Name: "x.y", Description: "x", Effect: tool.Reads, Input: schema.Must(`{"type":"object"}`)},
		Handle: func(_ context.Context, c *tool.Call) (*tool.Result, error) {
			c.Progress(tool.Content{Text: "on time"})
			late = c.Progress
			return tool.Text(""), nil
		}})
	var shown []string
	if _, err := pipeline.New(&reg).Do(t.Context(), &tool.Call{Name: "x.y", Progress: func(c tool.Content) { shown = append(shown, c.Text) }}); err != nil {
		t.Fatal(err)
	}
	late(tool.Content{Text: "late"})
	if len(shown) != 1 || shown[0] != "on time" {
		t.Errorf("shown %q", shown)
	}
}
