package mcpbridge

import "sync"

// maxIdle is how many goroutines wait for the next call.
const maxIdle = 32

// Workers are goroutines that run calls. One that has run a call waits for the
// next: its stack has grown to the depth of the pipeline, and to grow another
// takes as long as half of the pipeline's checks. The zero workers have none.
type workers struct {
	once sync.Once
	next chan func()
	idle chan struct{}
	all  sync.WaitGroup
}

// run runs f beside the caller. No worker waits longer than until stop.
func (w *workers) run(stop <-chan struct{}, f func()) {
	w.once.Do(func() { w.next, w.idle = make(chan func()), make(chan struct{}, maxIdle) })
	select {
	case w.next <- f:
	default:
		w.all.Go(func() { w.work(stop, f) })
	}
}

func (w *workers) work(stop <-chan struct{}, f func()) {
	for {
		f()
		select {
		case w.idle <- struct{}{}:
		default: // enough wait already
			return
		}
		select {
		case f = <-w.next:
			<-w.idle
		case <-stop:
			return
		}
	}
}
