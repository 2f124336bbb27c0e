package mcpbridge

import (
	"testing"
	"time"
)

// Linger has calls linger for d until the test ends.
func Linger(t testing.TB, d time.Duration) {
	was := lingers
	lingers = d
	t.Cleanup(func() { lingers = was })
}
