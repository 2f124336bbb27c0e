package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// find returns the facts that a query is about, the best first; without a
// query the latest. It searches facts as tools are searched: in any language,
// with synonyms.
func find(ctx context.Context, all []fact, query string, limit int) ([]fact, error) {
	if strings.TrimSpace(query) == "" {
		latest := slices.Clone(all[max(len(all)-limit, 0):])
		slices.Reverse(latest)
		return latest, nil
	}
	var reg tool.Registry
	var docs []*tool.Tool
	for _, f := range all {
		docs = append(docs, &tool.Tool{Definition: tool.Definition{Name: f.ID, Module: "fact", Description: f.Text, Tags: f.Tags, Input: nothing}, Handle: silent})
	}
	if err := reg.Add(docs...); err != nil {
		return nil, err
	}
	ix := search.New(search.Options{})
	ix.Sync(reg.Set())
	hits, err := ix.Search(ctx, search.Query{Text: query, Limit: limit})
	if err != nil {
		return nil, err
	}
	var found []fact
	for _, h := range hits {
		i := slices.IndexFunc(all, func(f fact) bool { return f.ID == h.Tool.Name })
		found = append(found, all[i])
	}
	return found, nil
}

var nothing = schema.Must(`{"type":"object","additionalProperties":false}`)

// silent is the handler of what is no tool.
func silent(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }
