// Package matrix multiplies matrices of 32-bit floats, and has the few other
// functions that a transformer's layers are made of.
package matrix

import "fmt"

const (
	tall = 4  // rows that the kernel computes at once
	wide = 24 // columns that it does
)

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// A Matrix is rows of floats. Each row begins Stride after the one before;
// there is room for blocks of four rows that begin at any of them, and what
// stands there and between Cols and Stride means nothing.
type Matrix struct {
	Rows, Cols, Stride int
	Data               []float32
}

// Reshape makes m a matrix of rows and cols, of the memory that it has where
// that is enough. Its values mean nothing.
func (m *Matrix) Reshape(rows, cols int) {
	m.Rows, m.Cols, m.Stride = rows, cols, roundUp(cols, wide)
	n := roundUp(rows+tall-1, tall) * m.Stride
	if cap(m.Data) < n {
		m.Data = make([]float32, n)
	}
	m.Data = m.Data[:n]
}

// Row returns a row, to be read and written.
func (m *Matrix) Row(i int) []float32 { return m.Data[i*m.Stride : i*m.Stride+m.Cols] }

// Packed are the weights of a linear layer in the order in which they are
// read: panels of 24 columns, each row by row.
type Packed struct {
	in, out int
	panels  []float32
	bias    []float32 // padded
}

// Pack packs a linear layer's weights, given as out rows of in, and its bias,
// of which nil is zeros.
func Pack(weights []float32, in, out int, bias []float32) *Packed {
	if len(weights) != in*out || bias != nil && len(bias) != out {
		panic(fmt.Sprintf("matrix: %d weights and %d biases for %d by %d", len(weights), len(bias), out, in))
	}
	p := &Packed{in: in, out: out, panels: make([]float32, in*roundUp(out, wide)), bias: make([]float32, roundUp(out, wide))}
	copy(p.bias, bias)
	for o := range out {
		panel := p.panels[o/wide*wide*in:]
		for i, w := range weights[o*in : (o+1)*in] {
			panel[i*wide+o%wide] = w
		}
	}
	return p
}

// Apply sets dst to src times the weights, plus the bias. A row of dst depends
// on nothing but that row of src. The two must not share memory.
func (p *Packed) Apply(dst, src *Matrix) {
	if src.Cols != p.in {
		panic(fmt.Sprintf("matrix: %d columns for a layer of %d inputs", src.Cols, p.in))
	}
	dst.Reshape(src.Rows, p.out)
	multiply(dst.Data, dst.Stride, src.Data, src.Stride, src.Rows, p.in, p.panels, p.bias)
}

// multiply computes rows of c, up to a multiple of tall, from those of a and
// from panels of depth rows; as many panels as bias has.
func multiply(c []float32, ldc int, a []float32, lda, rows, depth int, panels, bias []float32) {
	for col := 0; col < len(bias); col += wide {
		panel := panels[col*depth : (col+wide)*depth]
		for r := 0; r < rows; r += tall {
			kernel(depth, a[r*lda:], lda, panel, bias[col:col+wide], c[r*ldc+col:], ldc)
		}
	}
}

// kernel computes tall rows of wide columns: c = a·b + bias. b is depth rows of
// wide columns.
func kernel(depth int, a []float32, lda int, b, bias, c []float32, ldc int) {
	_, _ = a[(tall-1)*lda+depth-1], c[(tall-1)*ldc+wide-1]
	_, _ = b[depth*wide-1], bias[wide-1]
	if accelerated {
		kernelSIMD(depth, &a[0], lda, &b[0], &bias[0], &c[0], ldc)
		return
	}
	kernelGo(depth, a, lda, b, bias, c, ldc)
}

func kernelGo(depth int, a []float32, lda int, b, bias, c []float32, ldc int) {
	for r := range tall {
		row := (*[wide]float32)(c[r*ldc:])
		*row = [wide]float32(bias)
		for k, x := range a[r*lda : r*lda+depth] {
			from := (*[wide]float32)(b[k*wide:])
			for j := range row {
				row[j] += x * from[j]
			}
		}
	}
}

// Accelerated names the instructions that products are computed by: "avx2",
// "neon", or "none" where they are written in Go alone.
func Accelerated() string {
	if accelerated {
		return instructions
	}
	return "none"
}
