//go:build !purego

package vector

import "golang.org/x/sys/cpu"

const instructions = "avx2"

var accelerated = cpu.X86.HasAVX2

// dotRowsSIMD is dotRows for n rows of width components.
//
//go:noescape
func dotRowsSIMD(dst *int32, query *int16, rows *int8, n, width int)
