package matrix

import (
	"math"
	"math/rand/v2"
	"testing"
)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(3, 5)) }

func random(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func randomMatrix(r *rand.Rand, rows, cols int) *Matrix {
	m := &Matrix{}
	m.Reshape(rows, cols)
	for i := range rows {
		copy(m.Row(i), random(r, cols))
	}
	return m
}

// bothWays runs a test with the kernels of this machine and with the portable ones.
func bothWays(t *testing.T, run func(t *testing.T)) {
	t.Run(Accelerated(), run)
	if accelerated {
		accelerated = false
		defer func() { accelerated = true }()
		t.Run("portable", run)
	}
}

func near(t *testing.T, what string, got float32, want, within float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= within) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func TestApply(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		r := seeded()
		for _, size := range [][3]int{{1, 1, 1}, {4, 24, 24}, {5, 7, 25}, {32, 384, 1152}, {3, 1536, 384}, {9, 10, 100}} {
			rows, in, out := size[0], size[1], size[2]
			src, weights, bias := randomMatrix(r, rows, in), random(r, in*out), random(r, out)
			var dst Matrix
			Pack(weights, in, out, bias).Apply(&dst, src)
			for i := range rows {
				for o := range out {
					want := float64(bias[o])
					for k, x := range src.Row(i) {
						want += float64(x) * float64(weights[o*in+k])
					}
					near(t, "product", dst.Row(i)[o], want, 1e-5*math.Sqrt(float64(in))+1e-6*math.Abs(want))
				}
			}
		}
	})
}

// A row's result is the same, to the last bit, whatever stands beside it.
func TestRowsAreIndependent(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		r := seeded()
		src, p := randomMatrix(r, 11, 50), Pack(random(r, 50*60), 50, 60, nil)
		var all Matrix
		p.Apply(&all, src)
		for i := range src.Rows {
			one, alone := &Matrix{}, Matrix{}
			one.Reshape(1, 50)
			copy(one.Row(0), src.Row(i))
			p.Apply(&alone, one)
			for j, x := range alone.Row(0) {
				if x != all.Row(i)[j] {
					t.Fatalf("row %d, column %d: %v alone, %v among others", i, j, x, all.Row(i)[j])
				}
			}
		}
	})
}

func TestGELU(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		m := &Matrix{}
		m.Reshape(1, 24011)
		for i := range m.Row(0) {
			m.Row(0)[i] = float32(i-12005) / 1000
		}
		GELU(m)
		for i, got := range m.Row(0) {
			x := float64(float32(i-12005) / 1000)
			near(t, "gelu", got, x*.5*math.Erfc(-x/math.Sqrt2), 5e-7*math.Max(1, math.Abs(x)))
		}
	})
}

func TestSoftmax(t *testing.T) {
	row := []float32{-200, 0, -1, -50, 3, 3.5, -3e38}
	var sum float64
	for _, x := range row {
		sum += math.Exp(float64(x) - 3.5)
	}
	want := make([]float64, len(row))
	for i, x := range row {
		want[i] = math.Exp(float64(x)-3.5) / sum
	}
	softmax(row)
	for i, got := range row {
		near(t, "softmax", got, want[i], 1e-7)
	}
}

func TestNorm(t *testing.T) {
	r := seeded()
	a, b := randomMatrix(r, 3, 40), randomMatrix(r, 3, 40)
	n := Norm{random(r, 40), random(r, 40), 1e-12}
	var want [3][40]float64
	for i := range want {
		var mean, variance float64
		for j := range want[i] {
			want[i][j] = float64(a.Row(i)[j]) + float64(b.Row(i)[j])
			mean += want[i][j] / 40
		}
		for _, x := range want[i] {
			variance += (x - mean) * (x - mean) / 40
		}
		for j, x := range want[i] {
			want[i][j] = (x-mean)/math.Sqrt(variance+1e-12)*float64(n.Gain[j]) + float64(n.Shift[j])
		}
	}
	n.AddNorm(a, b)
	for i := range want {
		for j, w := range want[i] {
			near(t, "norm", a.Row(i)[j], w, 2e-6)
		}
	}
}

func TestAttention(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		r := seeded()
		const heads, size = 3, 10
		qkv := randomMatrix(r, 40, 3*heads*size)
		dst := &Matrix{}
		dst.Reshape(40, heads*size)
		var a Attention
		for _, text := range [][2]int{{0, 30}, {30, 1}, {31, 9}} {
			a.Run(dst, qkv, text[0], text[1], heads, size)
		}
		for _, text := range [][2]int{{0, 30}, {30, 1}, {31, 9}} {
			for h := range heads {
				for i := range text[1] {
					want := attend(qkv, text[0], text[1], i, h, heads, size)
					for c, w := range want {
						near(t, "attention", dst.Row(text[0] + i)[h*size+c], w, 2e-6)
					}
				}
			}
		}
	})
}

// attend is attention of one row and head, written plainly.
func attend(qkv *Matrix, from, n, i, h, heads, size int) []float64 {
	at := func(row, part, c int) float64 { return float64(qkv.Row(from + row)[(part*heads+h)*size+c]) }
	weights, sum := make([]float64, n), 0.0
	for j := range weights {
		var dot float64
		for c := range size {
			dot += at(i, 0, c) * at(j, 1, c)
		}
		weights[j] = math.Exp(dot / math.Sqrt(float64(size)))
		sum += weights[j]
	}
	out := make([]float64, size)
	for c := range out {
		for j, w := range weights {
			out[c] += w / sum * at(j, 2, c)
		}
	}
	return out
}

func BenchmarkApply(b *testing.B) {
	r := seeded()
	src, p := randomMatrix(r, 32, 384), Pack(random(r, 384*1536), 384, 1536, nil)
	var dst Matrix
	for b.Loop() {
		p.Apply(&dst, src)
	}
	b.ReportMetric(2*32*384*1536*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkGELU(b *testing.B) {
	m := randomMatrix(seeded(), 32, 1536)
	for b.Loop() {
		GELU(m)
	}
}

func BenchmarkAttention(b *testing.B) {
	qkv, dst := randomMatrix(seeded(), 32, 1152), &Matrix{}
	dst.Reshape(32, 384)
	var a Attention
	for b.Loop() {
		a.Run(dst, qkv, 0, 32, 12, 32)
	}
}
