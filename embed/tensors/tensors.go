// Package tensors reads the weights of a model from safetensors and ONNX files.
package tensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// A File holds the weights of a file by name. They are read when they are
// asked for; until Close, that may be done concurrently.
type File struct {
	tensors map[string]*Tensor
	open    []io.Closer
	odd     string // what may be why a tensor is missing
}

// Open reads what is in the file at path: safetensors, or ONNX by its
// extension. Of an ONNX graph, weights that have lost their names are found
// again by the named bias that is added to their product.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	out := &File{tensors: map[string]*Tensor{}, open: []io.Closer{f}}
	if err == nil {
		switch filepath.Ext(path) {
		case ".safetensors":
			err = out.readSafetensors(f, info.Size())
		case ".onnx":
			err = out.readONNX(f, info.Size(), filepath.Dir(path))
		default:
			err = errors.New("weights are read from .safetensors and .onnx")
		}
	}
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// Close closes the file. Tensors cannot be read any more.
func (f *File) Close() error {
	var errs []error
	for _, c := range f.open {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Tensor returns the tensor of a name and shape. Weights of linear layers have
// the shape out, in, as PyTorch has them, in ONNX files too.
func (f *File) Tensor(name string, shape ...int) (*Tensor, error) {
	t, ok := f.tensors[name]
	if !ok {
		return nil, fmt.Errorf("there is no tensor %s%s", name, f.odd)
	}
	if got := t.Shape(); fmt.Sprint(got) != fmt.Sprint(shape) {
		return nil, fmt.Errorf("tensor %s has the shape %d, want %d", name, got, shape)
	}
	return t, nil
}

// Find returns the beginning of the only name that ends so: "bert." of
// "bert.embeddings.word_embeddings.weight".
func (f *File) Find(end string) (string, error) {
	found, n := "", 0
	for name := range f.tensors {
		if before, ok := strings.CutSuffix(name, end); ok && (before == "" || strings.HasSuffix(before, ".")) {
			found, n = before, n+1
		}
	}
	switch n {
	case 0:
		return "", fmt.Errorf("there is no tensor %s%s", end, f.odd)
	case 1:
		return found, nil
	}
	return "", fmt.Errorf("there are %d tensors %s, want one", n, end)
}

// A format is how a number is written.
type format uint8

const (
	unread format = iota // a kind that is not read
	f32
	f16
	bf16
)

func (f format) size() int {
	if f == f32 {
		return 4
	}
	return 2
}

// A Tensor is an array of floats in a file.
type Tensor struct {
	name       string
	shape      []int
	transposed bool // shape and values are those of the transpose
	format     format
	said       string // the format as the file names it
	data       io.ReaderAt
	at         int64
}

// Shape returns the tensor's dimensions.
func (t *Tensor) Shape() []int {
	if t.transposed {
		return []int{t.shape[1], t.shape[0]}
	}
	return t.shape
}

func (t *Tensor) transpose() *Tensor {
	other := *t
	other.transposed = !t.transposed
	return &other
}

// maxValues bounds how many values a tensor may have.
const maxValues = 1 << 33

// values returns how many values a tensor of the shape has.
func values(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > maxValues/max(n, 1) {
			return 0, fmt.Errorf("the shape %d is not one that a model has", shape)
		}
		n *= d
	}
	return n, nil
}

// check reports whether the tensor's values fit the bytes that there are.
func (t *Tensor) check(bytes int64) error {
	n, err := values(t.shape)
	if err != nil {
		return fmt.Errorf("tensor %s: %w", t.name, err)
	}
	if t.format != unread && int64(n)*int64(t.format.size()) != bytes {
		return fmt.Errorf("tensor %s: %d bytes for %d values of %s", t.name, bytes, n, t.said)
	}
	return nil
}

// Floats reads all values, row by row.
func (t *Tensor) Floats() ([]float32, error) {
	n, err := values(t.shape)
	if err != nil {
		return nil, err
	}
	out := make([]float32, n)
	if err := t.read(out, 0); err != nil {
		return nil, err
	}
	if !t.transposed {
		return out, nil
	}
	turned := make([]float32, n)
	rows, cols := t.shape[0], t.shape[1]
	for r := range rows {
		for c, x := range out[r*cols : (r+1)*cols] {
			turned[c*rows+r] = x
		}
	}
	return turned, nil
}

// Row reads row i of a tensor of two dimensions into dst.
func (t *Tensor) Row(i int, dst []float32) error {
	if t.transposed || len(t.shape) != 2 || i < 0 || i >= t.shape[0] || len(dst) != t.shape[1] {
		return fmt.Errorf("tensor %s: no row %d of %d values in the shape %d", t.name, i, len(dst), t.Shape())
	}
	return t.read(dst, i*t.shape[1])
}

// chunk is how many bytes are read at once.
const chunk = 1 << 16

// read reads len(dst) values from the one at from on.
func (t *Tensor) read(dst []float32, from int) error {
	if t.format == unread {
		return fmt.Errorf("tensor %s is written as %s; F32, F16 and BF16 are read", t.name, t.said)
	}
	size := t.format.size()
	at := t.at + int64(from)*int64(size)
	buf := make([]byte, min(chunk, len(dst)*size))
	for len(dst) > 0 {
		n := min(len(dst), len(buf)/size)
		if _, err := t.data.ReadAt(buf[:n*size], at); err != nil {
			return fmt.Errorf("tensor %s: %w", t.name, err)
		}
		t.format.decode(dst[:n], buf)
		dst, at = dst[n:], at+int64(n*size)
	}
	return nil
}

func (f format) decode(dst []float32, data []byte) {
	for i := range dst {
		switch f {
		case f32:
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		case f16:
			dst[i] = half(binary.LittleEndian.Uint16(data[2*i:]))
		case bf16:
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
	}
}

// half returns the value of a float of 16 bits (IEEE 754 binary16).
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 31:
		return math.Float32frombits(sign | 0xFF<<23 | fraction<<13)
	case 0:
		small := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(small))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
