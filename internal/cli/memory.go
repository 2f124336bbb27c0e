package cli

import (
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// How much the heap may grow before it is collected, in per cent: while an app
// is opened, when nearly all that is made stays, and after, when nearly all of
// it goes and a gateway that waits should be small.
const (
	gcOpening = 400
	gcServing = 50
	// However long an app takes to be opened, and whatever a server sends
	// meanwhile.
	mostOpening  = 192 << 20 // bytes, from which on it is collected as often as that takes
	openingLasts = 10 * time.Second
)

// Memory that was needed for the start, or for much work at once, is given back
// when there has been nothing to do for a while: nobody who waits for an answer
// waits for that.
const (
	restEvery   = 2 * time.Second
	restBelow   = 256 << 10 // bytes allocated in that time
	allocations = "/gc/heap/allocs:bytes"
)

// hasty lets the heap grow while apps are opened. Who calls it calls settled
// when they are, if the command goes on for long, and ended at the end. Where
// the operator has set GOGC, that holds.
func hasty() (settled, ended func()) {
	collects, before := os.Getenv("GOGC") == "", 0
	if collects {
		before = debug.SetGCPercent(gcOpening)
	}
	limit := int64(math.MaxInt64)
	if os.Getenv("GOMEMLIMIT") == "" {
		limit = debug.SetMemoryLimit(mostOpening)
	}
	opened := sync.OnceFunc(func() {
		if collects {
			debug.SetGCPercent(gcServing)
		}
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(limit)
		}
	})
	late := time.AfterFunc(openingLasts, opened)
	done := make(chan struct{})
	settled = sync.OnceFunc(func() {
		opened()
		go giveBackAtRest(done)
	})
	return settled, sync.OnceFunc(func() {
		close(done)
		late.Stop()
		opened()
		if collects {
			debug.SetGCPercent(before)
		}
	})
}

func giveBackAtRest(done <-chan struct{}) {
	sample := []metrics.Sample{{Name: allocations}}
	var r rest
	ticks := time.NewTicker(restEvery)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticks.C:
		}
		metrics.Read(sample)
		if sample[0].Value.Kind() != metrics.KindUint64 {
			return
		}
		if r.came(sample[0].Value.Uint64()) {
			debug.FreeOSMemory()
			releaseBinary()
		}
	}
}

// A rest is when little is allocated after more was.
type rest struct {
	total uint64 // allocated since the start
	gave  bool   // memory back since there was something to do
}

// came takes the bytes allocated since the start of the process, and reports
// whether now is the time to give memory back.
func (r *rest) came(total uint64) bool {
	grown := total - r.total
	r.total = total
	if grown >= restBelow {
		r.gave = false
		return false
	}
	first := !r.gave
	r.gave = true
	return first
}
