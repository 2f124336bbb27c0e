package cli

import "testing"

func TestRest(t *testing.T) {
	var r rest
	total := uint64(0)
	for i, step := range []struct {
		grown uint64
		want  bool
	}{
		{50 << 20, false}, // the start
		{1 << 20, false},
		{restBelow - 1, true},
		{0, false}, // once is enough
		{1 << 10, false},
		{restBelow, false}, // something to do
		{10, true},
		{10, false},
	} {
		total += step.grown
		if got := r.came(total); got != step.want {
			t.Errorf("step %d: after %d bytes more came is %t", i, step.grown, got)
		}
	}
}
