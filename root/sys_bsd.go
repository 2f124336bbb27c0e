//go:build unix && !linux

package root

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// foldsNames: whether file systems here take "A" and "a" for one name. Those of macOS do, unless formatted otherwise;
// on one that does not, rules match a little more than they must.
const foldsNames = runtime.GOOS == "darwin" || runtime.GOOS == "ios"

func mtime(st *unix.Stat_t) int64 { return st.Mtim.Nano() }
func ctime(st *unix.Stat_t) int64 { return st.Ctim.Nano() }

func (r *Root) descend(rel string) (*dir, error) { return r.stepwise(rel) }

// pathOf cannot tell here.
func pathOf(int) (string, bool) { return "", false }

// verifyDir has nothing to add to opening component by component without links.
func (r *Root) verifyDir(*dir, string) error { return nil }

// verifyFile has nothing to add to opening component by component without links.
func (r *Root) verifyFile(*os.File, string) error { return nil }
