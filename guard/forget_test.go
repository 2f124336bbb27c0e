package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/helve-ai/helve/audit"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

// entries counts what a bucket has.
func entries(t *testing.T, s store.Store, bucket string) (n int) {
	t.Helper()
	if err := s.View(t.Context(), func(r store.Reader) error {
		n = 0
		for range r.Scan(bucket, "") {
			n++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// A session's results go with it, and no others; what is old goes anyway, and
// leaves nothing in the index.
func TestSpilledResultsGo(t *testing.T) {
	s := new(mem.Store)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	long := tool.New(tool.Definition{Name: "x.long", Description: "x", Effect: tool.Reads},
		func(context.Context, struct{}) (string, error) { return strings.Repeat("x", 20_000), nil })
	reg := new(tool.Registry)
	if err := reg.Add(long); err != nil {
		t.Fatal(err)
	}
	ex := pipeline.New(reg, guard.Truncate(0, s, func() time.Time { return now }))
	spill := func(n int, from tool.Origin) {
		t.Helper()
		for range n {
			if res, err := ex.Do(t.Context(), &tool.Call{Name: "x.long", From: from}); err != nil || !strings.Contains(res.JoinText(), "results.read") {
				t.Fatalf("%v %v", res, err)
			}
		}
	}
	of := func(app, user, session string) tool.Origin {
		return tool.Origin{App: app, User: user, Session: session}
	}
	mine := of("a", "u", "s")
	spill(450, mine) // more than one transaction deletes
	others := []tool.Origin{of("b", "u", "s"), of("a", "v", "s"), of("a", "u", "t"), of("a", "u", ""), of("a\x00u", "", "s")}
	for _, from := range others {
		spill(2, from)
	}
	for range 2 { // a second time there is nothing to do
		if err := guard.Forget(t.Context(), s, mine); err != nil {
			t.Fatal(err)
		}
		if got, index := entries(t, s, "spilled"), entries(t, s, "spilled_of"); got != 2*len(others) || index != got {
			t.Errorf("%d results and %d entries of the index are left, want %d", got, index, 2*len(others))
		}
	}
	now = now.Add(8 * 24 * time.Hour)
	spill(1, mine)
	if got, index := entries(t, s, "spilled"), entries(t, s, "spilled_of"); got != 1 || index != 1 {
		t.Errorf("after a week %d results and %d entries of the index are left", got, index)
	}
}

func TestRecord(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	token := "hlv_" + strings.Repeat("a", 12) + "_" + strings.Repeat("b", 52)
	c := &tool.Call{Name: "mcp.complete", Args: []byte(`{"value":"` + token + `"}`), From: tool.Origin{App: "a", User: "u"}}
	errs := []error{nil, tool.Errorf(tool.CodeNotFound, "no"), tool.Errorf(tool.CodeNotVisible, "no"), errors.New("broken")}
	for _, e := range errs {
		if err := guard.Record(log, guard.NewRedactor(), time.Now, c, e); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for r, err := range audit.Query(dir, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(r.Args), token) {
			t.Errorf("the log has the token: %s", r.Args)
		}
		got = append(got, r.Decision+" "+r.Stage+" "+r.Error)
	}
	if want := "allow  ,deny resolve tool_not_found,deny visible not_visible,allow  runtime_error"; strings.Join(got, ",") != want {
		t.Errorf("the lines are %q", got)
	}
	log.Close()
	if err := guard.Record(log, guard.NewRedactor(), time.Now, c, nil); err == nil {
		t.Error("what cannot be written down is no error")
	}
	if err := guard.Record(nil, nil, time.Now, c, nil); err != nil {
		t.Errorf("without a log: %v", err)
	}
}
