package mcpbridge

import (
	"fmt"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

// What an upstream call reports arrives in its own numbers; whatever reports,
// the numbers grow.
func TestProgressNumbers(t *testing.T) {
	own := func(call string, at, total float64) tool.Content {
		return tool.Content{Text: "x", Raw: fmt.Appendf(nil, `{"call":%q,"progress":%g,"total":%g}`, call, at, total)}
	}
	said := tool.Content{Text: "running"}
	for _, tt := range []struct {
		name    string
		reports []tool.Content
		want    [][2]float64 // at and total; nil: they grow
	}{
		{"a fraction", []tool.Content{own("a", 0, 1), own("a", 0.25, 1), own("a", 1, 1)}, [][2]float64{{0, 1}, {0.25, 1}, {1, 1}}},
		{"no total", []tool.Content{own("a", 10, 0), own("a", 20, 0)}, [][2]float64{{10, 0}, {20, 0}}},
		{"beyond the total", []tool.Content{own("a", 3, 2)}, [][2]float64{{3, 0}}},
		{"Helve's own", []tool.Content{said, said}, [][2]float64{{1, 0}, {2, 0}}},
		{"two calls", []tool.Content{own("a", 1, 4), own("b", 2, 9), own("a", 2, 4)}, [][2]float64{{1, 4}, {2, 0}, {3, 0}}},
		{"numbers that fall", []tool.Content{own("a", 5, 9), own("a", 4, 9), own("a", 6, 9)}, [][2]float64{{5, 9}, {6, 0}, {7, 0}}},
		{"numbers out of bounds", []tool.Content{own("a", -1, 9), own("a", 1e300, 1e300)}, [][2]float64{{1, 0}, {2, 0}}},
		{"a sign of life between", []tool.Content{own("a", 0.5, 1), said, said, own("a", 0.75, 1), said}, nil},
	} {
		var sent [][2]float64
		p := &progress{send: func(n *mcp.ProgressNotificationParams) { sent = append(sent, [2]float64{n.Progress, n.Total}) }}
		for _, r := range tt.reports {
			p.show(r)
		}
		if tt.want != nil && !slices.Equal(sent, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, sent, tt.want)
		}
		for i := 1; i < len(sent); i++ {
			if sent[i][0] <= sent[i-1][0] {
				t.Errorf("%s: %v do not grow", tt.name, sent)
			}
		}
		if tt.want == nil && sent[len(sent)-1][1] != 1 {
			t.Errorf("%s: %v", tt.name, sent)
		}
	}
}
