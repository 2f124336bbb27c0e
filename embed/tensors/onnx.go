package tensors

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The fields of ONNX's messages that are read, by their numbers in onnx.proto.
const (
	modelGraph = 7

	graphNode        = 1
	graphInitializer = 5

	nodeInput     = 1
	nodeOutput    = 2
	nodeOp        = 4
	nodeAttribute = 5
	nodeDomain    = 7

	attributeName   = 1
	attributeInt    = 3
	attributeTensor = 5
	attributeInts   = 8

	tensorDims     = 1
	tensorType     = 2
	tensorFloats   = 4
	tensorName     = 8
	tensorRaw      = 9
	tensorExternal = 13

	entryKey   = 1
	entryValue = 2
)

var onnxFormats = map[uint64]format{1: f32, 10: f16, 16: bf16}

// A node is an operation of a graph.
type node struct {
	op, domain      string
	inputs, outputs []string
	transB          bool    // of Gemm
	perm            []int   // of Transpose
	constant        *Tensor // of Constant
}

// An onnx is what is read of a graph.
type onnx struct {
	file   *File
	dir    string
	nodes  []node
	source map[string]*node // by output
	open   map[string]io.ReaderAt
}

func (f *File) readONNX(r io.ReaderAt, size int64, dir string) error {
	g := &onnx{file: f, dir: dir, source: map[string]*node{}, open: map[string]io.ReaderAt{}}
	model := &message{r: r, end: size, window: &window{}}
	found := false
	for fl := (field{}); model.next(&fl); {
		if fl.number == modelGraph {
			found = true
			if err := g.graph(model.in(&fl)); err != nil {
				return err
			}
		}
	}
	if model.err != nil || !found {
		return fmt.Errorf("this is not an ONNX model: %w", orNone(model.err))
	}
	if err := g.refuse(); err != nil {
		return err
	}
	g.resolve()
	return nil
}

func orNone(err error) error {
	if err == nil {
		return fmt.Errorf("it has no graph")
	}
	return err
}

func (g *onnx) graph(m *message) error {
	for f := (field{}); m.next(&f); {
		switch f.number {
		case graphNode:
			n, err := g.node(m.in(&f))
			if err != nil {
				return err
			}
			g.nodes = append(g.nodes, n)
		case graphInitializer:
			t, err := g.tensor(m.in(&f))
			if err != nil {
				return err
			}
			g.file.tensors[t.name] = t
		}
	}
	return m.err
}

func (g *onnx) node(m *message) (n node, err error) {
	for f := (field{}); m.next(&f); {
		switch f.number {
		case nodeInput:
			n.inputs = append(n.inputs, m.text(&f))
		case nodeOutput:
			n.outputs = append(n.outputs, m.text(&f))
		case nodeOp:
			n.op = m.text(&f)
		case nodeDomain:
			n.domain = m.text(&f)
		case nodeAttribute:
			if err := g.attribute(&n, m.in(&f)); err != nil {
				return n, err
			}
		}
	}
	return n, m.err
}

func (g *onnx) attribute(n *node, m *message) error {
	var name string
	var number uint64
	var numbers []int
	for f := (field{}); m.next(&f); {
		switch f.number {
		case attributeName:
			name = m.text(&f)
		case attributeInt:
			number = f.value
		case attributeInts:
			numbers = m.numbers(numbers, &f)
		case attributeTensor:
			t, err := g.tensor(m.in(&f))
			if err != nil {
				return err
			}
			n.constant = t
		}
	}
	switch name {
	case "transB":
		n.transB = number != 0
	case "perm":
		n.perm = numbers
	}
	return m.err
}

func (g *onnx) tensor(m *message) (*Tensor, error) {
	t := &Tensor{data: m.r, shape: []int{}, said: "no type"}
	bytes, outside := int64(-1), map[string]string{}
	for f := (field{}); m.next(&f); {
		switch f.number {
		case tensorDims:
			t.shape = m.numbers(t.shape, &f)
		case tensorType:
			t.format, t.said = onnxFormats[f.value], fmt.Sprintf("ONNX type %d", f.value)
		case tensorName:
			t.name = m.text(&f)
		case tensorRaw, tensorFloats:
			t.at, bytes = f.at, f.end-f.at
		case tensorExternal:
			key, value, err := entry(m.in(&f))
			if err != nil {
				return nil, err
			}
			outside[key] = value
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	if len(outside) > 0 {
		return t, g.outside(t, outside)
	}
	if bytes < 0 {
		t.format = unread // no data of a kind that is read
		return t, nil
	}
	return t, t.check(bytes)
}

func entry(m *message) (key, value string, err error) {
	for f := (field{}); m.next(&f); {
		switch f.number {
		case entryKey:
			key = m.text(&f)
		case entryValue:
			value = m.text(&f)
		}
	}
	return key, value, m.err
}

// outside finds the data of a tensor that is kept in a file beside the model.
func (g *onnx) outside(t *Tensor, where map[string]string) error {
	name := where["location"]
	if !filepath.IsLocal(name) {
		return fmt.Errorf("tensor %s: its data is in %q, which does not lie beside the model", t.name, name)
	}
	size, err := g.openOutside(t, name)
	if err != nil {
		return fmt.Errorf("tensor %s: %w", t.name, err)
	}
	length := size
	for key, into := range map[string]*int64{"offset": &t.at, "length": &length} {
		if text, ok := where[key]; ok {
			if *into, err = strconv.ParseInt(text, 10, 64); err != nil {
				return fmt.Errorf("tensor %s: %s: %w", t.name, key, err)
			}
		}
	}
	if t.at < 0 || length < 0 || length > size-t.at {
		return fmt.Errorf("tensor %s: %d bytes from %d on of the %d of %s", t.name, length, t.at, size, name)
	}
	return t.check(length)
}

// openOutside makes the file of a name the tensor's data, and returns its size.
func (g *onnx) openOutside(t *Tensor, name string) (int64, error) {
	f, ok := g.open[name].(*os.File)
	if !ok {
		var err error
		if f, err = os.Open(filepath.Join(g.dir, name)); err != nil {
			return 0, err
		}
		g.open[name], g.file.open = f, append(g.file.open, f)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	t.data = f
	return info.Size(), nil
}

// quantised are operations on integers: their weights are not those of the model.
var quantised = []string{"MatMulInteger", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv", "DequantizeLinear", "QuantizeLinear", "MatMulNBits", "DynamicQuantizeMatMul"}

// refuse fails on graphs whose weights cannot be read, and notes what may be
// why others lack some.
func (g *onnx) refuse() error {
	var fused []string
	for _, n := range g.nodes {
		if slices.Contains(quantised, n.op) {
			return fmt.Errorf("the export is quantised (%s); take the one with float weights, usually model.onnx", n.op)
		}
		if n.domain != "" && n.domain != "ai.onnx" && !slices.Contains(fused, n.op) {
			fused = append(fused, n.op)
		}
	}
	if len(fused) > 0 {
		g.file.odd = fmt.Sprintf("; the export is optimised (%s): take the plain one, usually model.onnx", strings.Join(fused, ", "))
	}
	return nil
}

// resolve gives weights the names that the model's layers had before they
// were exported.
func (g *onnx) resolve() {
	for i := range g.nodes {
		for _, out := range g.nodes[i].outputs {
			g.source[out] = &g.nodes[i]
		}
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.op == "Identity" || n.op == "Constant" || n.op == "Cast" {
			if t := g.weight(n.outputs[0]); t != nil {
				g.file.tensors[n.outputs[0]] = t
			}
		}
	}
	for i := range g.nodes {
		switch n := &g.nodes[i]; {
		case n.op == "Add" && len(n.inputs) == 2:
			g.linear(n.inputs[0], n.inputs[1])
			g.linear(n.inputs[1], n.inputs[0])
		case n.op == "Gemm" && len(n.inputs) == 3:
			if w := g.weight(n.inputs[1]); w != nil && len(w.shape) == 2 {
				if !n.transB {
					w = w.transpose()
				}
				g.name(n.inputs[2], w)
			}
		}
	}
}

// maxHops bounds how far a weight is traced.
const maxHops = 8

// weight returns the tensor that a value of the graph is: an initialiser, or
// one that is only passed on, cast or transposed.
func (g *onnx) weight(value string) *Tensor {
	turned := false
	for range maxHops {
		n := g.source[value]
		t := g.file.tensors[value]
		if t == nil && n != nil && n.op == "Constant" {
			t = n.constant
		}
		if t != nil {
			if turned {
				return t.transpose()
			}
			return t
		}
		if n == nil || len(n.inputs) != 1 {
			return nil
		}
		switch {
		case n.op == "Identity" || n.op == "Cast":
		case n.op == "Transpose" && (len(n.perm) == 0 || slices.Equal(n.perm, []int{1, 0})):
			if in := g.file.tensors[n.inputs[0]]; in == nil || len(in.shape) != 2 {
				return nil
			}
			turned = !turned
		default:
			return nil
		}
		value = n.inputs[0]
	}
	return nil
}

// linear names the weights of a product to which a bias is added.
func (g *onnx) linear(product, bias string) {
	n := g.source[product]
	if n == nil || n.op != "MatMul" || len(n.inputs) != 2 {
		return
	}
	if w := g.weight(n.inputs[1]); w != nil && len(w.shape) == 2 {
		g.name(bias, w.transpose())
	}
}

// name gives weights the name that goes with that of a bias.
func (g *onnx) name(bias string, w *Tensor) {
	layer, ok := strings.CutSuffix(bias, ".bias")
	if !ok || g.weight(bias) == nil {
		return
	}
	g.file.tensors[layer+".weight"] = w
}
