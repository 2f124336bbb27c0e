//go:build !purego

package matrix

import "golang.org/x/sys/cpu"

const (
	instructions = "neon"
	hasGELU      = false
)

var accelerated = cpu.ARM64.HasASIMD

//go:noescape
func kernelSIMD(depth int, a *float32, lda int, b, bias, c *float32, ldc int)

func geluSIMD(x *float32, n int) { panic("matrix: no such kernel") }
