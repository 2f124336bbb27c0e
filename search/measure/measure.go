// Package measure tells how well and how fast a search index finds the tools that people chose.
package measure

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// An EvalSet is a catalogue of tools, and queries with the tools that answer them.
type EvalSet struct {
	Tools   []*tool.Tool
	Queries []Query
}

// A Query is a request and what it should find.
type Query struct {
	ID, Text, Lang string
	Groups         [][]string // names of tools; the tools of a group do for each other
}

// LoadSet reads a folder with tools.jsonl and queries.jsonl.
//
// A tool is an object with name (unique), description, parameters (a JSON
// Schema) and, if it likes, tool (the name on its server), server,
// server_title, title, category, tags, aliases and help. A query has query, relevant
// (names of tools) and, if it likes, id, lang, and groups (names of tools that
// do for each other); without groups each relevant tool is one of its own.
func LoadSet(dir string) (*EvalSet, error) {
	set := &EvalSet{}
	known := map[string]bool{}
	err := eachLine(filepath.Join(dir, "tools.jsonl"), func(line []byte) error {
		t, err := readTool(line)
		if err != nil {
			return err
		}
		if known[t.Name] {
			return fmt.Errorf("tool %s: there are two of this name", t.Name)
		}
		known[t.Name] = true
		set.Tools = append(set.Tools, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachLine(filepath.Join(dir, "queries.jsonl"), func(line []byte) error {
		q, err := readQuery(line, known)
		if err == nil {
			set.Queries = append(set.Queries, q)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return set, nil
}

func eachLine(file string, visit func([]byte) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := visit(line); err != nil {
				return fmt.Errorf("%s:%d: %w", file, n, err)
			}
		}
		if err != nil {
			return nil
		}
	}
}

func readTool(line []byte) (*tool.Tool, error) {
	var row struct {
		Name, Tool, Server, Category, Title, Description, Help string
		ServerTitle                                            string `json:"server_title"`
		Tags, Aliases                                          []string
		Parameters                                             json.RawMessage
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, err
	}
	if row.Name == "" {
		return nil, errors.New("a tool has no name")
	}
	t := &tool.Tool{Definition: tool.Definition{
		Name: row.Name, Module: module(row.Name, row.Tool, row.Server), Title: row.Title, Description: row.Description, Help: row.Help,
		Category: tool.Category(row.Category), Tags: row.Tags, Aliases: row.Aliases,
	}}
	if len(row.Parameters) > 0 && !bytes.Equal(row.Parameters, []byte("null")) {
		in, err := schema.ParseWith(row.Parameters, schema.Options{})
		if err != nil {
			return nil, fmt.Errorf("tool %s: parameters: %w", row.Name, err)
		}
		t.Input = in
	}
	return t, nil
}

// module returns what precedes the server's own name for the tool, or the server.
func module(name, short, server string) string {
	if rest, ok := strings.CutSuffix(name, short); ok && short != "" && len(rest) > 1 {
		return strings.TrimRight(rest, "./:_")
	}
	if server == "" {
		return name // so that no part of the name is taken for one
	}
	return server
}

func readQuery(line []byte, known map[string]bool) (Query, error) {
	var row struct {
		ID, Query, Lang string
		Relevant        []string
		Groups          [][]string
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return Query{}, err
	}
	q := Query{ID: row.ID, Text: row.Query, Lang: row.Lang, Groups: row.Groups}
	if len(q.Groups) == 0 {
		for _, name := range row.Relevant {
			q.Groups = append(q.Groups, []string{name})
		}
	}
	if len(q.Groups) == 0 {
		return q, fmt.Errorf("query %s: no tool is relevant", row.ID)
	}
	for _, g := range q.Groups {
		for _, name := range g {
			if !known[name] {
				return q, fmt.Errorf("query %s: no tool is named %q", row.ID, name)
			}
		}
	}
	return q, nil
}

// Index makes an index with options of the set's tools. It reports how long that took and
// how much memory the index holds, the tools not counted.
func (s *EvalSet) Index(o search.Options) (ix *search.Index, took time.Duration, bytes uint64, err error) {
	var reg tool.Registry
	if err := reg.Add(s.registrable()...); err != nil {
		return nil, 0, 0, err
	}
	tools := reg.Set()
	before := heap()
	start := time.Now()
	ix = search.New(o)
	ix.Sync(tools)
	took = time.Since(start)
	after := heap()
	runtime.KeepAlive(reg.Set())
	return ix, took, max(after, before) - before, nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Run indexes the set and measures all that Metrics has room for.
func (s *EvalSet) Run(o search.Options) (Metrics, error) {
	ix, took, size, err := s.Index(o)
	if err != nil {
		return Metrics{}, err
	}
	m, err := Measure(ix, s)
	m.BuildMS = float64(took.Microseconds()) / 1000
	m.BytesPerTool = float64(size) / float64(max(1, m.Tools))
	return m, err
}

// registrable returns the tools with what a registry demands filled in.
func (s *EvalSet) registrable() []*tool.Tool {
	for _, t := range s.Tools {
		if t.Input == nil {
			t.Input = schema.Must(`{"type":"object"}`)
		}
		if strings.TrimSpace(t.Description) == "" {
			t.Description = "-"
		}
		if t.Handle == nil {
			t.Handle = func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }
		}
	}
	return s.Tools
}

// Metrics are how well an index did on a set. Shares are between 0 and 1.
type Metrics struct {
	Queries      int     `json:"queries"`
	Tools        int     `json:"tools"`
	NDCG10       float64 `json:"ndcg@10"`
	Recall1      float64 `json:"recall@1"`
	Recall5      float64 `json:"recall@5"`
	Recall10     float64 `json:"recall@10"`
	MRR          float64 `json:"mrr"`
	P50          float64 `json:"p50_us"` // of the time for ten hits, in microseconds
	P99          float64 `json:"p99_us"`
	BuildMS      float64 `json:"build_ms"`       // of EvalSet.Run; Measure leaves it zero
	BytesPerTool float64 `json:"bytes_per_tool"` // of EvalSet.Run; Measure leaves it zero

	Languages map[string]Quality `json:"languages,omitempty"` // by language, where the queries are of several
}

// A Quality is how well an index did on some of a set's queries.
type Quality struct {
	Queries int     `json:"queries"`
	NDCG10  float64 `json:"ndcg@10"`
	Recall5 float64 `json:"recall@5"`
}

// A Searcher is an index, or anything that can stand in for one.
type Searcher interface {
	Search(context.Context, search.Query) ([]search.Hit, error)
	Len() int
}

// depth is how far down an answer the first right tool is looked for.
const depth = 100

// Measure runs the set's queries twice: for quality, to some depth, and for
// the time that ten hits take.
func Measure(ix Searcher, set *EvalSet) (Metrics, error) {
	m := Metrics{Queries: len(set.Queries), Tools: ix.Len()}
	if m.Queries == 0 {
		return m, nil
	}
	for _, q := range set.Queries {
		hits, err := ix.Search(context.Background(), search.Query{Text: q.Text, Limit: depth})
		if err != nil {
			return m, fmt.Errorf("query %s: %w", q.ID, err)
		}
		names := make([]string, len(hits))
		for i, h := range hits {
			names[i] = h.Tool.Name
		}
		one := Judge(names, q.Groups)
		m.add(one)
		m.addLanguage(q.Lang, one)
	}
	m.divide(float64(m.Queries))
	m.settleLanguages()
	times := make([]float64, 0, m.Queries)
	for _, q := range set.Queries {
		start := time.Now()
		if _, err := ix.Search(context.Background(), search.Query{Text: q.Text}); err != nil {
			return m, fmt.Errorf("query %s: %w", q.ID, err)
		}
		times = append(times, float64(time.Since(start).Nanoseconds())/1000)
	}
	slices.Sort(times)
	m.P50, m.P99 = times[len(times)/2], times[len(times)*99/100]
	return m, nil
}

func (m *Metrics) add(o Metrics) {
	m.NDCG10 += o.NDCG10
	m.Recall1 += o.Recall1
	m.Recall5 += o.Recall5
	m.Recall10 += o.Recall10
	m.MRR += o.MRR
}

func (m *Metrics) addLanguage(lang string, o Metrics) {
	if lang == "" {
		return
	}
	if m.Languages == nil {
		m.Languages = map[string]Quality{}
	}
	q := m.Languages[lang]
	m.Languages[lang] = Quality{q.Queries + 1, q.NDCG10 + o.NDCG10, q.Recall5 + o.Recall5}
}

// settleLanguages makes means of the sums, where there are several languages.
func (m *Metrics) settleLanguages() {
	if len(m.Languages) < 2 {
		m.Languages = nil
	}
	for l, q := range m.Languages {
		n := float64(q.Queries)
		m.Languages[l] = Quality{q.Queries, q.NDCG10 / n, q.Recall5 / n}
	}
}

func (m *Metrics) divide(n float64) {
	m.NDCG10 /= n
	m.Recall1 /= n
	m.Recall5 /= n
	m.Recall10 /= n
	m.MRR /= n
}

// Judge measures one ranking: recall at k is the share of groups that one of
// the first k tools is in; nDCG@10 gains one for each group where it is first
// met; MRR is one over the place of the first tool of any group.
func Judge(names []string, groups [][]string) Metrics {
	var m Metrics
	met := make([]bool, len(groups))
	n := float64(len(groups))
	for i, name := range names {
		for g, group := range groups {
			if met[g] || !slices.Contains(group, name) {
				continue
			}
			met[g] = true
			if m.MRR == 0 {
				m.MRR = 1 / float64(i+1)
			}
			if i < 1 {
				m.Recall1 += 1 / n
			}
			if i < 5 {
				m.Recall5 += 1 / n
			}
			if i < 10 {
				m.Recall10 += 1 / n
				m.NDCG10 += 1 / math.Log2(float64(i+2))
			}
		}
	}
	var ideal float64
	for i := range min(10, len(groups)) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	m.NDCG10 /= ideal
	return m
}
