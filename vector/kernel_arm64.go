//go:build !purego

package vector

import "golang.org/x/sys/cpu"

const instructions = "neon"

var accelerated = cpu.ARM64.HasASIMD

// dotRowsSIMD is dotRows for n rows of width components.
//
//go:noescape
func dotRowsSIMD(dst *int32, query *int16, rows *int8, n, width int)
