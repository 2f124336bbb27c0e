package embedtest

import (
	"encoding/binary"
	"encoding/json"
	"math"
)

// Safetensors returns a safetensors file of the weights in the format F32, F16
// or BF16.
func Safetensors(format string, weights []Tensor) []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, t := range weights {
		from := len(data)
		for _, x := range t.Values {
			switch format {
			case "F16":
				data = binary.LittleEndian.AppendUint16(data, toHalf(x))
			case "BF16":
				data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(x)>>16))
			default:
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			}
		}
		header[t.Name] = map[string]any{"dtype": format, "shape": t.Shape, "data_offsets": []int{from, len(data)}}
	}
	head, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(out, head...), data...)
}

// toHalf returns the nearest float of 16 bits towards zero.
func toHalf(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 31 << 15)
	exponent := int(b>>23&0xFF) - 112
	switch {
	case exponent >= 31:
		return sign | 31<<10
	case exponent > 0:
		return sign | uint16(exponent)<<10 | uint16(b>>13&1023)
	case exponent > -10:
		return sign | uint16((b&(1<<23-1)|1<<23)>>(14-exponent))
	}
	return sign
}
