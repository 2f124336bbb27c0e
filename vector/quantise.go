package vector

import "math"

// lanes is the number of components that kernels take at once. Rows are padded
// to it with zeros.
const lanes = 32

func padded(dims int) int { return (dims + lanes - 1) / lanes * lanes }

// A scaled vector stands for scale times its small integers. What it leaves
// out of the vector it was made of has the length lost.
type scaled struct {
	scale float64
	lost  float64
}

// most is the greatest integer of a quantised row.
const most = 127

// quantise writes v as integers of at most limit. It keeps what it cannot
// write exactly: the bound of a score needs the length of the rest.
func quantise[T int8 | int16](v []float32, out []T, limit float64) scaled {
	var top float64
	for _, x := range v {
		top = max(top, math.Abs(float64(x)))
	}
	s := scaled{scale: top / limit}
	var rest float64
	for i, x := range v {
		q := 0.0
		if s.scale > 0 {
			q = math.RoundToEven(float64(x) / s.scale)
			q = min(max(q, -limit), limit)
		}
		out[i] = T(q)
		d := float64(x) - float64(q*s.scale)
		rest += float64(d * d)
	}
	s.lost = math.Sqrt(rest)
	return s
}

// queryLimit is the greatest integer of a quantised query: as fine as 16 bits
// allow, while a sum over all components fits 32.
func queryLimit(dims int) float64 {
	return float64(min(math.MaxInt16, (math.MaxInt32-1)/(most*padded(dims))))
}

// slack widens bounds by more than what their own computation in double
// precision can be off.
const slack = 1e-9

// A probe is a query made ready for a scan.
type probe struct {
	vector []float32
	ints   []int16
	scaled
	length  float64 // of the vector
	written float64 // the length of what the integers stand for
}

func newProbe(v []float32) *probe {
	p := &probe{vector: v, ints: make([]int16, padded(len(v)))}
	p.scaled = quantise(v, p.ints, queryLimit(len(v)))
	p.length = math.Sqrt(Dot(v, v))
	p.written = p.length + p.lost
	return p
}

// bound returns a score's estimate from the integers' dot product, and by how
// much the true score can differ from it.
//
// With v = r + dv and q = p + dq, where r and p are what the integers stand
// for, the score v·q is r·p + dv·p + v·dq: the first is the estimate, the
// others are at most |dv||p| and |v||dq|.
func (p *probe) bound(dot int32, row *scaledRow) (estimate, off float64) {
	estimate = float64(dot) * p.scale * row.scale
	off = row.lost*p.written + row.length*p.lost
	return estimate, off + slack*(math.Abs(estimate)+p.length*row.length)
}

// A scaledRow is what a scan knows of a row besides its integers.
type scaledRow struct {
	scaled
	length float64
}
