// Package module defines families of tools that are configured and opened together.
package module

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/sandbox"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// A Module describes a family of tools.
type Module struct {
	Name   string         // as it appears in an app's YAML, and before the dot of its tools' names
	Doc    string         // one sentence, then as much as is useful
	Config *schema.Schema // of the app's config; a property "constraints" describes the module's own constraints
	Always bool           // open in every app, declared or not

	open func(context.Context, *Host, json.RawMessage) (*Toolset, error)
}

// A Host is all that a module may touch of the world: no ambient files,
// network, clock or environment. A module that is opened only to be described
// is given a Host without any of it, and must not use it before a call.
type Host struct {
	Log     *slog.Logger
	Root    *root.Root      // the only folder
	HTTP    *http.Client    // the only way out
	Store   store.Store     // the module's own part of it
	Sandbox *sandbox.Runner // the only way to run a program; nil refuses
	App     string          // the app's id
	Now     func() time.Time
	Secret  func(name string) (string, error)
	Publish func(tools ...*tool.Tool) error // replaces the tools that the module offers

	// Checkpoints keeps what files were before calls changed them. Nil: nothing does.
	Checkpoints *checkpoint.Keeper

	// Call runs a call through the pipeline; make it with the caller's
	// tool.Call.Child, so that it is judged as the caller's own.
	Call func(context.Context, *tool.Call) (*tool.Result, error)
	// Explain says what would become of a call, so that a target that the
	// caller may not call is refused when the request is made.
	Explain func(context.Context, *tool.Call) pipeline.Explanation
	Tools   func() *tool.Set
	Visible func(tool.Origin, *tool.Tool) bool // may this caller know of the tool?
	Search  func(context.Context, search.Query) ([]search.Hit, error)
}

// A Toolset is an open module.
type Toolset struct {
	Tools []*tool.Tool
	// Judge is the module's default policy for its own tools, asked where the
	// app's rules are silent. Nil: it has none.
	Judge func(context.Context, *tool.Call) (tool.Verdict, string)
	Close func() error // may be nil
}

// New returns a Module. Its configuration is a C, which starts as defaults;
// a key that C lacks is an error, and so is a C whose Validate method says so.
func New[C any](name, doc string, defaults C, open func(context.Context, *Host, C) (*Toolset, error)) *Module {
	initial, err := json.Marshal(defaults)
	if err != nil {
		panic(fmt.Sprintf("module %s: %v", name, err))
	}
	decode := func(raw json.RawMessage) (c C, err error) {
		for _, data := range [][]byte{initial, raw} { // anew, lest two instances share a slice
			if err := decodeStrictly(data, &c); err != nil {
				return c, err
			}
		}
		if v, ok := any(c).(interface{ Validate() error }); ok {
			err = v.Validate()
		}
		return c, err
	}
	return &Module{Name: name, Doc: doc, Config: schema.For[C]().Optional(),
		open: func(ctx context.Context, h *Host, raw json.RawMessage) (*Toolset, error) {
			c, err := decode(raw)
			if err != nil {
				return nil, err
			}
			return open(ctx, h, c)
		}}
}

func decodeStrictly(data []byte, v any) error {
	if len(data) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// Open opens the module with its configuration, in JSON; none means the defaults.
func (m *Module) Open(ctx context.Context, h *Host, config json.RawMessage) (*Toolset, error) {
	ts, err := m.open(ctx, h, config)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", m.Name, err)
	}
	for _, t := range ts.Tools {
		if t.Module == "" {
			t.Module = m.Name
		}
	}
	return ts, nil
}

// Describe returns the tools that the module offers with its default
// configuration, for reference only: they cannot be called.
func (m *Module) Describe(ctx context.Context) ([]*tool.Tool, error) {
	ts, err := m.Open(ctx, &Host{Log: slog.New(slog.DiscardHandler), Now: time.Now}, nil)
	if err != nil {
		return nil, err
	}
	if ts.Close != nil {
		defer ts.Close()
	}
	return ts.Tools, nil
}
