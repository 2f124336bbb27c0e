package mcpbridge

import (
	"errors"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func (e *events) after(t *testing.T, session, stream string, index int) (got []string, err error) {
	t.Helper()
	for data, err := range e.After(t.Context(), session, stream, index) {
		if err != nil {
			return got, err
		}
		got = append(got, string(data))
	}
	return got, nil
}

func TestEventsAreBounded(t *testing.T) {
	e := &events{most: 10}
	ctx := t.Context()
	put := func(stream, data string) error {
		if err := e.Open(ctx, "s", stream); err != nil {
			t.Fatal(err)
		}
		return e.Append(ctx, "s", stream, []byte(data))
	}
	for i, data := range []string{"aa", "bb", "cc"} {
		if err := put("one", data); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if got, err := e.after(t, "s", "one", 0); err != nil || fmt.Sprint(got) != "[bb cc]" {
		t.Errorf("after the first: %v, %v", got, err)
	}
	if err := put("two", "12345"); err != nil || e.size > 10 {
		t.Errorf("%v, %d bytes", err, e.size)
	}
	if got, err := e.after(t, "s", "one", 0); !errors.Is(err, mcp.ErrEventsPurged) {
		t.Errorf("of the oldest stream: %v, %v", got, err)
	}
	if got, err := e.after(t, "s", "one", 2); err != nil || len(got) != 0 {
		t.Errorf("after the last: %v, %v", got, err)
	}
	if err := put("one", "dd"); err != nil {
		t.Error(err)
	}
	if got, err := e.after(t, "s", "one", 2); err != nil || fmt.Sprint(got) != "[dd]" {
		t.Errorf("its indexes go on: %v, %v", got, err)
	}
	if err := put("two", "a text longer than all that is kept"); err == nil {
		t.Error("it was kept")
	}
	if err := put("two", "x"); err != nil {
		t.Error(err)
	}
	if got, err := e.after(t, "s", "two", 1); err != nil || fmt.Sprint(got) != "[x]" {
		t.Errorf("after what was too long: %v, %v", got, err)
	}
	for i := range 2 * maxStreams {
		if err := put(fmt.Sprintf("n%d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(e.sessions["s"].streams); n > maxStreams+1 {
		t.Errorf("%d streams are kept", n)
	}
	if err := e.Append(ctx, "s", "one", []byte("late")); err == nil {
		t.Error("an event of a dropped stream counts as kept")
	}
	if err := e.SessionClosed(ctx, "s"); err != nil || e.size != 0 || len(e.oldest) != 0 || len(e.sessions) != 0 {
		t.Errorf("%v: %+v is left", err, e)
	}
	if _, err := e.after(t, "s", "one", 0); err == nil {
		t.Error("a session that ended has events")
	}
}
