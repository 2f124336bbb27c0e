package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/store"
)

// What search makes of the tools of upstream servers takes longer than all
// else at a start, so it is kept for the next.
const (
	warmBucket = "search"
	warmKey    = "index"
	warmTime   = 10 * time.Second // that the store may take

	// restFor is how long the tools must have been the same before what search
	// made of them is kept anew.
	restFor = 5 * time.Second
)

// A warmth is what is kept of the index.
type warmth struct {
	store store.Store
	ready chan struct{}     // closed when the index has what was kept
	had   [sha256.Size]byte // of what was kept
}

// primeIndex has the index take over what an earlier process made, beside the
// rest of the start: nothing is indexed before.
func (a *App) primeIndex(context.Context) error {
	if len(a.Config.Tools.MCPServers) == 0 || a.opts.Store == "memory" {
		return nil
	}
	w := &warmth{store: store.Sub(a.manifestStore(), "mcp"), ready: make(chan struct{})}
	a.warmth = w
	go func() { // publish waits for it
		defer close(w.ready)
		ctx, cancel := context.WithTimeout(context.Background(), warmTime)
		defer cancel()
		var data []byte
		err := w.store.View(ctx, func(r store.Reader) (err error) {
			data, err = r.Get(warmBucket, warmKey)
			return err
		})
		if err == nil {
			w.had = sha256.Sum256(data)
			err = a.index.Prime(data)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, search.ErrStale) {
			a.log.Warn("what search had made of the tools cannot be used; it is made anew", "error", err)
		}
	}()
	return nil
}

// keepIndex keeps what search makes of the tools, each time that they have
// rested, and when the app is closed before that.
func (a *App) keepIndex() {
	w := a.warmth
	if w == nil || a.opts.Inspect {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	a.closers = append(a.closers, func() error {
		cancel()
		running.Wait()
		return nil
	})
	running.Go(func() {
		<-w.ready
		if !a.ups.Wait(ctx) {
			return // some tools are not there yet; what was kept may have them
		}
		a.index.Settle()
		for {
			a.rested(ctx) // or the app is closed: the servers' tools are still there
			changed := a.Changed()
			if err := w.keep(a.index); err != nil {
				a.log.Warn("the store does not keep what search made of the tools; the next start takes longer", "error", err)
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
}

// rested waits until the tools have been the same for a while, or ctx has
// ended.
func (a *App) rested(ctx context.Context) {
	for {
		timer := time.NewTimer(restFor)
		select {
		case <-timer.C:
			return
		case <-a.Changed():
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (w *warmth) keep(ix *search.Index) error {
	data := ix.Export()
	sum := sha256.Sum256(data)
	if data == nil || sum == w.had {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), warmTime)
	defer cancel()
	if err := w.store.Update(ctx, func(tx store.Writer) error { return tx.Put(warmBucket, warmKey, data) }); err != nil {
		return err
	}
	w.had, data = sum, nil
	debug.FreeOSMemory() // that was a multiple of what a waiting gateway holds
	return nil
}
