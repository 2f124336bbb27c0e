package tensors

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/embed/embedtest"
)

func written(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func floats(t *testing.T, f *File, name string, shape ...int) []float32 {
	t.Helper()
	tensor, err := f.Tensor(name, shape...)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tensor.Floats()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestHalf(t *testing.T) {
	for h, want := range map[uint16]float32{0: 0, 0x3C00: 1, 0xC000: -2, 0x7BFF: 65504, 0x0400: 1.0 / (1 << 14), 1: 1.0 / (1 << 24), 0x03FF: 1023.0 / (1 << 24),
		0x3555: 0.333251953125, 0x7C00: float32(math.Inf(1)), 0xFC00: float32(math.Inf(-1))} {
		if got := half(h); got != want {
			t.Errorf("%04x: %v, want %v", h, got, want)
		}
	}
	if !math.IsNaN(float64(half(0x7E00))) || !math.Signbit(float64(half(0x8000))) {
		t.Error("NaN or -0 is lost")
	}
}

// Both ways of exporting give the weights as PyTorch has them.
func TestSameFromAllFormats(t *testing.T) {
	m := embedtest.Model{Hidden: 12, Heads: 2, Intermediate: 20}
	for _, format := range []string{"F32", "onnx", "onnx-named"} {
		m.Format = format
		dir := t.TempDir()
		if err := embedtest.Write(dir, m); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "model.safetensors")
		if strings.HasPrefix(format, "onnx") {
			path = filepath.Join(dir, "onnx", "model.onnx")
		}
		f := opened(t, path)
		for _, w := range m.Weights() {
			if got := floats(t, f, w.Name, w.Shape...); !slices.Equal(got, w.Values) {
				t.Errorf("%s: %s differs", format, w.Name)
			}
		}
		row := make([]float32, 12)
		words, err := f.Tensor("embeddings.word_embeddings.weight", 200, 12)
		if err != nil {
			t.Fatal(err)
		}
		if err := words.Row(199, row); err != nil || !slices.Equal(row, m.Weights()[0].Values[199*12:]) {
			t.Errorf("%s: row 199 is %v (%v)", format, row, err)
		}
		if words.Row(200, row) == nil {
			t.Error("there is a row 200")
		}
		if _, err := f.Tensor("pooler.dense.weight", 1); err == nil {
			t.Error("a tensor that is not there was found")
		}
	}
}

// A prefix, such as an exporter puts before all names, is found.
func TestFind(t *testing.T) {
	weights := []embedtest.Tensor{{Name: "bert.x.weight", Shape: []int{1}, Values: []float32{1}}, {Name: "bert.yx.weight", Shape: []int{1}, Values: []float32{1}}}
	f := opened(t, written(t, "m.safetensors", embedtest.Safetensors("F32", weights)))
	if got, err := f.Find("x.weight"); got != "bert." || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := f.Find("z.weight"); err == nil {
		t.Error("z.weight was found")
	}
}

func TestBadSafetensors(t *testing.T) {
	file := func(header string, data int) []byte {
		out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
		return append(append(out, header...), make([]byte, data)...)
	}
	for want, data := range map[string][]byte{
		"not a safetensors file":           []byte("no"),
		"a header of":                      binary.LittleEndian.AppendUint64(nil, math.MaxUint64),
		"header":                           file(`{"a":`, 0),
		"lies from byte 0 to 8 of 4":       file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 4),
		"lies from byte 4 to 0":            file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[4,0]}}`, 4),
		"4 bytes for 2 values of F32":      file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4),
		"is not one that a model has":      file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0),
		"[-1] is not one that a model has": file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}`, 0),
	} {
		if f, err := Open(written(t, "m.safetensors", data)); err == nil {
			f.Close()
			t.Errorf("%s: it was opened", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// field is a field of a protocol buffer whose value is bytes or a number.
func encode(number int, value any) []byte {
	switch v := value.(type) {
	case int:
		return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), uint64(v))
	case string:
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3|2), uint64(len(v))), v...)
	}
	panic("neither")
}

func join(fields ...[]byte) string { return string(slices.Concat(fields...)) }

func TestONNXDataBesideTheModel(t *testing.T) {
	beside := func(location string, offset, length string) []byte {
		entry := func(k, v string) []byte { return encode(13, join(encode(1, k), encode(2, v))) }
		tensor := join(encode(1, 2), encode(2, 1), encode(8, "a"), entry("location", location), entry("offset", offset), entry("length", length), encode(14, 1))
		return encode(7, join(encode(5, tensor)))
	}
	path := written(t, "m.onnx", beside("m.data", "4", "8"))
	data := binary.LittleEndian.AppendUint32(nil, 0)
	for _, x := range []float32{1.5, -2} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "m.data"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := floats(t, opened(t, path), "a", 2); !slices.Equal(got, []float32{1.5, -2}) {
		t.Error(got)
	}
	for want, model := range map[string][]byte{
		"does not lie beside":  beside("../m.data", "4", "8"),
		"8 bytes from 8 on":    beside("m.data", "8", "8"),
		"4 bytes for 2 values": beside("m.data", "4", "4"),
		"offset":               beside("m.data", "four", "8"),
	} {
		if err := os.WriteFile(path, model, 0o644); err != nil {
			t.Fatal(err)
		}
		if f, err := Open(path); err == nil {
			f.Close()
			t.Errorf("%s: it was opened", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestONNXThatIsNotRead(t *testing.T) {
	graph := func(op, domain string) []byte {
		return encode(7, join(encode(1, join(encode(1, "x"), encode(2, "y"), encode(4, op), encode(7, domain)))))
	}
	if _, err := Open(written(t, "m.onnx", graph("MatMulInteger", ""))); err == nil || !strings.Contains(err.Error(), "quantised (MatMulInteger)") {
		t.Error(err)
	}
	f := opened(t, written(t, "m.onnx", graph("SkipLayerNormalization", "com.microsoft")))
	if _, err := f.Find("x"); err == nil || !strings.Contains(err.Error(), "optimised (SkipLayerNormalization)") {
		t.Error(err)
	}
	for _, data := range []string{"", "text that is not a model", "\x3a\xff"} {
		if f, err := Open(written(t, "m.onnx", []byte(data))); err == nil {
			f.Close()
			t.Errorf("%q was opened", data)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, format := range []string{"onnx", "onnx-named"} {
		dir := f.TempDir()
		if err := embedtest.Write(dir, embedtest.Model{Hidden: 2, Heads: 1, Intermediate: 2, Layers: 1, Vocabulary: 80, Positions: 4, Format: format}); err != nil {
			f.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "onnx", "model.onnx"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, true)
	}
	f.Add(embedtest.Safetensors("F16", []embedtest.Tensor{{Name: "a", Shape: []int{2}, Values: []float32{1, 2}}}), false)
	f.Fuzz(func(t *testing.T, data []byte, onnx bool) {
		name := "m.safetensors"
		if onnx {
			name = "m.onnx"
		}
		file, err := Open(written(t, name, data))
		if err != nil {
			return
		}
		defer file.Close()
		for _, tensor := range file.tensors {
			if n, err := values(tensor.Shape()); err == nil && n < 1<<20 {
				tensor.Floats()
			}
		}
	})
}
