//go:build !purego

package matrix

import "golang.org/x/sys/cpu"

const (
	instructions = "avx2"
	hasGELU      = true
)

var accelerated = cpu.X86.HasAVX2 && cpu.X86.HasFMA

//go:noescape
func kernelSIMD(depth int, a *float32, lda int, b, bias, c *float32, ldc int)

// geluSIMD computes GELU in place, of n values, n a multiple of 8.
//
//go:noescape
func geluSIMD(x *float32, n int)
