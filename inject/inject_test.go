package inject_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// The thresholds of SPEC I1, with 200 tokens a tool and K = 1,000.
func TestThresholds(t *testing.T) {
	for _, test := range []struct{ window, direct, compact int }{
		{8_000, 8, 53}, {32_000, 32, 213}, {60_000, 60, 400}, {128_000, 128, 853}, {200_000, 200, 1333},
	} {
		for tools, want := range map[int]inject.Mode{
			1: inject.Direct, test.direct: inject.Direct, test.direct + 1: inject.Compact,
			test.compact: inject.Compact, test.compact + 1: inject.Discovery, 10_000: inject.Discovery,
		} {
			if d := inject.Decide(test.window, tools, tools*inject.UnknownTokens); d.Mode != want {
				t.Errorf("%d tools in a window of %d: %s, want %s", tools, test.window, d.Mode, want)
			}
		}
	}
}

func made(name string, edit ...func(*tool.Definition)) *tool.Tool {
	def := tool.Definition{Name: name, Description: "Do it.\nWith care.",
		Input: schema.Must(`{"type":"object","properties":{"z":{"type":"string"},"a":{"const":12345678901234567890}},"x-unknown":[1]}`)}
	for _, e := range edit {
		e(&def)
	}
	return &tool.Tool{Definition: def, Handle: func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }}
}

func set(t testing.TB, tools ...*tool.Tool) *tool.Set {
	t.Helper()
	var reg tool.Registry
	if err := reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return reg.Set()
}

func names(v inject.View) []string {
	var out []string
	for _, it := range v.Items {
		out = append(out, it.Name)
	}
	return out
}

func meta(d *tool.Definition) { d.Meta = true }

func TestViews(t *testing.T) {
	s := set(t, made("search_tools", meta), made("file.read"), made("file.write", func(d *tool.Definition) {
		d.Examples = []json.RawMessage{json.RawMessage(`{"z":"x"}`)}
	}), made("rare.thing", func(d *tool.Definition) { d.Deferred = true }), made("memory.store"), made("secret.thing"))
	visible := func(tl *tool.Tool) bool { return tl.ModuleName() != "secret" }

	v := inject.Present(s, inject.Options{Visible: visible})
	if v.Mode != inject.Direct || v.Tools != 5 || fmt.Sprint(names(v)) != "[file__read file__write memory__store rare__thing search_tools]" {
		t.Errorf("direct: %v %+v", names(v), v.Decision)
	}
	if read, _ := s.Lookup("file.read"); string(v.Items[0].Input) != string(read.Input.Raw()) {
		t.Errorf("the schema changed: %s", v.Items[0].Input)
	}
	if !strings.Contains(v.Items[1].Description, `Example: {"z":"x"}`) {
		t.Errorf("no example: %q", v.Items[1].Description)
	}
	if strings.Contains(string(v.Items[3].Input), "properties") {
		t.Errorf("a deferred tool is shown in full: %s", v.Items[3].Input)
	}

	v = inject.Present(s, inject.Options{Visible: visible, Force: inject.Compact})
	if !v.Forced || len(v.Items) != 5 || v.Items[0].Description != "Do it." || !v.Items[4].Full {
		t.Errorf("compact: %+v", v)
	}
	if problems := schema.Must(string(v.Items[0].Input)).Validate([]byte(`{"anything":1}`)); problems != nil {
		t.Errorf("a compact listing closes the parameters: %v", problems)
	}

	v = inject.Present(s, inject.Options{Visible: visible, Force: inject.Discovery, Modules: []string{"memory"}, Active: []string{"file.write", "secret.thing", "file.read", "file.write"}})
	if got := fmt.Sprint(names(v)); got != "[memory__store search_tools file__write file__read]" {
		t.Errorf("discovery: %s", got)
	}
}

func TestDecisionGoesByWhatIsSent(t *testing.T) {
	big := made("big.tool", func(d *tool.Definition) { d.Description = strings.Repeat("x", 8000) })
	v := inject.Present(set(t, big), inject.Options{Window: 8000})
	if v.Mode != inject.Compact || v.DirectTokens < 2000 {
		t.Errorf("one tool of 8,000 bytes in a window of 8,000 tokens: %+v", v.Decision)
	}
	for _, it := range v.Items {
		raw, _ := json.Marshal(map[string]any{"name": it.Name, "description": it.Description, "inputSchema": it.Input})
		if got, want := it.Tokens(), len(raw)/4; got < want-1 || got > want+1 {
			t.Errorf("%s is counted as %d tokens, its JSON comes to %d", it.Name, got, want)
		}
	}
}

func TestViewsAreStable(t *testing.T) {
	tools := []*tool.Tool{made("a.one"), made("b.two"), made("c.three"), made("search_tools", meta)}
	first := listing(inject.Present(set(t, tools...), inject.Options{}))
	slices.Reverse(tools)
	second := listing(inject.Present(set(t, tools...), inject.Options{}))
	if first != second || len(first) < 400 {
		t.Errorf("the order of registration shows:\n%s\n%s", first, second)
	}
}

// listing writes a view out as it is sent.
func listing(v inject.View) string {
	var b strings.Builder
	for _, it := range v.Items {
		fmt.Fprintf(&b, "%s\n%s\n%s\n", it.Name, it.Description, it.Input)
	}
	return b.String()
}

func TestActivation(t *testing.T) {
	a := inject.Activation{Max: 3}
	a.Pin("pinned")
	for _, n := range []string{"a", "b", "c"} {
		if dropped := a.Use(n); dropped != "" {
			t.Errorf("%s dropped %s", n, dropped)
		}
	}
	a.Use("a")
	if dropped := a.Use("d"); dropped != "b" {
		t.Errorf("dropped %q, want the least recently used, b", dropped)
	}
	if got := fmt.Sprint(a.Names()); got != "[pinned a c d]" {
		t.Errorf("names %s: want the order of activation", got)
	}
}

// However it is used, an activation holds at most Max tools, the most recently
// used among them, and the order of those that stay does not change.
func TestActivationLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := inject.Activation{Max: rapid.IntRange(1, 5).Draw(t, "max")}
		var recent []string
		for _, n := range rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g"})).Draw(t, "uses") {
			before := a.Names()
			a.Use(n)
			recent = append(slices.DeleteFunc(recent, func(s string) bool { return s == n }), n)
			after := a.Names()
			if len(after) > a.Max {
				t.Fatalf("%v are more than %d", after, a.Max)
			}
			for _, want := range recent[max(0, len(recent)-a.Max):] {
				if !slices.Contains(after, want) {
					t.Fatalf("%s was used lately and is not among %v", want, after)
				}
			}
			kept := slices.DeleteFunc(slices.Clone(before), func(s string) bool { return !slices.Contains(after, s) })
			if !slices.Equal(kept, after[:len(kept)]) {
				t.Fatalf("%v became %v: the order changed", before, after)
			}
		}
	})
}

func TestParseMode(t *testing.T) {
	for s, want := range map[string]inject.Mode{"": "", "auto": "", "full": inject.Direct, "compact": inject.Compact, "discovery": inject.Discovery} {
		if m, err := inject.ParseMode(s); m != want || err != nil {
			t.Errorf("%q: %q, %v", s, m, err)
		}
	}
	if _, err := inject.ParseMode("everything"); err == nil {
		t.Error("an unknown mode was taken")
	}
}
