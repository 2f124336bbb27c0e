package matrix

import "math"

// GELUTanh is GELU by its older approximation with tanh.
func GELUTanh(m *Matrix) {
	for r := range m.Rows {
		for i, x := range m.Row(r) {
			y := float64(x)
			m.Row(r)[i] = float32(.5 * y * (1 + math.Tanh(.7978845608028654*(y+.044715*y*y*y))))
		}
	}
}

// ReLU replaces values below zero by zero.
func ReLU(m *Matrix) {
	for r := range m.Rows {
		row := m.Row(r)
		for i, x := range row {
			row[i] = max(x, 0)
		}
	}
}

// A Norm is a layer normalisation.
type Norm struct {
	Gain, Shift []float32
	Epsilon     float64
}

// Row normalises a row in place.
func (n *Norm) Row(row []float32) {
	var sum float64
	for _, x := range row {
		sum += float64(x)
	}
	mean := float32(sum / float64(len(row)))
	var squares float64
	for _, x := range row {
		d := float64(x - mean)
		squares += d * d
	}
	scale := float32(1 / math.Sqrt(squares/float64(len(row))+n.Epsilon))
	gain, shift := n.Gain[:len(row)], n.Shift[:len(row)]
	for i, x := range row {
		row[i] = (x-mean)*scale*gain[i] + shift[i]
	}
}

// AddNorm adds b to a, and normalises the rows of a.
func (n *Norm) AddNorm(a, b *Matrix) {
	for r := range a.Rows {
		row, more := a.Row(r), b.Row(r)
		for i, x := range more {
			row[i] += x
		}
		n.Row(row)
	}
}
