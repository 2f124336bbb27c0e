package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// Lines that came before a question answer nothing, and are kept for later;
// lines that came together are one text.
func TestLines(t *testing.T) {
	start := time.Now().Add(-time.Hour)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	l := &lineReader{lines: make(chan typed, 10), tty: true, err: io.EOF}
	l.once.Do(func() {}) // nothing is read but what stands here
	for _, line := range []typed{{"one", at(0)}, {"more", at(1)}, {"yes", at(500)}, {"no", at(2000)}, {"two", at(3000)}} {
		l.lines <- line
	}
	close(l.lines)
	next := func(since time.Time, want string) {
		t.Helper()
		if got, err := l.next(context.Background(), since); err != nil || got != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	next(time.Time{}, "one")
	if got := l.pasted(); !slices.Equal(got, []string{"more"}) {
		t.Fatalf("pasted with it: %q", got)
	}
	next(at(1000), "no")
	next(time.Time{}, "yes")
	if got := l.pasted(); got != nil {
		t.Fatalf("pasted with it: %q", got)
	}
	next(time.Time{}, "two")
	if _, err := l.next(context.Background(), time.Time{}); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}
