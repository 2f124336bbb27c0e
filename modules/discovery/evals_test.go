package discovery_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/search/measure"
	"github.com/helve-ai/helve/tool"
)

// An agent is a script in a model's place, which counts the tokens that it reads and writes.
type agent struct {
	*house
	t      *testing.T
	said   int // tokens of the conversation so far, the listing included
	reread int // tokens of all requests: each takes the whole conversation along

	browsed bool // no search found it
}

func (a *agent) call(name string, args any) *tool.Result {
	raw, err := json.Marshal(args)
	if err != nil {
		a.t.Fatal(err)
	}
	a.said += tokensOf(a.t, name+string(raw))
	a.reread += a.said // what the model had before it and wrote
	res := a.do(a.t, name, string(raw))
	a.said += tokensOf(a.t, res.JoinText())
	return res
}

// find searches by the query, in ten hits and then in fifty, then by each
// sentence of it, and at last lists the names in all categories, and calls the
// first tool that is right. It reports whether there was one.
func (a *agent) find(query string, right func(string) bool) bool {
	asks := []map[string]any{{"query": query}, {"query": query, "limit": 50, "detail": "name"}}
	for sentence := range strings.FieldsFuncSeq(query, func(r rune) bool { return strings.ContainsRune(".?!,;\n", r) }) {
		asks = append(asks, map[string]any{"query": strings.TrimSpace(sentence), "limit": 50, "detail": "name"})
	}
	for _, ask := range asks {
		if a.use(names(a.t, a.call("search_tools", ask).JoinText()), right) {
			return true
		}
	}
	return a.browse(right)
}

// use calls the first tool that is right.
func (a *agent) use(listed []string, right func(string) bool) bool {
	i := slices.IndexFunc(listed, right)
	if i < 0 {
		return false
	}
	a.call("get_tool", map[string]any{"name": listed[i]})
	known, _ := a.reg.Set().Lookup(listed[i])
	if res := a.call("execute_tool", map[string]any{"name": listed[i], "params": known.Input.Example()}); res.Err != nil && res.Err.Code == tool.CodeNotFound {
		a.t.Errorf("%s: %v", listed[i], res.Err)
	}
	return true
}

// browse lists the names in all categories that are listed, fifty at once.
func (a *agent) browse(right func(string) bool) bool {
	a.browsed = true
	var there struct{ Categories []struct{ Name string } }
	if err := json.Unmarshal([]byte(a.call("list_categories", struct{}{}).JoinText()), &there); err != nil {
		a.t.Fatal(err)
	}
	for some := range slices.Chunk(there.Categories, 50) {
		var actions []any
		for _, c := range some {
			actions = append(actions, map[string]any{"name": "browse_category", "params": map[string]any{"category": c.Name, "detail": "name"}})
		}
		var all struct {
			Results []struct{ Data struct{ Tools []string } }
		}
		if err := json.Unmarshal([]byte(a.call("run_parallel", map[string]any{"actions": actions}).JoinText()), &all); err != nil {
			a.t.Fatal(err)
		}
		for _, r := range all.Results {
			if a.use(r.Data.Tools, right) {
				return true
			}
		}
	}
	return false
}

// viewTokens returns what the listing of a view costs.
func viewTokens(t *testing.T, set *tool.Set, mode inject.Mode) int {
	total := 0
	for _, it := range inject.Present(set, inject.Options{Force: mode}).Items {
		line, err := json.Marshal(map[string]any{"name": it.Name, "description": it.Description, "inputSchema": it.Input})
		if err != nil {
			t.Fatal(err)
		}
		total += tokensOf(t, string(line))
	}
	return total
}

// Until the right tool has been called, discovery costs at most a tenth of
// what it costs to be shown all tools. Who does not find it pays for both.
func TestTokensUntilTheRightTool(t *testing.T) {
	dir := os.Getenv("HELVE_EVALS")
	if dir == "" {
		t.Skip("HELVE_EVALS names no folder of evaluation data")
	}
	set, err := measure.LoadSet(filepath.Join(dir, "retrieval", "livemcpbench"))
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range set.Tools {
		it.Effect, it.Description = tool.Reads, cmp.Or(it.Description, it.Name)
		it.Handle = func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text("done"), nil }
	}
	h := build(t, &guard.Rules{}, set.Tools...)
	direct, small := viewTokens(t, h.reg.Set(), inject.Direct), viewTokens(t, h.reg.Set(), inject.Discovery)
	var said, reread, shown, browsed, missed int
	for _, q := range set.Queries {
		right := func(name string) bool {
			return slices.ContainsFunc(q.Groups, func(g []string) bool { return slices.Contains(g, name) })
		}
		a := &agent{house: h, t: t, said: small + tokensOf(t, q.Text)}
		shown += direct + tokensOf(t, q.Text)
		if !a.find(q.Text, right) {
			missed++
			a.said += direct
			a.reread += a.said
		}
		if a.browsed {
			browsed++
		}
		said, reread = said+a.said, reread+a.reread
	}
	n := len(set.Queries)
	t.Logf("%d tools, %d queries, %d not found by search, %d not at all: %d tokens a query direct; discovery %d (%.3f), and with every request counted in full %d (%.3f); its listing %d",
		len(set.Tools), n, browsed, missed, shown/n, said/n, float64(said)/float64(shown), reread/n, float64(reread)/float64(shown), small)
	if 10*said > shown || 10*reread > shown {
		t.Errorf("discovery costs more than a tenth: %d and %d of %d tokens", said, reread, shown)
	}
}
