package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

const (
	maxTools       = 10_000   // of one server, or resources, or prompts
	maxPages       = 2_000    // of one list
	maxList        = 64 << 20 // bytes of one list
	maxDescription = 32 << 10 // bytes; longer ones are cut
	entryChunk     = 64       // tools that one processor takes at a time
)

// A manifest is what a server offers, as we offer it.
type manifest struct {
	of      *record
	tools   []*tool.Tool
	leftOut []string                  // which tools cannot be offered, and why
	made    map[string]*manifestEntry // by the server's name for them
	order   []string                  // of the names as they are listed

	held    []heldName // which tools are held back
	flagged []string   // what was found in tools that are offered
	serial  uint64     // of the pins that say so
}

// An entry keeps a tool with the bytes that it was made of: as long as they
// stay the same, so does the tool.
type manifestEntry struct {
	raw  json.RawMessage
	sum  string // digest of raw
	tool *tool.Tool
}

// upstreamTool is a tool as a server lists it.
type upstreamTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema"`
	Annotations hints           `json:"annotations"`
}

// manifest makes tools of a list, of which none is offered yet: judge says
// which are. What cannot be used is left out alone, and noted in r. Tools that have not changed since old are the same.
func (s *upstream) manifest(r *record, old *manifest) *manifest {
	m := &manifest{of: r, made: make(map[string]*manifestEntry, len(r.tools))}
	r.Unfit = nil
	for i, got := range s.entries(r, old) {
		if got.err == nil && m.made[got.name] != nil {
			got.err = errors.New("is listed twice")
		}
		if got.err != nil {
			m.leftOut = append(m.leftOut, fmt.Sprintf("%s: %v", describeName(got.name, i), got.err))
			r.Unfit = append(r.Unfit, i)
			continue
		}
		m.made[got.name] = got.entry
		m.order = append(m.order, got.name)
	}
	r.Checked = s.o.Version
	return m
}

// An attemptedEntry is what became of one tool of a list.
type attemptedEntry struct {
	name  string
	entry *manifestEntry
	err   error
}

// entries makes a tool of each of the list, on all processors.
func (s *upstream) entries(r *record, old *manifest) []attemptedEntry {
	out := make([]attemptedEntry, len(r.tools))
	fit := r.fit(s.o.Version)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(out)/entryChunk+1) {
		all.Go(func() {
			for {
				end := int(next.Add(entryChunk))
				if end-entryChunk >= len(out) {
					return
				}
				for i := end - entryChunk; i < min(end, len(out)); i++ {
					out[i] = s.attemptEntry(r.tools[i], old, fit != nil && fit[i])
				}
			}
		})
	}
	all.Wait()
	return out
}

// attemptEntry makes a tool of what was listed. Of one that is fit it is known
// that its schemas compile.
func (s *upstream) attemptEntry(raw json.RawMessage, old *manifest, fit bool) (got attemptedEntry) {
	var ut upstreamTool
	got.err = misread(json.Unmarshal(raw, &ut))
	got.name = ut.Name
	if got.err == nil && ut.Name == "" {
		got.err = errors.New("has no name")
	}
	if got.err == nil {
		got.entry, got.err = s.entry(raw, ut, old, fit)
	}
	return got
}

// misread says in words for people what is wrong with the types in a JSON value.
func misread(err error) error {
	var bad *json.UnmarshalTypeError
	if errors.As(err, &bad) {
		return fmt.Errorf("%s is a JSON %s, which it may not be", orElse(bad.Field, "the whole"), bad.Value)
	}
	return err
}

func describeName(name string, i int) string {
	if name == "" {
		return fmt.Sprintf("the tool at place %d", i+1)
	}
	return fmt.Sprintf("tool %.60q", name)
}

func (s *upstream) entry(raw json.RawMessage, ut upstreamTool, old *manifest, fit bool) (*manifestEntry, error) {
	if old != nil {
		if e := old.made[ut.Name]; e != nil && bytes.Equal(e.raw, raw) {
			return e, nil
		}
	}
	t, err := s.tool(ut, fit)
	if err != nil {
		return nil, err
	}
	return &manifestEntry{raw, digest(raw), t}, nil
}

// tool makes one of ours of one of theirs; see attemptEntry for fit.
func (s *upstream) tool(ut upstreamTool, fit bool) (*tool.Tool, error) {
	input, err := inputSchema(ut.Input, fit)
	if err != nil {
		return nil, err
	}
	override := s.Overrides[ut.Name]
	for property, role := range override.Roles {
		if input, err = input.WithRole(property, role); err != nil {
			return nil, fmt.Errorf("the operator's role for %s: %w", property, err)
		}
	}
	_, verb := verbEffect(s.Name, ut.Name)
	d := tool.Definition{
		Name: s.owner() + "." + ut.Name, Module: s.owner(), Title: printable(orElse(ut.Title, ut.Annotations.Title)),
		Description: cut(printable(ut.Description), maxDescription), Input: input, Category: tool.Custom,
		Effect: ut.Annotations.effect(s.Name, ut.Name, s.Trusted), Timeout: s.startTimeout() + s.callTimeout() + askPatience,
		SearchLike: verb == "search", Trusted: s.Trusted,
	}
	if strings.TrimSpace(d.Description) == "" {
		d.Description = orElse(d.Title, "The tool "+ut.Name) + " (of the MCP server " + s.Name + ", which does not describe it)."
	}
	if !(s.Trusted && says(ut.Annotations.OpenWorld, false)) {
		d.Needs = tool.NeedsNetwork // for all that we know
	}
	if len(ut.Output) > 0 && string(ut.Output) != "null" {
		if d.Output, err = usable(ut.Output, fit); err != nil {
			return nil, fmt.Errorf("outputSchema: %w", err)
		}
	}
	override.apply(&d)
	d.ParallelSafe = d.Effect == tool.Reads
	d.HeedsContext = true // a call waits for the server or for its context, whichever ends first
	headers, err := bindings(d.Input.Raw())
	if err != nil {
		return nil, fmt.Errorf("inputSchema: %w", err)
	}
	t := &tool.Tool{Definition: d, Handle: s.handler(ut.Name, headers)}
	return t, tool.Check(t)
}

// inputSchema reads the schema of arguments; a server that sends none takes
// any object.
func inputSchema(raw json.RawMessage, fit bool) (*schema.Schema, error) {
	if len(raw) == 0 || string(raw) == "null" {
		raw = emptyObject
	}
	if !fit {
		var top struct {
			Type json.RawMessage `json:"type"`
		}
		if err := json.Unmarshal(raw, &top); err != nil {
			return nil, fmt.Errorf("inputSchema: is not an object")
		}
		if top.Type != nil && string(top.Type) != `"object"` {
			return nil, fmt.Errorf("inputSchema: the type is %s; arguments are objects", cut(string(top.Type), 60))
		}
	}
	in, err := usable(raw, fit)
	if err != nil {
		return nil, fmt.Errorf("inputSchema: %w", err)
	}
	return in, nil
}

// usable returns a schema that compiles, which is looked at only if it is not
// known to be fit.
func usable(raw json.RawMessage, fit bool) (*schema.Schema, error) {
	s, err := schema.Parse(raw)
	if err == nil && !fit {
		err = s.Check()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// cut returns at most n bytes of s.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// pages reads a list, whose pages hold it under key, to its end, or fails.
func pages(key string, get func(cursor string) (json.RawMessage, error)) ([]json.RawMessage, error) {
	var all []json.RawMessage
	seen := map[string]bool{}
	size, cursor := 0, ""
	for range maxPages {
		raw, err := get(cursor)
		if err != nil {
			return nil, err
		}
		items, next, err := readPage(raw, key)
		if err != nil {
			return nil, fmt.Errorf("the list of %s cannot be read: %w", key, err)
		}
		all = append(all, items...)
		size += len(raw)
		switch {
		case len(all) > maxTools:
			return nil, fmt.Errorf("the server lists more than %d %s", maxTools, key)
		case size > maxList:
			return nil, fmt.Errorf("the list of %s has more than %d MiB", key, maxList>>20)
		case next == "":
			return all, nil
		case seen[next]:
			return nil, fmt.Errorf("the list of %s runs in a circle: the cursor %.60q came twice", key, next)
		}
		cursor = next
		seen[cursor] = true
	}
	return nil, fmt.Errorf("the list of %s has more than %d pages", key, maxPages)
}

func readPage(raw json.RawMessage, key string) (items []json.RawMessage, next string, err error) {
	var p map[string]json.RawMessage
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, "", err
	}
	if list := p[key]; list != nil {
		if err := json.Unmarshal(list, &items); err != nil {
			return nil, "", err
		}
	}
	if c := p["nextCursor"]; c != nil {
		err = json.Unmarshal(c, &next)
	}
	return items, next, err
}
