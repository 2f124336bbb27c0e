package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

func nop(name string, edit ...func(*tool.Definition)) *tool.Tool {
	def := tool.Definition{Name: name, Description: "Do nothing.", Input: schema.Must(`{"type":"object","additionalProperties":false}`)}
	for _, e := range edit {
		e(&def)
	}
	return tool.New(def, func(context.Context, struct{}) (string, error) { return "", nil })
}

func alias(names ...string) func(*tool.Definition) {
	return func(d *tool.Definition) { d.Aliases = names }
}

func registry(t testing.TB, tools ...*tool.Tool) *tool.Registry {
	t.Helper()
	var reg tool.Registry
	if err := reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return &reg
}

func TestResolve(t *testing.T) {
	set := registry(t,
		nop("filesystem.read", alias("read_file", "FileRead", "lire un fichier")),
		nop("filesystem.write"), nop("vault.write"),
		nop("search_tools"),
		nop("mcp.evil.search_tools"), nop("mcp.evil.read_file"), nop("mcp.evil.read"),
		nop("mcp.git.a__b"), nop("mcp.git.a.b"), nop("hidden.gem"),
	).Set()
	visible := func(tl *tool.Tool) bool { return tl.Name != "hidden.gem" && tl.Name != "vault.write" }
	for _, test := range []struct{ name, want string }{
		{"filesystem.read", "filesystem.read"},
		{"filesystem__read", "filesystem.read"},
		{"read_file", "filesystem.read"}, // an alias of ours beats the short name of another's
		{"fileread", "filesystem.read"},
		{"search_tools", "search_tools"},
		{"Filesystem.Read", "filesystem.read"},
		{"write", "filesystem.write"}, // the only visible one
		{set.Wire("mcp.git.a__b"), "mcp.git.a__b"},
		{"mcp__git__a__b", "mcp.git.a.b"},
		{"hidden.gem", "hidden.gem"}, // the exact name: for the visibility stage to refuse
	} {
		got, err := set.Resolve(test.name, visible)
		if err != nil || got.Name != test.want {
			t.Errorf("Resolve(%q) = %v, %v; want %s", test.name, got, err, test.want)
		}
	}
	for name, want := range map[string]string{
		"gem":               "",                               // invisible: not even suggested
		"filesystem.raed":   "filesystem.read",                // near
		"read":              "filesystem.read, mcp.evil.read", // ambiguous
		"nothing.like.this": "search_tools finds tools",       // no near name
	} {
		_, err := set.Resolve(name, visible)
		var e *tool.Error
		if !errors.As(err, &e) || e.Code != tool.CodeNotFound {
			t.Errorf("Resolve(%q): error %v, want code %s", name, err, tool.CodeNotFound)
			continue
		}
		if !strings.Contains(e.Message, want) || strings.Contains(e.Message, "hidden") {
			t.Errorf("Resolve(%q): %q, want it to say %q and nothing of hidden tools", name, e.Message, want)
		}
	}
}

func TestReplaceIsAllOrNothing(t *testing.T) {
	reg := registry(t, nop("a.one"))
	if err := reg.Replace("b", nop("b.one"), nop("b.two")); err != nil {
		t.Fatal(err)
	}
	before := reg.Set()
	bad := nop("b.four")
	bad.Description = " "
	for _, tools := range [][]*tool.Tool{
		{nop("b.three"), nop("a.one")},
		{nop("b.three"), bad},
		{nop("b.three"), nop("b.three")},
		{nop("b.three"), nop("b.\x1b[2K")},
	} {
		if err := reg.Replace("b", tools...); err == nil {
			t.Errorf("Replace accepted %s", tools[1].Name)
		}
	}
	if reg.Set() != before {
		t.Error("a failed Replace changed the set")
	}
	if err := reg.Replace("b"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-before.Superseded():
	default:
		t.Error("the old set does not know that it is superseded")
	}
	if _, ok := reg.Set().Lookup("a.one"); !ok || reg.Set().Len() != 1 {
		t.Errorf("%d tools are left, want a.one alone", reg.Set().Len())
	}
}

func TestFilesystemNeedsRole(t *testing.T) {
	type in struct {
		Path string `json:"path"`
	}
	type withRole struct {
		Path string `json:"path" role:"path.read"`
	}
	def := tool.Definition{Name: "x.read", Description: "Read.", Needs: tool.NeedsFilesystem}
	err := new(tool.Registry).Add(tool.New(def, func(context.Context, in) (string, error) { return "", nil }))
	if err == nil || !strings.Contains(err.Error(), "path role") {
		t.Errorf("a file tool without a path role was accepted: %v", err)
	}
	err = new(tool.Registry).Add(tool.New(def, func(context.Context, withRole) (string, error) { return "", nil }))
	if err != nil {
		t.Error(err)
	}
}

func TestOpenSchemaPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a tool with an open input schema was made")
		}
	}()
	nop("x.y", func(d *tool.Definition) { d.Input = schema.Must(`{"type":"object"}`) })
}

// What is no struct has no arguments by name.
func TestInputsAreStructs(t *testing.T) {
	def := tool.Definition{Name: "x.y", Description: "X."}
	for want, make := range map[string]func(){
		"the input is a string":         func() { tool.New(def, func(context.Context, string) (string, error) { return "", nil }) },
		"the input is a []string":       func() { tool.New(def, func(context.Context, []string) (string, error) { return "", nil }) },
		"the input is a map[string]int": func() { tool.New(def, func(context.Context, map[string]int) (string, error) { return "", nil }) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want+": it must be a struct") {
					t.Errorf("panic %s, want %s", got, want)
				}
			}()
			make()
		}()
	}
}

func TestStructured(t *testing.T) {
	type out struct {
		Sum int `json:"sum"`
	}
	add := tool.New(tool.Definition{Name: "math.add", Description: "Add."}, func(_ context.Context, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (out, error) {
		return out{in.A + in.B}, nil
	})
	res, err := add.Handle(t.Context(), &tool.Call{Args: json.RawMessage(`{"a":1,"b":2}`)})
	if err != nil || string(res.Structured) != `{"sum":3}` {
		t.Errorf("Handle = %+v, %v", res, err)
	}
	if res, err := add.Handle(t.Context(), &tool.Call{Args: json.RawMessage(`{"a":1e1,"b":2.0}`)}); err != nil || string(res.Structured) != `{"sum":12}` {
		t.Errorf("integers written with a fraction or exponent: %+v, %v", res, err)
	}
	if problems := add.Output.Validate(res.Structured); problems != nil {
		t.Errorf("the result does not conform to the inferred schema: %v", problems)
	}
}

func TestWireNamesAreUnique(t *testing.T) {
	long := "mcp.server." + strings.Repeat("very_long_", 12)
	clash := tool.Wire("mcp.s.a__b")
	set := registry(t, nop(long+"one"), nop(long+"two"), nop("mcp.s.a__b"), nop("mcp.s.a.b"), nop(strings.ReplaceAll(clash, "__", ".")), nop("mcp.s.ü b")).Set()
	var seen []string
	for tl := range set.All() {
		w := set.Wire(tl.Name)
		if slices.Contains(seen, w) {
			t.Errorf("two tools have the wire name %s", w)
		}
		seen = append(seen, w)
		if back, err := set.Resolve(w, nil); err != nil || back.Name != tl.Name {
			t.Errorf("%s is sent as %s, which comes back as %v, %v", tl.Name, w, back, err)
		}
	}
}

func FuzzWire(f *testing.F) {
	for _, s := range []string{"filesystem.read", "a__b", "a_.b", "mcp.x.-", "ü", strings.Repeat("x", 300), "a.b__", "._."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		w := tool.Wire(name)
		if len(w) > tool.MaxWire || len(w) == 0 {
			t.Fatalf("Wire(%q) = %q has %d bytes", name, w, len(w))
		}
		for _, c := range []byte(w) {
			if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", rune(c)) {
				t.Fatalf("Wire(%q) = %q has the byte %q", name, w, c)
			}
		}
		tl := &tool.Tool{Definition: tool.Definition{Name: name, Description: "x", Input: schema.Must(`{"type":"object"}`)},
			Handle: func(context.Context, *tool.Call) (*tool.Result, error) { return nil, nil }}
		var reg tool.Registry
		if reg.Add(tl, nop("other.tool")) != nil {
			return // no such name may be offered
		}
		if back, err := reg.Set().Resolve(reg.Set().Wire(name), nil); err != nil || back != tl {
			t.Fatalf("%q is sent as %q, which comes back as %v, %v", name, w, back, err)
		}
	})
}

func TestChild(t *testing.T) {
	c := &tool.Call{ID: "1", Name: "run_parallel", From: tool.Origin{Session: "s", Via: make([]string, 0, 4)}}
	a, b := c.Child("2", "x", nil), c.Child("3", "y", nil)
	aa := a.Child("4", "z", nil)
	if got := fmt.Sprint(a.From.Via, b.From.Via, aa.From.Via, aa.From.Parent, aa.From.Session); got != "[run_parallel] [run_parallel] [run_parallel x]2s" {
		t.Errorf("children came %s", got)
	}
}

// BenchmarkReplace measures 50 owners of 100 tools each coming one after the other.
func BenchmarkReplace(b *testing.B) {
	nop := func(context.Context, *tool.Call) (*tool.Result, error) { return nil, nil }
	owners := make([][]*tool.Tool, 50)
	for i := range owners {
		for j := range 100 {
			owners[i] = append(owners[i], &tool.Tool{Handle: nop, Definition: tool.Definition{
				Name: fmt.Sprintf("m%02d.tool_%03d", i, j), Description: "Does it.", Effect: tool.Reads, Input: schema.Must(`{"type":"object"}`)}})
		}
	}
	for b.Loop() {
		var r tool.Registry
		for i, tools := range owners {
			if err := r.Replace(fmt.Sprint(i), tools...); err != nil {
				b.Fatal(err)
			}
		}
	}
}
