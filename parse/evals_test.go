package parse

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

// evals returns the lines of a file of the evaluation data, or skips.
func evals(t testing.TB, name string) [][]byte {
	dir := os.Getenv("HELVE_EVALS")
	if dir == "" {
		t.Skip("set HELVE_EVALS to the folder of the evaluation data")
	}
	f, err := os.Open(filepath.Join(dir, "toolcalls", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out [][]byte
	for sc := bufio.NewReader(f); ; {
		line, err := sc.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			out = append(out, line)
		}
		if err != nil {
			return out
		}
	}
}

type evalTool struct {
	Name       string
	Parameters json.RawMessage
}

type evalCase struct {
	ID, Format, Text string
	Tools            []evalTool
	Expect           []struct {
		Name      string
		Arguments json.RawMessage
	}
	Content  *string    `json:"expect_content"`
	Thinking *string    `json:"expect_thinking"`
	Match    string     `json:"args_match"`
	Chunks   [][]string `json:"stream_chunks"`
	Flags    []string
}

// tools returns what was offered. Some reference parsers do not look at that:
// where the case expects a call of another tool, that is offered as well.
func (c *evalCase) tools(widened bool) *Tools {
	if len(c.Tools) == 0 {
		return nil
	}
	var offers []Offer
	for _, t := range c.Tools {
		offers = append(offers, Offer{Name: t.Name, Parameters: t.Parameters})
	}
	if widened {
		for _, e := range c.Expect {
			offers = append(offers, Offer{Name: e.Name})
		}
	}
	return NewTools(offers...)
}

func sameValue(a, b any) bool {
	x, ok1 := a.(json.Number)
	y, ok2 := b.(json.Number)
	if ok1 && ok2 {
		f, _ := x.Float64()
		g, _ := y.Float64()
		return f == g
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !sameValue(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func decoded(raw []byte) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return fmt.Sprintf("invalid: %s", raw)
	}
	return v
}

// offered reports whether the tools that the case expects to be called were
// offered. Of those that were not no call may be read, whatever parsers do that
// look at no list.
func (c *evalCase) offered() bool {
	for _, e := range c.Expect {
		if known := c.tools(false); known != nil && !slices.ContainsFunc(c.Tools, func(t evalTool) bool { return t.Name == e.Name }) {
			return false
		}
	}
	return true
}

// exact reports whether the calls are those expected.
func (c *evalCase) exact(m Message) bool {
	if len(m.Calls) != len(c.Expect) {
		return false
	}
	for i, e := range c.Expect {
		want, got := decoded(e.Arguments), decoded(m.Calls[i].Args)
		if m.Calls[i].Name != e.Name {
			return false
		}
		if w, ok := want.(map[string]any); ok && c.Match == "subset" {
			g, _ := got.(map[string]any)
			for k, v := range w {
				if !sameValue(v, g[k]) {
					return false
				}
			}
			continue
		}
		if !sameValue(want, got) {
			return false
		}
	}
	return true
}

// TestEvals prints how many of the recorded cases are read as the reference
// parsers read them, and fails if cutting the text into pieces changes one.
func TestEvals(t *testing.T) {
	type score struct{ n, exact, offered, strict, auto, edge, edgeExact, content, contentN, thought, thoughtN int }
	scores := map[string]*score{}
	var total score
	verbose := os.Getenv("HELVE_EVALS_SHOW")
	for _, line := range evals(t, "cases.jsonl") {
		var c evalCase
		if err := json.Unmarshal(bytes.ReplaceAll(line, []byte(": NaN"), []byte(": null")), &c); err != nil {
			t.Fatal(err)
		}
		f := ByName(c.Format)
		if f == nil {
			t.Errorf("no format %q", c.Format)
			continue
		}
		s := scores[c.Format]
		if s == nil {
			s = &score{}
			scores[c.Format] = s
		}
		m := Read(f.New(c.tools(true)), c.Text)
		ok := c.exact(m)
		offered, known := c.offered(), c.tools(false)
		strictly := Read(f.New(known), c.Text)
		strict := c.exact(strictly)
		for _, call := range strictly.Calls {
			if known != nil && !slices.ContainsFunc(c.Tools, func(t evalTool) bool { return t.Name == call.Name }) {
				t.Errorf("%s: %s is called, which was not offered", c.ID, call.Name)
			}
		}
		auto := c.exact(Read(Auto.New(c.tools(true)), c.Text))
		for _, s := range []*score{s, &total} {
			if slices.Contains(c.Flags, "edge") {
				s.edge++
				s.edgeExact += count(ok)
				continue
			}
			s.n++
			s.exact += count(ok)
			s.offered += count(offered)
			s.strict += count(strict && offered)
			s.auto += count(auto)
			if c.Content != nil {
				s.contentN++
				s.content += count(strings.TrimSpace(m.Content) == strings.TrimSpace(*c.Content))
			}
			if c.Thinking != nil {
				s.thoughtN++
				s.thought += count(strings.TrimSpace(m.Thinking) == strings.TrimSpace(*c.Thinking))
			}
		}
		if verbose == "auto" && !auto && ok {
			t.Logf("%s: auto gives %+v of %q", c.ID, Read(Auto.New(c.tools(true)), c.Text), c.Text)
		}
		if verbose != "" && verbose != "auto" && (!ok || verbose == "all" && (!strict || c.Content != nil && strings.TrimSpace(m.Content) != strings.TrimSpace(*c.Content) || c.Thinking != nil && strings.TrimSpace(m.Thinking) != strings.TrimSpace(*c.Thinking))) {
			var calls []string
			for _, call := range m.Calls {
				calls = append(calls, call.Name+string(call.Args))
			}
			t.Logf("%s %v (calls %v, strictly %v)\n text %q\n got  %v\n want %s\n notes %q\n content %q", c.ID, c.Flags, ok, strict, c.Text, calls, line[bytes.Index(line, []byte(`"expect"`)):min(len(line), bytes.Index(line, []byte(`"expect"`))+300)], m.Notes, m.Content)
		}
		for _, chunks := range append(c.Chunks, strings.Split(c.Text, ""), bytewise(c.Text, 1), bytewise(c.Text, 3), bytewise(c.Text, 7)) {
			if got := Read(f.New(c.tools(true)), chunks...); !reflect.DeepEqual(got, m) {
				t.Errorf("%s: cut into %d pieces: %+v\nwhole: %+v", c.ID, len(chunks), got, m)
				break
			}
		}
	}
	names := make([]string, 0, len(scores))
	for n := range scores {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, n := range names {
		s := scores[n]
		fmt.Fprintf(&b, "%-18s %3d/%-3d  of tools offered %3d/%-3d  by auto %3d  edge %d/%d  content %d/%d  thinking %d/%d\n", n, s.exact, s.n, s.strict, s.offered, s.auto, s.edgeExact, s.edge, s.content, s.contentN, s.thought, s.thoughtN)
	}
	t.Logf("exact names and arguments by format:\n%s%-18s %3d/%-3d (%.1f %%)  of tools offered %d/%d (%.1f %%)  by auto %d (%.1f %%)  edge %d/%d  content %d/%d  thinking %d/%d", b.String(), "all",
		total.exact, total.n, 100*float64(total.exact)/float64(total.n), total.strict, total.offered, 100*float64(total.strict)/float64(total.offered), total.auto, 100*float64(total.auto)/float64(total.n), total.edgeExact, total.edge, total.content, total.contentN, total.thought, total.thoughtN)
	if total.strict*100 < total.offered*97 {
		t.Errorf("%d of %d cases whose tools were offered are exact, want 97 %%", total.strict, total.offered)
	}
	if total.exact*100 < total.n*97 {
		t.Errorf("%d of %d cases are exact, want 97 %%", total.exact, total.n)
	}
}

func count(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

// bytewise cuts s into pieces of n bytes.
func bytewise(s string, n int) (out []string) {
	for len(s) > n {
		out, s = append(out, s[:n]), s[n:]
	}
	return append(out, s)
}

// TestEvalsRepair prints how much broken JSON is repaired as expected.
func TestEvalsRepair(t *testing.T) {
	var n, ours, lib, bad, badRight int
	var spent [2]time.Duration
	for _, line := range evals(t, "jsonrepair.jsonl") {
		var c struct {
			Input string
			Error any             `json:"expect_error"`
			Value json.RawMessage `json:"expect_value"`
			Why   string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got, ok := repair(c.Input)
		spent[0] += time.Since(start)
		start = time.Now()
		alone, okAlone := repairMore(c.Input)
		spent[1] += time.Since(start)
		if c.Error != nil {
			bad++
			badRight += count(!ok)
			continue
		}
		n++
		right := ok && sameValue(decoded(c.Value), decoded([]byte(got)))
		ours += count(right)
		lib += count(okAlone && sameValue(decoded(c.Value), decoded([]byte(alone))))
		if !right && os.Getenv("HELVE_EVALS_SHOW") != "" {
			t.Logf("%s\n in   %q\n got  %v %q\n want %s", c.Why, c.Input, ok, got, c.Value)
		}
	}
	t.Logf("repaired as expected: %d of %d (%.1f %%) in %v; the library alone: %d in %v; refused as expected: %d of %d", ours, n, 100*float64(ours)/float64(n), spent[0], lib, spent[1], badRight, bad)
	if ours*100 < n*85 {
		t.Errorf("%d of %d repaired, want 85 %%", ours, n)
	}
}
