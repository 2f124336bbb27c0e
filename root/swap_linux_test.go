package root_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/helve-ai/helve/root"
	"golang.org/x/sys/unix"
)

// One goroutine swaps a folder for a link that leads out, another for one that leads to what is blocked, while others
// read, write, walk and delete: no byte from there is ever seen, and none is changed.
func TestSwapsNeverLeadOut(t *testing.T) {
	t.Run("proc", func(t *testing.T) { swapping(t, true) })
	t.Run("no proc", func(t *testing.T) { swapping(t, false) })
}

func swapping(t *testing.T, proc bool) {
	r, dir := newRoot(t)
	if !proc {
		r.WithoutProc()
	}
	outer := filepath.Dir(dir)
	put(t, outer, "away/f", "outside")
	put(t, dir, ".git/f", "blocked")
	ctx, cancel := context.WithCancel(context.Background())
	var swaps, work sync.WaitGroup
	for name, target := range map[string]string{"sub": filepath.Join(outer, "away"), "sub2": ".git"} {
		put(t, dir, name+"/f", "inside")
		link(t, dir, target, name+".link")
		place, other := filepath.Join(dir, name), filepath.Join(dir, name+".link")
		exchange := func() error { return unix.Renameat2(unix.AT_FDCWD, place, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE) }
		calm := new(sync.Mutex)
		swaps.Go(func() {
			for ctx.Err() == nil {
				calm.Lock()
				err := exchange()
				runtime.Gosched()
				err = errors.Join(err, exchange())
				calm.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
		work.Go(func() {
			for i := range 600 {
				during(calm, i%10 == 0, func(calm bool) { readSwapped(t, r, name+"/f", calm) })
			}
		})
		work.Go(func() {
			for i := range 100 {
				during(calm, i%10 == 0, func(calm bool) { writeSwapped(t, r, name, calm) })
			}
		})
	}
	work.Wait()
	cancel()
	swaps.Wait()
	for _, folder := range []string{filepath.Join(outer, "away"), filepath.Join(dir, ".git")} {
		entries, err := os.ReadDir(folder)
		must(t, err)
		if got := content(t, folder, "f"); len(entries) != 1 || got != "outside" && got != "blocked" {
			t.Errorf("%s: %v with %q", folder, entries, got)
		}
	}
}

// during runs use while nothing is swapped when calm is asked for, else in the midst of it.
func during(mu *sync.Mutex, calm bool, use func(calm bool)) {
	if calm {
		mu.Lock()
		defer mu.Unlock()
	}
	use(calm)
}

// readSwapped reads a file: in the calm it must be there, otherwise it may be refused, and never holds what lies elsewhere.
func readSwapped(t *testing.T, r *root.Root, name string, calm bool) {
	p, err := r.Resolve(name, root.ToRead)
	var data []byte
	if err == nil {
		data, err = r.ReadFile(p, 0)
	}
	if err != nil && calm || err == nil && string(data) != "inside" && string(data) != "written" {
		t.Errorf("%s: read %q, %v", name, data, err)
	}
}

// writeSwapped changes a folder in every way that there is.
func writeSwapped(t *testing.T, r *root.Root, folder string, calm bool) {
	p, err := r.Resolve(folder+"/f", root.ToWrite)
	if err == nil {
		err = r.WriteFileAtomic(p, []byte("written"), 0)
	}
	if err != nil && calm {
		t.Errorf("%s: write: %v", folder, err)
	}
	if p, err := r.Resolve(folder+"/g", root.ToWrite); err == nil {
		if f, err := r.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err == nil {
			f.WriteString("written")
			f.Close()
		}
	}
	if p, err := r.Resolve(folder+"/new/", root.ToWrite); err == nil {
		r.Mkdir(p, 0o755)
	}
	for _, name := range []string{"g", "new"} {
		if p, err := r.Resolve(folder+"/"+name, root.ToDelete); err == nil && p.Exists {
			r.RemoveAll(p)
		}
	}
}

// Where the kernel has no openat2, folders are opened component by component.
func TestOlderKernels(t *testing.T) {
	defer root.WithoutOpenat2()()
	t.Run("swaps", TestSwapsNeverLeadOut)
	t.Run("swapped", TestSwappedMeanwhile)
	t.Run("moved", TestRootMovedAway)
	t.Run("walk", TestWalk)
	t.Run("write", TestWriteFileAtomic)
}
