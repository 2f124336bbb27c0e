package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/tool"
)

// A Live is an app that follows its file: when the file changes, the app is
// opened anew and takes the place of the old one, whose calls under way are
// finished first. A bad new file leaves the old app running. It is safe for
// concurrent use.
type Live struct {
	open func(context.Context) (*App, error)
	log  *slog.Logger

	reloading sync.Mutex // one reload at a time
	seen      [sha256.Size]byte

	mu      sync.Mutex
	now     *generation
	changed chan struct{} // closed when the app is replaced
	closers sync.WaitGroup
}

// A generation is an app and the calls that are under way in it.
type generation struct {
	app     *App
	calls   int
	retired bool
}

// OpenLive opens an app by open, which is called again whenever the file has changed.
func OpenLive(ctx context.Context, log *slog.Logger, open func(context.Context) (*App, error)) (*Live, error) {
	a, err := open(ctx)
	if err != nil {
		return nil, err
	}
	l := &Live{open: open, log: log, now: &generation{app: a}, changed: make(chan struct{})}
	l.seen = a.digest()
	return l, nil
}

// App returns the app as it is now.
func (l *Live) App() *App {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.app
}

// Follow looks at the app's files every so often, until ctx ends.
func (l *Live) Follow(ctx context.Context, every time.Duration) {
	if len(l.App().Config.Files()) == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.Check(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Check replaces the app if its files have changed. The error says why the
// old one goes on; it is told once for each state of the files.
func (l *Live) Check(ctx context.Context) error {
	l.reloading.Lock()
	defer l.reloading.Unlock()
	d := l.App().digest()
	if d == l.seen {
		return nil
	}
	l.seen = d
	next, err := l.open(ctx)
	if id := l.App().Config.App.ID; err == nil && next.Config.App.ID != id {
		err = errors.Join(fmt.Errorf("its app_id is now %q and was %q, by which clients and what is kept for them know it; end the app and start it anew", next.Config.App.ID, id), next.Close())
	}
	if err != nil {
		l.log.Error("the app file has changed and is bad; the app goes on as it was", "error", err)
		return err
	}
	l.seen = next.digest()
	l.replace(next)
	l.log.Info("the app file has changed; the app was opened anew", "app", next.Config.App.ID, "tools", next.Tools().Len())
	return nil
}

func (l *Live) replace(next *App) {
	l.mu.Lock()
	old, changed := l.now, l.changed
	l.now, l.changed = &generation{app: next}, make(chan struct{})
	old.retired = true
	idle := old.calls == 0
	l.mu.Unlock()
	close(changed)
	if idle {
		l.close(old)
	}
}

// close closes a retired app, in a goroutine that Close waits for: it may have
// servers to stop.
func (l *Live) close(g *generation) {
	l.closers.Go(func() {
		if err := g.app.Close(); err != nil {
			l.log.Warn("closing the app as it was before its file changed", "error", err)
		}
	})
}

// Call runs a call in the app as it is when the call begins.
func (l *Live) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	g := l.enter()
	defer l.leave(g)
	return g.app.Call(ctx, c)
}

func (l *Live) enter() *generation {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.calls++
	return l.now
}

func (l *Live) leave(g *generation) {
	l.mu.Lock()
	g.calls--
	last := g.retired && g.calls == 0
	l.mu.Unlock()
	if last {
		l.close(g)
	}
}

// View is App.View of the app as it is now.
func (l *Live) View(from tool.Origin, mode inject.Mode) inject.View { return l.App().View(from, mode) }

// ViewKnown is [App.ViewKnown] of the app as it is now.
func (l *Live) ViewKnown(from tool.Origin, mode inject.Mode) inject.View {
	return l.App().ViewKnown(from, mode)
}

// Changed returns a channel that is closed when the tools change, or the app.
func (l *Live) Changed() <-chan struct{} {
	l.mu.Lock()
	replaced, tools := l.changed, l.now.app.Changed()
	l.mu.Unlock()
	either := make(chan struct{})
	go func() { // ends with the app at the latest
		defer close(either)
		select {
		case <-replaced:
		case <-tools:
		}
	}()
	return either
}

// Close closes the app.
func (l *Live) Close() error {
	l.mu.Lock()
	g, changed := l.now, l.changed
	l.mu.Unlock()
	close(changed)
	err := g.app.Close()
	l.closers.Wait()
	return err
}

// Files returns the files from which an app was read: that which was named,
// those that it includes, those that extend its lexicon, and its skills and
// their folders.
func (c *Config) Files() []string {
	files := map[string]bool{}
	for _, file := range c.words {
		files[file] = true
	}
	for _, p := range c.places {
		files[p.file] = p.file != ""
	}
	maps.DeleteFunc(files, func(_ string, there bool) bool { return !there })
	return slices.Sorted(maps.Keys(files))
}

// digest stands for the files that the app was opened from.
func (a *App) digest() [sha256.Size]byte { return digest(a.Config.Files()) }

// digest sums up the contents of files, whatever their order. A file that
// cannot be read counts as empty.
func digest(files []string) (sum [sha256.Size]byte) {
	for _, f := range files {
		data, err := os.ReadFile(f)
		if info, no := os.Stat(f); no == nil && info.IsDir() {
			data, err = skillTexts(f), nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			continue
		}
		one := sha256.Sum256(append([]byte(f+"\x00"), data...))
		for i := range sum {
			sum[i] ^= one[i]
		}
	}
	return sum
}
