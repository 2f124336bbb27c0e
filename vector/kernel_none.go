//go:build purego || (!amd64 && !arm64)

package vector

const instructions = "none"

var accelerated = false

func dotRowsSIMD(dst *int32, query *int16, rows *int8, n, width int) { panic("vector: no such kernel") }
