package search_test

import (
	"context"
	"testing"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

var anything = schema.Must(`{"type":"object"}`)

// set makes a set of tools, with all that a registry demands filled in.
func set(t testing.TB, defs ...tool.Definition) *tool.Set {
	t.Helper()
	var tools []*tool.Tool
	for _, d := range defs {
		tools = append(tools, made(d))
	}
	return registered(t, tools...)
}

func made(d tool.Definition) *tool.Tool {
	if d.Description == "" {
		d.Description = "-"
	}
	if d.Input == nil {
		d.Input = anything
	}
	return &tool.Tool{Definition: d, Handle: func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }}
}

func registered(t testing.TB, tools ...*tool.Tool) *tool.Set {
	t.Helper()
	var reg tool.Registry
	if err := reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return reg.Set()
}

func index(t testing.TB, defs ...tool.Definition) *search.Index {
	t.Helper()
	ix := search.New(search.Options{})
	ix.Sync(set(t, defs...))
	return ix
}

func find(t testing.TB, ix *search.Index, text string) []search.Hit {
	t.Helper()
	hits, err := ix.Search(context.Background(), search.Query{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func names(hits []search.Hit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, h.Tool.Name)
	}
	return out
}

// house is a small catalogue of everyday tools.
func house() []tool.Definition {
	return []tool.Definition{
		{Name: "filesystem.read", Description: "Read the contents of a file.", Aliases: []string{"FileRead", "cat"},
			Input: schema.Must(`{"type":"object","properties":{"path":{"type":"string","description":"where the file is"}}}`)},
		{Name: "filesystem.delete", Description: "Delete a file for good.", Aliases: []string{"rm", "删除文件", "supprimer un fichier"}},
		{Name: "filesystem.list", Description: "List the entries of a directory."},
		{Name: "weather.now", Description: "Tell the current weather in a city.", Tags: []string{"météo", "Wetter", "погода"}},
		{Name: "mcp.github.createPullRequest", Description: "Open a pull request on GitHub.", Title: "Create a pull request"},
		{Name: "pdf.download", Description: "Download a PDF document.", Aliases: []string{"下载PDF文件", "ดาวน์โหลดเอกสาร"}},
		{Name: "image.generate", Description: "Generate an image from a prompt.", Help: "The picture is returned as PNG."},
		{Name: "calendar.add_event", Description: "Put an appointment into the calendar.", SideEffects: []string{"invites the guests by e-mail"}},
	}
}

func TestFinds(t *testing.T) {
	ix := index(t, house()...)
	for _, c := range []struct{ query, want string }{
		{"read a file", "filesystem.read"},
		{"what is the weather like in Paris?", "weather.now"},
		{"deleting files", "filesystem.delete"},
		{"directories", "filesystem.list"},
		{"pull requests", "mcp.github.createPullRequest"},
		{"appointment", "calendar.add_event"},
		{"invite guests", "calendar.add_event"},
		{"PNG picture", "image.generate"},
	} {
		if hits := find(t, ix, c.query); len(hits) == 0 || hits[0].Tool.Name != c.want {
			t.Errorf("%q finds %v, want %s first", c.query, names(hits), c.want)
		}
	}
}
