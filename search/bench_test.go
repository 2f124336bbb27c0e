package search_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// The words of a made-up catalogue: what providers do, to what.
var (
	providers = []string{"acme", "northwind", "globex", "initech", "umbra", "hooli", "vandelay", "stark", "wayne", "tyrell", "soylent", "cyberdyne", "wonka",
		"oceanic", "monarch", "aperture", "weyland", "massive", "octan", "zorg", "nakatomi", "virtucon", "gringott", "duff", "bluth", "pied", "sterling", "dunder", "prestige", "krusty"}
	actions = []struct{ verb, says, asks string }{
		{"add", "Add one more", "put in another"}, {"find", "Look for a", "where is the"}, {"get", "Return one", "show me the"},
		{"list", "Return all of the", "which are the"}, {"change", "Alter fields of a", "modify the"}, {"remove", "Take away a", "get rid of the"},
		{"copy", "Make a duplicate of a", "clone the"}, {"send", "Deliver to its readers a", "mail out the"}, {"watch", "Report whenever there is news of a", "tell me when something happens to the"},
		{"sum", "Add up the figures of every", "what is the total of every"}, {"lock", "Keep others from touching a", "protect the"}, {"print", "Render on paper a", "make a hard copy of the"},
	}
	things = []struct{ noun, says string }{
		{"order", "An order has lines, a buyer and a due date."}, {"shipment", "A shipment travels with one carrier."}, {"contract", "A contract binds two parties until its term ends."},
		{"ticket", "A ticket describes a defect that someone met."}, {"sensor", "A sensor measures temperature, humidity or light."}, {"recipe", "A recipe has ingredients and steps."},
		{"playlist", "A playlist is a row of songs."}, {"flight", "A flight leads from one airport to another."}, {"patient", "A patient has a record and appointments."},
		{"lesson", "A lesson belongs to a course and has exercises."}, {"survey", "A survey asks questions and collects answers."}, {"payment", "A payment moves money between accounts."},
		{"vehicle", "A vehicle has a plate and a position."}, {"meeting", "A meeting has a time, a room and guests."}, {"photo", "A photo can be cropped, rotated and tagged."},
	}
	inputs = []string{
		`"id":{"type":"string","description":"which one, by its number"}`, `"from":{"type":"string","format":"date","description":"first day of the period"}`,
		`"most":{"type":"integer","description":"how many to return at most"}`, `"note":{"type":"string","description":"free text kept with it"}`,
		`"owner":{"type":"string","description":"mail address of the person in charge"}`, `"state":{"type":"string","enum":["draft","ready","done"],"description":"only those in this state"}`,
	}
)

// synthetic makes n tools, always the same, and a query for each.
func synthetic(n int) (tools []*tool.Tool, queries []string) {
	for i := range n {
		p, a, th := providers[i%len(providers)], actions[i/len(providers)%len(actions)], things[i/(len(providers)*len(actions))%len(things)]
		name := fmt.Sprintf("mcp.%s.%s_%s", p, a.verb, th.noun)
		if edition := i / (len(providers) * len(actions) * len(things)); edition > 0 {
			name = fmt.Sprintf("%s_%d", name, edition+1)
		}
		in := fmt.Sprintf(`{"type":"object","properties":{%s,%s,%s}}`, inputs[i%6], inputs[(i+1+i/7%2)%6], inputs[(i+3+i/5%2)%6])
		tools = append(tools, made(tool.Definition{
			Name: name, Description: fmt.Sprintf("%s %s in %s. %s", a.says, th.noun, p, th.says), Input: schema.Must(in),
		}))
		queries = append(queries, fmt.Sprintf("%s %s in %s", a.asks, th.noun, p))
	}
	return tools, queries
}

// real reads the catalogue of real tools, if there is one.
var real = sync.OnceValue(func() []*tool.Tool {
	f, err := os.Open(filepath.Join(os.Getenv("HELVE_EVALS"), "mcp", "scale-catalogue.jsonl"))
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []*tool.Tool
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct {
			Name, Tool, Server, Description string
			Parameters                      *schema.Schema
		}
		if json.Unmarshal(lines.Bytes(), &row) == nil {
			out = append(out, made(tool.Definition{Name: row.Name, Module: row.Server, Description: row.Description, Input: row.Parameters}))
		}
	}
	return out
})

// eachCatalogue runs a benchmark over n made-up tools and, where there are some, n real ones.
func eachCatalogue(b *testing.B, n int, run func(b *testing.B, tools []*tool.Tool, queries []string)) {
	tools, queries := synthetic(n)
	b.Run("synthetic", func(b *testing.B) { run(b, tools, queries) })
	b.Run("real", func(b *testing.B) {
		if real() == nil {
			b.Skip("set HELVE_EVALS to a folder with the evaluation data to run this")
		}
		tools := real()[:min(n, len(real()))]
		queries = nil
		for i := 0; i < len(tools); i += 7 {
			queries = append(queries, tools[i].Summary())
		}
		run(b, tools, queries)
	})
}

func benchmarkSearch(b *testing.B, n int) {
	eachCatalogue(b, n, func(b *testing.B, tools []*tool.Tool, queries []string) {
		ix := search.New(search.Options{})
		ix.Sync(registered(b, tools...))
		var times []time.Duration
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			start := time.Now()
			if _, err := ix.Search(context.Background(), search.Query{Text: queries[i*31%len(queries)]}); err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1000, "p50-µs")
		b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1000, "p99-µs")
	})
}

func BenchmarkSearch1000(b *testing.B)  { benchmarkSearch(b, 1000) }
func BenchmarkSearch5000(b *testing.B)  { benchmarkSearch(b, 5000) }
func BenchmarkSearch10000(b *testing.B) { benchmarkSearch(b, 10000) }

func BenchmarkBuild5000(b *testing.B)  { benchmarkBuild(b, 5000) }
func BenchmarkBuild10000(b *testing.B) { benchmarkBuild(b, 10000) }

func benchmarkBuild(b *testing.B, n int) {
	eachCatalogue(b, n, func(b *testing.B, tools []*tool.Tool, _ []string) {
		set := registered(b, tools...)
		var ix *search.Index
		for b.Loop() {
			ix = search.New(search.Options{})
			ix.Sync(set)
		}
		b.StopTimer()
		with := heap()
		runtime.KeepAlive(ix)
		ix = nil
		b.ReportMetric(float64(with-heap())/float64(len(tools)), "B/tool")
		runtime.KeepAlive(set)
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkSync50of10000(b *testing.B) {
	eachCatalogue(b, 10000, func(b *testing.B, tools []*tool.Tool, _ []string) {
		var reg tool.Registry
		server := func() []*tool.Tool { // the same tools under new pointers, as when a server was restarted
			var out []*tool.Tool
			for _, t := range tools[:50] {
				c := *t
				out = append(out, &c)
			}
			return out
		}
		if err := reg.Replace("rest", tools[50:]...); err != nil {
			b.Fatal(err)
		}
		if err := reg.Replace("server", server()...); err != nil {
			b.Fatal(err)
		}
		ix := search.New(search.Options{})
		ix.Sync(reg.Set())
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			if err := reg.Replace("server", server()...); err != nil {
				b.Fatal(err)
			}
			set := reg.Set()
			b.StartTimer()
			ix.Sync(set)
		}
	})
}

func BenchmarkSuggest(b *testing.B) {
	eachCatalogue(b, 5000, func(b *testing.B, tools []*tool.Tool, _ []string) {
		ix := search.New(search.Options{})
		ix.Sync(registered(b, tools...))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			name := tools[i*31%len(tools)].Action()
			ix.Suggest("x"+name+"s", 5, nil)
		}
	})
}
