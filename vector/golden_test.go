package vector

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Every processor gives these hits, to the last bit of their scores.
func TestSameEverywhere(t *testing.T) {
	r := seeded()
	draw := func() []float32 {
		v := make([]float32, 100)
		for i := range v {
			v[i] = float32(r.IntN(1<<20)-1<<19) / 1000003
		}
		return v
	}
	var items []Item
	for i := range 3000 {
		items = append(items, Item{fmt.Sprint(i), draw()})
	}
	bothWays(t, func(t *testing.T) {
		var got []string
		for _, h := range search(t, indexOf(t, 100, items), items[7].Vector, 5, nil) {
			got = append(got, fmt.Sprintf("%s %016x", h.ID, math.Float64bits(h.Score)))
		}
		const want = "7 4023409a1577ca54, 614 400e3a11c2801a62, 1950 400aa7f23192cb42, 2242 40074a0149b79010, 1553 40074104098468cc"
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s, want %s", s, want)
		}
	})
}
