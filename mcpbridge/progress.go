package mcpbridge

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The library hands the answer to a call over at once, and the progress that
// was reported before it when it comes to it. So that none of it is lost, what
// arrives is counted where it arrives, and a call that follows its progress
// ends when all that had arrived before its answer was handed over.

const (
	methodProgress = "notifications/progress"
	progressGrace  = time.Second // for what was counted wrongly, such as a text that speaks of progress
)

// A tally compares how many reports of progress have arrived at a connection
// with how many were handed over.
type tally struct {
	mu       sync.Mutex
	arrived  int
	handed   int
	caughtUp chan struct{} // closed when something is handed over; nil: nobody waits
}

func (t *tally) arrive(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived += n
}

func (t *tally) handOver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handed++
	if t.caughtUp != nil {
		close(t.caughtUp)
		t.caughtUp = nil
	}
}

// wait waits until all that has arrived was handed over, but not for long.
func (t *tally) wait(ctx context.Context) {
	t.mu.Lock()
	want := t.arrived
	t.mu.Unlock()
	timer := time.NewTimer(progressGrace)
	defer timer.Stop()
	for {
		t.mu.Lock()
		if t.handed >= want {
			t.mu.Unlock()
			return
		}
		if t.caughtUp == nil {
			t.caughtUp = make(chan struct{})
		}
		more := t.caughtUp
		t.mu.Unlock()
		select {
		case <-more:
		case <-timer.C:
			t.mu.Lock()
			t.handed = max(t.handed, want) // the next call need not wait for what does not come
			t.mu.Unlock()
			return
		case <-ctx.Done():
			return
		}
	}
}

// isProgress reports whether a message is a report of progress.
func isProgress(msg jsonrpc.Message) bool {
	r, ok := msg.(*jsonrpc.Request)
	return ok && r.Method == methodProgress
}

// A tallied is a stream of which the reports of progress are counted.
type tallied struct {
	io.ReadCloser
	tally *tally
	tail  []byte // of what was read, as much as may be the begin of a report
}

// Read reads, and counts.
func (t *tallied) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		data := append(t.tail, p[:n]...)
		t.tally.arrive(bytes.Count(data, reportOfProgress))
		if at := bytes.LastIndex(data, reportOfProgress); at >= 0 {
			data = data[at+len(reportOfProgress):]
		}
		t.tail = append(t.tail[:0], data[max(len(data)-len(reportOfProgress)+1, 0):]...)
	}
	return n, err
}

var reportOfProgress = []byte(`"` + methodProgress + `"`)
