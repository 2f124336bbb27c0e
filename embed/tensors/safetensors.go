package tensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// maxHeader bounds the header of a safetensors file, as its specification does.
const maxHeader = 100 << 20

var safetensorsFormats = map[string]format{"F32": f32, "F16": f16, "BF16": bf16}

func (f *File) readSafetensors(r io.ReaderAt, size int64) error {
	var head [8]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return fmt.Errorf("this is not a safetensors file: %w", err)
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader || int64(n)+8 > size {
		return fmt.Errorf("this is not a safetensors file: a header of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, 8); err != nil {
		return err
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(text, &header); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	delete(header, "__metadata__")
	for name, entry := range header {
		t, err := safetensor(name, entry, int64(n)+8, size)
		if err != nil {
			return err
		}
		t.data = r
		f.tensors[name] = t
	}
	return nil
}

// safetensor reads an entry of a header, whose data begins at base.
func safetensor(name string, entry json.RawMessage, base, size int64) (*Tensor, error) {
	var e struct {
		DType   string
		Shape   []int
		Offsets [2]int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(entry, &e); err != nil {
		return nil, fmt.Errorf("header: %s: %w", name, err)
	}
	from, to := e.Offsets[0], e.Offsets[1]
	if from < 0 || to < from || to > size-base {
		return nil, fmt.Errorf("tensor %s lies from byte %d to %d of %d", name, from, to, size-base)
	}
	t := &Tensor{name: name, shape: e.Shape, format: safetensorsFormats[e.DType], said: e.DType, at: base + from}
	return t, t.check(to - from)
}
