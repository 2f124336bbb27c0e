package mem_test

import (
	"testing"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/store/storetest"
)

func Test(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return new(mem.Store) })
}

func Benchmark(b *testing.B) {
	storetest.Bench(b, func(*testing.B) store.Store { return new(mem.Store) })
}
