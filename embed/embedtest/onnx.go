package embedtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// A proto is a protocol buffer that is being written.
type proto []byte

func (p *proto) number(field int, v uint64) {
	*p = binary.AppendUvarint(*p, uint64(field)<<3)
	*p = binary.AppendUvarint(*p, v)
}

func (p *proto) bytes(field int, b []byte) {
	*p = binary.AppendUvarint(*p, uint64(field)<<3|2)
	*p = binary.AppendUvarint(*p, uint64(len(b)))
	*p = append(*p, b...)
}

func (p *proto) float(field int, x float32) {
	*p = binary.AppendUvarint(*p, uint64(field)<<3|5)
	*p = binary.LittleEndian.AppendUint32(*p, math.Float32bits(x))
}

// ONNX's types of elements.
const (
	typeFloat = 1
	typeInt64 = 7
)

// A graph is an ONNX graph that is being written.
type graph struct {
	body  proto
	count int
}

// tensor adds an initialiser.
func (g *graph) tensor(name string, shape []int, kind uint64, raw []byte) string {
	var t proto
	for _, d := range shape {
		t.number(1, uint64(d))
	}
	t.number(2, kind)
	t.bytes(8, []byte(name))
	t.bytes(9, raw)
	g.body.bytes(5, t)
	return name
}

func (g *graph) floats(name string, shape []int, values ...float32) string {
	var raw []byte
	for _, x := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return g.tensor(name, shape, typeFloat, raw)
}

func (g *graph) ints(name string, shape []int, values ...int64) string {
	var raw []byte
	for _, x := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(x))
	}
	return g.tensor(name, shape, typeInt64, raw)
}

// An attribute of a node is an int, a float or a list of ints.
type attribute struct {
	name  string
	value any
}

func (a attribute) encode() []byte {
	var p proto
	p.bytes(1, []byte(a.name))
	switch v := a.value.(type) {
	case int:
		p.number(3, uint64(v))
		p.number(20, 2)
	case float32:
		p.float(2, v)
		p.number(20, 1)
	case []int:
		for _, i := range v {
			p.number(8, uint64(i))
		}
		p.number(20, 7)
	}
	return p
}

// node adds an operation, and returns the name of its output.
func (g *graph) node(op string, inputs []string, attributes ...attribute) string {
	g.count++
	out := fmt.Sprintf("/%s_%d_output_0", op, g.count)
	g.named(out, op, inputs, attributes...)
	return out
}

func (g *graph) named(out, op string, inputs []string, attributes ...attribute) {
	var n proto
	for _, in := range inputs {
		n.bytes(1, []byte(in))
	}
	n.bytes(2, []byte(out))
	n.bytes(3, []byte(strings.TrimSuffix(out, "_output_0")))
	n.bytes(4, []byte(op))
	for _, a := range attributes {
		n.bytes(5, a.encode())
	}
	g.body.bytes(1, n)
}

// value declares an input or output of the graph.
func (g *graph) value(field int, name string, kind uint64, dims ...string) {
	var shape proto
	for _, d := range dims {
		var dim proto
		dim.bytes(2, []byte(d))
		shape.bytes(1, dim)
	}
	var tensor, kindOf, info proto
	tensor.number(1, kind)
	tensor.bytes(2, shape)
	kindOf.bytes(1, tensor)
	info.bytes(1, []byte(name))
	info.bytes(2, kindOf)
	g.body.bytes(field, info)
}

// onnx returns the model as an exporter writes it, which runs: weights of
// products are transposed and have lost their names, or, in the format
// "onnx-named", have kept both and are transposed in the graph.
func (m *Model) onnx() []byte {
	b := &builder{m: m, weights: map[string]Tensor{}, left: m.Format == "onnx"}
	for _, t := range m.Weights() {
		b.weights[t.Name] = t
	}
	b.build()
	var opset, model proto
	opset.bytes(1, nil)
	opset.number(2, 17)
	model.number(1, 8)
	model.bytes(2, []byte("embedtest"))
	model.bytes(7, b.body)
	model.bytes(8, opset)
	return model
}

type builder struct {
	graph
	m       *Model
	weights map[string]Tensor
	left    bool // weights lose their names
}

func (b *builder) weight(name string) string {
	t := b.weights[name]
	return b.floats(name, t.Shape, t.Values...)
}

// linear adds a layer. Its bias comes first or second, as exporters have it.
func (b *builder) linear(x, name string) string {
	t := b.weights[name+".weight"]
	var w string
	if b.left {
		out, in := t.Shape[0], t.Shape[1]
		turned := make([]float32, len(t.Values))
		for o := range out {
			for i := range in {
				turned[i*out+o] = t.Values[o*in+i]
			}
		}
		b.count++
		w = b.floats(fmt.Sprintf("onnx::MatMul_%d", b.count), []int{in, out}, turned...)
	} else {
		w = b.node("Transpose", []string{b.weight(name + ".weight")}, attribute{"perm", []int{1, 0}})
	}
	product := b.node("MatMul", []string{x, w})
	if b.count%2 == 0 {
		return b.node("Add", []string{b.weight(name + ".bias"), product})
	}
	return b.node("Add", []string{product, b.weight(name + ".bias")})
}

func (b *builder) norm(x, name string) string {
	return b.node("LayerNormalization", []string{x, b.weight(name + ".weight"), b.weight(name + ".bias")}, attribute{"axis", -1}, attribute{"epsilon", float32(1e-12)})
}

func (b *builder) scalar(x float32) string {
	b.count++
	return b.floats(fmt.Sprintf("scalar_%d", b.count), nil, x)
}

func (b *builder) build() {
	inputs := []string{"input_ids", "attention_mask"}
	if b.m.Type == "bert" {
		inputs = append(inputs, "token_type_ids")
	}
	for _, name := range inputs {
		b.value(11, name, typeInt64, "batch", "sequence")
	}
	x, mask := b.embeddings(), b.mask()
	for i := range b.m.Layers {
		x = b.layer(x, mask, fmt.Sprintf("encoder.layer.%d.", i))
	}
	b.named("last_hidden_state", "Identity", []string{x})
	b.body.bytes(2, []byte("main_graph"))
	b.value(12, "last_hidden_state", typeFloat, "batch", "sequence", "hidden")
}

func (b *builder) embeddings() string {
	first := int64(0)
	kinds := "token_type_ids"
	if b.m.Type != "bert" {
		first = padding + 1
		kinds = b.node("Sub", []string{"input_ids", "input_ids"})
	}
	zero, one := b.ints("zero", nil, 0), b.ints("one", nil, 1)
	length := b.node("Gather", []string{b.node("Shape", []string{"input_ids"}), one}, attribute{"axis", 0})
	places := b.node("Add", []string{b.node("Range", []string{zero, length, one}), b.ints("first", nil, first)})
	words := b.node("Gather", []string{b.weight("embeddings.word_embeddings.weight"), "input_ids"})
	sum := b.node("Add", []string{words, b.node("Gather", []string{b.weight("embeddings.token_type_embeddings.weight"), kinds})})
	sum = b.node("Add", []string{sum, b.node("Gather", []string{b.weight("embeddings.position_embeddings.weight"), places})})
	return b.norm(sum, "embeddings.LayerNorm")
}

// mask returns what is added to scores: nothing, or very little where there is
// padding.
func (b *builder) mask() string {
	wide := b.node("Unsqueeze", []string{"attention_mask", b.ints("axes", []int{2}, 1, 2)})
	there := b.node("Cast", []string{wide}, attribute{"to", typeFloat})
	return b.node("Mul", []string{b.node("Sub", []string{b.scalar(1), there}), b.scalar(-3e38)})
}

func (b *builder) layer(x, mask, at string) string {
	h, heads := b.m.Hidden, b.m.Heads
	split := b.ints(at+"split", []int{4}, 0, 0, int64(heads), int64(h/heads))
	part := func(name string, perm ...int) string {
		rows := b.node("Reshape", []string{b.linear(x, at+"attention.self."+name), split})
		return b.node("Transpose", []string{rows}, attribute{"perm", perm})
	}
	scores := b.node("MatMul", []string{part("query", 0, 2, 1, 3), part("key", 0, 2, 3, 1)})
	scores = b.node("Div", []string{scores, b.scalar(float32(math.Sqrt(float64(h / heads))))})
	weights := b.node("Softmax", []string{b.node("Add", []string{scores, mask})}, attribute{"axis", -1})
	context := b.node("Transpose", []string{b.node("MatMul", []string{weights, part("value", 0, 2, 1, 3)})}, attribute{"perm", []int{0, 2, 1, 3}})
	context = b.node("Reshape", []string{context, b.ints(at+"join", []int{3}, 0, 0, int64(h))})
	x = b.norm(b.node("Add", []string{b.linear(context, at+"attention.output.dense"), x}), at+"attention.output.LayerNorm")
	up := b.gelu(b.linear(x, at+"intermediate.dense"))
	return b.norm(b.node("Add", []string{b.linear(up, at+"output.dense"), x}), at+"output.LayerNorm")
}

func (b *builder) gelu(x string) string {
	erf := b.node("Erf", []string{b.node("Div", []string{x, b.scalar(math.Sqrt2)})})
	return b.node("Mul", []string{b.node("Mul", []string{x, b.node("Add", []string{erf, b.scalar(1)})}), b.scalar(.5)})
}
