//go:build unix

package root_test

import (
	"net"
	"os"
	"path/filepath"
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
