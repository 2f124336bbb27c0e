package root_test

import (
	"testing"

	"github.com/helve-ai/helve/root"
)

func TestOlderKernels(t *testing.T) {
	defer root.WithoutOpenat2()()
	t.Run("swaps", swapping)
	t.Run("swapped", TestSwappedMeanwhile)
	t.Run("moved", TestRootMovedAway)
	t.Run("walk", TestWalk)
	t.Run("write", TestWriteFileAtomic)
}
