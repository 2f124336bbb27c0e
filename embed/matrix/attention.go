package matrix

import "math"

// An Attention holds the memory of self-attention, to be used again and by one
// goroutine at a time. The zero Attention is ready.
type Attention struct {
	keys, values    []float32
	scores, context Matrix
	zeros           []float32
}

// Run computes, for the n rows of qkv from row from on, which are queries, keys
// and values of heads side by side, what each attends to, into the same rows
// of dst, which has heads*size columns.
func (a *Attention) Run(dst, qkv *Matrix, from, n, heads, size int) {
	scale := float32(1 / math.Sqrt(float64(size)))
	across, along := roundUp(n, wide), roundUp(size, wide)
	a.keys, a.values = sized(a.keys, across*size), sized(a.values, along*n)
	if need := max(across, along); len(a.zeros) < need {
		a.zeros = make([]float32, need)
	}
	a.scores.Reshape(n, n)
	a.context.Reshape(n, size)
	rows := qkv.Data[from*qkv.Stride:]
	for h := range heads {
		q, k, v := h*size, (heads+h)*size, (2*heads+h)*size
		for j := range n {
			row := rows[j*qkv.Stride:]
			packColumn(a.keys, row[k:k+size], j, scale)
			packRow(a.values, row[v:v+size], j, n)
		}
		multiply(a.scores.Data, a.scores.Stride, rows[q:], qkv.Stride, n, size, a.keys, a.zeros[:across])
		for i := range n {
			softmax(a.scores.Row(i))
		}
		multiply(a.context.Data, a.context.Stride, a.scores.Data, a.scores.Stride, n, n, a.values, a.zeros[:along])
		for i := range n {
			copy(dst.Row(from + i)[q:q+size], a.context.Row(i))
		}
	}
}

// sized returns n floats. What they hold from before lies in columns that are
// never read as a result.
func sized(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

// packColumn writes v as column j of panels of len(v) rows.
func packColumn(panels, v []float32, j int, scale float32) {
	panel := panels[j/wide*wide*len(v)+j%wide:]
	for i, x := range v {
		panel[i*wide] = x * scale
	}
}

// packRow writes v as row j of panels of n rows.
func packRow(panels, v []float32, j, n int) {
	for c := 0; c < len(v); c += wide {
		copy(panels[c*n+j*wide:], v[c:min(c+wide, len(v))])
	}
}

// softmax makes row a distribution, in place.
func softmax(row []float32) {
	top := row[0]
	for _, x := range row[1:] {
		top = max(top, x)
	}
	var sum float32
	for i, x := range row {
		e := exp(x - top)
		row[i] = e
		sum += e
	}
	scale := 1 / sum
	for i := range row {
		row[i] *= scale
	}
}

// exp is e to the power of x, for x of at most 0, to within 2e-7 of it: 2 to
// the whole part of x/ln 2 times a polynomial (Cephes) of the rest.
func exp(x float32) float32 {
	if x < -87 {
		return 0
	}
	n := float32(math.Floor(float64(x*math.Log2E + .5)))
	r := x - n*.693359375
	r -= n * -2.12194440e-4
	p := float32(1.9875691500e-4)
	p = p*r + 1.3981999507e-3
	p = p*r + 8.3334519073e-3
	p = p*r + 4.1665795894e-2
	p = p*r + 1.6666665459e-1
	p = p*r + 5.0000001201e-1
	p = p*r*r + r + 1
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}
