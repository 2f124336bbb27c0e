//go:build purego || (!amd64 && !arm64)

package matrix

const (
	instructions = "none"
	hasGELU      = false
)

var accelerated = false

func kernelSIMD(depth int, a *float32, lda int, b, bias, c *float32, ldc int) {
	panic("matrix: no such kernel")
}

func geluSIMD(x *float32, n int) { panic("matrix: no such kernel") }
