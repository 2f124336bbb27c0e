//go:build unix

package root_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/helve-ai/helve/root"
	"golang.org/x/sys/unix"
)

func TestSpecialFilesAreNotOpened(t *testing.T) {
	r, dir := newRoot(t)
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	link(t, dir, "pipe", "to-pipe")
	t.Chdir(dir)
	socket, err := net.Listen("unix", "socket")
	must(t, err)
	defer socket.Close()
	for _, name := range []string{"pipe", "to-pipe", "socket"} {
		for _, access := range []root.Access{root.ToList, root.ToRead, root.ToWrite} {
			if _, err := r.Resolve(name, access); root.CodeOf(err) != root.Special {
				t.Errorf("%s %s: %v; want it refused as special", access, name, err)
			}
		}
	}
	if _, err := r.Resolve("pipe", root.ToDelete); root.CodeOf(err) != root.Special {
		t.Errorf("delete: %v; want it refused as special", err)
	}
}

// A pipe that takes the place of a file after it was judged must not make the reader wait.
func TestAPipeMeanwhile(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "f", "x")
	read, write := resolve(t, r, "f", root.ToRead), resolve(t, r, "f", root.ToWrite)
	must(t, os.Remove(filepath.Join(dir, "f")))
	must(t, unix.Mkfifo(filepath.Join(dir, "f"), 0o644))
	if _, err := r.ReadFile(read, 0); root.CodeOf(err) != root.Special {
		t.Errorf("read: %v; want it refused as special", err)
	}
	if err := r.WriteFileAtomic(write, []byte("x"), 0); root.CodeOf(err) != root.Special {
		t.Errorf("write: %v; want it refused as special", err)
	}
	if f, err := r.OpenFile(write, os.O_RDWR, 0); root.CodeOf(err) != root.Special {
		t.Errorf("open: %v, %v; want it refused as special", f, err)
	}
}

// One goroutine swaps a folder for a link that leads out, another for one that leads to what is blocked, while others
// read, write, walk and delete: no byte from there is ever seen, and none is changed.
func TestSwapsNeverLeadOut(t *testing.T) {
	swapping(t)
}

func swapping(t *testing.T) {
	r, dir := newRoot(t)
	outer := filepath.Dir(dir)
	put(t, outer, "away/f", "outside")
	put(t, dir, ".git/f", "blocked")
	put(t, dir, "sub/f", "inside")
	put(t, dir, "sub2/f", "inside")
	ctx, cancel := context.WithCancel(context.Background())
	var swaps, work sync.WaitGroup
	for name, target := range map[string]string{"sub": filepath.Join(outer, "away"), "sub2": ".git"} {
		place, aside := filepath.Join(dir, name), filepath.Join(dir, name+".aside")
		swaps.Go(func() {
			for ctx.Err() == nil {
				if os.Rename(place, aside) == nil {
					os.Symlink(target, place)
					os.Remove(place)
					os.Rename(aside, place)
				}
			}
		})
	}
	var mu sync.Mutex
	reads, writes := 0, 0
	for _, name := range []string{"sub/", "sub2/"} {
		work.Go(func() {
			for range 1500 {
				if p, err := r.Resolve(name+"f", root.ToRead); err == nil {
					if data, err := r.ReadFile(p, 0); err == nil {
						if string(data) != "inside" && string(data) != "written" {
							t.Errorf("%s: read %q", p.Rel, data)
						}
						mu.Lock()
						reads++
						mu.Unlock()
					}
				}
			}
		})
		work.Go(func() {
			for range 300 {
				if p, err := r.Resolve(name+"f", root.ToWrite); err == nil && r.WriteFileAtomic(p, []byte("written"), 0) == nil {
					mu.Lock()
					writes++
					mu.Unlock()
				}
				if p, err := r.Resolve(name+"g", root.ToWrite); err == nil {
					if f, err := r.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err == nil {
						f.WriteString("written")
						f.Close()
					}
				}
				if p, err := r.Resolve(name+"new/", root.ToWrite); err == nil {
					r.Mkdir(p, 0o755)
				}
				if p, err := r.Resolve(name+"g", root.ToDelete); err == nil && p.Exists {
					r.Remove(p)
				}
			}
		})
	}
	work.Wait()
	cancel()
	swaps.Wait()
	if reads == 0 || writes == 0 {
		t.Errorf("%d reads and %d writes arrived: nothing was tried", reads, writes)
	}
	for _, folder := range []string{filepath.Join(outer, "away"), filepath.Join(dir, ".git")} {
		entries, err := os.ReadDir(folder)
		must(t, err)
		if got := content(t, folder, "f"); len(entries) != 1 || got != "outside" && got != "blocked" {
			t.Errorf("%s: %v with %q", folder, entries, got)
		}
	}
}
