package search_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// Whatever a tool says of itself and whatever is asked, the tool is found by
// its name, first, and equal questions get equal answers.
func FuzzSearch(f *testing.F) {
	f.Add("files.readAll", "Read *every* file; лёд 下载 ไฟล์ ÄÖÜß", "reading 文件")
	f.Add("x", "\x00\x01\x02 -a- e-mail I/O C++", "e--mail")
	f.Add("mcp.a.b", "ﷺ𝔞İıŉ", "ﷺ")
	f.Fuzz(func(t *testing.T, name, description, query string) {
		x := made(tool.Definition{Name: name, Description: description + ".", Tags: []string{query}, Aliases: []string{description}})
		var reg tool.Registry
		if reg.Add(x) != nil {
			return // no tool may be like this
		}
		if err := reg.Replace("others", made(tool.Definition{Name: "other.thing", Description: description + " " + name})); err != nil {
			return
		}
		ix := search.New(search.Options{})
		ix.Sync(reg.Set())
		for _, q := range []string{query, description, name} {
			first := answers(t, ix, search.Query{Text: q, Explain: true})
			if diff := cmp.Diff(first, answers(t, ix, search.Query{Text: q, Explain: true})); diff != "" {
				t.Fatalf("%q twice:\n%s", q, diff)
			}
		}
		hits, err := ix.Search(context.Background(), search.Query{Text: name})
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) == 0 || hits[0].Tool != x {
			t.Fatalf("the name %q finds %v", name, hits)
		}
	})
}
