// Package vector finds, exactly and in this process, the vectors that are
// nearest to a query.
package vector

import (
	"errors"
	"fmt"
	"math"
)

// MaxDims is the greatest length of a vector. Up to there, sums of products of
// quantised components fit 32 bits.
const MaxDims = 1 << 16

// A Hit is a vector that was found.
type Hit struct {
	ID    string
	Score float64 // the dot product with the query, as Dot computes it
}

// An Item is a vector under an id.
type Item struct {
	ID     string
	Vector []float32
}

// Dot returns the dot product of two vectors of the same length. It is
// computed in double precision in an order that is the same everywhere: the
// products are exact, so it does not matter whether a processor fuses them
// with the sums.
func Dot(a, b []float32) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += float64(a[i]) * float64(b[i])
		s1 += float64(a[i+1]) * float64(b[i+1])
		s2 += float64(a[i+2]) * float64(b[i+2])
		s3 += float64(a[i+3]) * float64(b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i]) * float64(b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// Normalize scales v to length 1, in place. A vector of zeros stays as it is.
func Normalize(v []float32) {
	n := math.Sqrt(Dot(v, v))
	if n == 0 {
		return
	}
	for i, x := range v {
		v[i] = float32(float64(x) / n)
	}
}

// maxComponent bounds components, so that no sum of products overflows.
const maxComponent = 1e15

var errNoNumber = errors.New("is not a number that can be compared: components lie between -1e15 and 1e15")

// check refuses what cannot be ordered by score.
func check(v []float32, dims int) error {
	if len(v) != dims {
		return fmt.Errorf("has %d components, want %d", len(v), dims)
	}
	for i, x := range v {
		if !(x >= -maxComponent && x <= maxComponent) {
			return fmt.Errorf("component %d (%v) %w", i, x, errNoNumber)
		}
	}
	return nil
}
