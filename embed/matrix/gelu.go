package matrix

import "math"

// The error function as an odd rational function within ±4, beyond which it is
// ±1 in 32 bits; the coefficients are those of Eigen (ptanh's sibling
// generic_fast_erf_float), whose error is below 2e-7.
var (
	erfAbove = [7]float32{-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
		-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02}
	erfBelow = [5]float32{-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02}
)

// erfTable holds what geluSIMD reads: 1/√2, the bounds, the coefficients and a
// half, each eight times.
//
//lint:ignore U1000 kernel_amd64.s reads it
var erfTable = func() (t [16 * 8]float32) {
	values := append([]float32{math.Sqrt2 / 2, 4, -4}, erfAbove[:]...)
	values = append(append(values, erfBelow[:]...), .5)
	for i, v := range values {
		for j := range 8 {
			t[8*i+j] = v
		}
	}
	return t
}()

// GELU replaces each value x of m by x·Φ(x), by the error function.
func GELU(m *Matrix) {
	for r := range m.Rows {
		row := m.Row(r)
		if accelerated && hasGELU {
			if n := len(row) &^ 7; n > 0 {
				geluSIMD(&row[0], n)
				row = row[n:]
			}
		}
		for i, x := range row {
			row[i] = gelu(x)
		}
	}
}

func gelu(x float32) float32 {
	z := min(max(x*(math.Sqrt2/2), -4), 4)
	s := z * z
	above, below := erfAbove[0], erfBelow[0]
	for _, c := range erfAbove[1:] {
		above = above*s + c
	}
	for _, c := range erfBelow[1:] {
		below = below*s + c
	}
	half := x * .5
	return z*above/below*half + half
}
