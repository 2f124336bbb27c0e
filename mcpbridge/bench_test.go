package mcpbridge_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/tool"
)

func crowd(n int) []*tool.Tool {
	tools := []*tool.Tool{echo(), meta()}
	for i := range n {
		t := sum()
		t.Name = fmt.Sprintf("crowd.tool_%05d", i)
		tools = append(tools, t)
	}
	return tools
}

// BenchmarkCallStdioless measures one call over an in-memory pair of pipes:
// its cost must not depend on how many tools there are.
func BenchmarkCallStdioless(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			h := newHouse(b, nil, crowd(n)...)
			s := h.pipe(b, inject.Discovery, nil, "2025-11-25")
			p := &mcp.CallToolParams{Name: "talk__echo", Arguments: echoIn{"hi"}}
			for b.Loop() {
				if _, err := s.CallTool(context.Background(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCallUpstream measures a call that goes on to a server over HTTP.
func BenchmarkCallUpstream(b *testing.B) {
	s := sdkServer(nil)
	nopTool(s, "get_x")
	g := open(b, serveHTTP(b, s, true))
	for b.Loop() {
		if res := g.call(b, "mcp.web.get_x", `{}`); res.Err != nil {
			b.Fatal(res.Err)
		}
	}
}

// BenchmarkListDiscovery measures a listing that shows the meta-tools only.
func BenchmarkListDiscovery(b *testing.B) { benchmarkList(b, inject.Discovery, 10_000) }

// BenchmarkListDirect measures a page of a thousand whole schemas.
func BenchmarkListDirect(b *testing.B) { benchmarkList(b, inject.Direct, 10_000) }

func benchmarkList(b *testing.B, mode inject.Mode, n int) {
	h := newHouse(b, nil, crowd(n)...)
	s := h.pipe(b, mode, nil, "2025-11-25")
	for b.Loop() {
		if _, err := s.ListTools(context.Background(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkManifest measures a server's list becoming tools of ours.
func BenchmarkManifest(b *testing.B) {
	s := sdkServer(func(s *mcp.Server) {
		for i := range 1000 {
			nopTool(s, fmt.Sprintf("get_%04d", i))
		}
	})
	up := serveHTTP(b, s, true)
	for b.Loop() {
		g := open(b, up)
		if n := g.reg.Set().Len(); n != 1000 {
			b.Fatalf("%d tools", n)
		}
		g.ups.Close()
	}
}
