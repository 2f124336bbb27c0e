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
	"github.com/helve-ai/helve/skill"
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
	// Unanswered returns the MCP servers whose tools are not known yet, of which
	// the caller may know. Nil: there are none.
	Unanswered func(tool.Origin) []string

	// Around names the tools that were usually called before and after the named
	// one, whoever may see them. Nil: nothing is learnt from usage.
	Around func(ctx context.Context, name string) (before, after []string)

	// Ask asks the user on whose behalf a call is made, and waits for the
	// answer until ctx ends. ErrNobody comes at once. Nil: nobody can be asked.
	Ask func(ctx context.Context, c *tool.Call, q Question) (Reply, error)

	// Delegates returns the agents to whom a caller may give work, and Delegate
	// has them do it, at the same time; what it returns is in the order of the
	// work. Its error means that it was not begun, or that ctx ended. Nil: there
	// are no agents.
	Delegates func(from tool.Origin) []Delegate
	Delegate  func(ctx context.Context, c *tool.Call, work []Work) ([]Done, error)

	// Successors returns the agents to whom a caller may hand its conversation
	// over, and Switch does that, as soon as the call has been answered. Nil:
	// there are no agents.
	Successors func(from tool.Origin) []Delegate
	Switch     func(ctx context.Context, c *tool.Call, agent string) error

	// Apps are those that this app may call, and CallApp has one of them answer
	// an input, on behalf of a call.
	Apps    []Callable
	CallApp func(ctx context.Context, c *tool.Call, name string, input json.RawMessage) (*tool.Result, error)

	// Skills are those that the app declares; UseSkill notes the one that a
	// session has loaded ("": none any more), and Capabilities returns those
	// that an agent has from the start.
	Skills       []Skill
	UseSkill     func(ctx context.Context, from tool.Origin, command string) error
	Capabilities func(from tool.Origin) []string

	// Served are the skills that clients may read.
	Served []*skill.Folder

	// ServerSkills returns the skills of upstream servers that a caller may
	// load, as far as they are known; LoadSkill loads one of them, or any other
	// by its address, for the session, and returns its instructions, which are
	// the server's words. ReadSkill returns a file of the one that is loaded.
	// Nil: the skills of no server may be loaded.
	ServerSkills func(from tool.Origin) []ServerSkill
	LoadSkill    func(ctx context.Context, c *tool.Call, name string) (text string, err error)
	ReadSkill    func(ctx context.Context, c *tool.Call, name, file string) ([]byte, error)

	// ActingOn returns the skill of a server that a caller has loaded, or one of
	// those above it; a nil entry: none has. Nil: the skills of no server may be
	// loaded.
	ActingOn func(ctx context.Context, from tool.Origin) (server string, entry *skill.Entry, err error)

	// Granted returns what the skills that a caller has loaded let its commands
	// have. Nil: nothing.
	Granted func(from tool.Origin) Grant

	// Suspect says why a call may be another's doing: content from outside that
	// its session has met may have led to it. "": nothing speaks against it.
	// Nil: nobody knows.
	Suspect func(context.Context, *tool.Call) string
}

// FinalTool is the tool by which an agent gives its answer and ends its work.
const FinalTool = "attempt_completion"

// A Toolset is an open module.
type Toolset struct {
	Tools []*tool.Tool
	// Judge is the module's default policy for its own tools, asked where the
	// app's rules are silent. Nil: it has none.
	Judge func(context.Context, *tool.Call) (tool.Verdict, string)
	// Sees says who may know of the module's tools and call them, among those
	// whom the app lets. Nil: all of them.
	Sees func(tool.Origin, *tool.Tool) bool
	// Tell returns what an agent is told of the module before a conversation,
	// in the words of its prompt. It is asked for every turn, and must return
	// the same while nothing has changed. Nil: nothing.
	Tell func(ctx context.Context, from tool.Origin) (Told, error)
	// Recall returns what is known: goal, tasks, facts. It is asked only when
	// an agent is told of the memory, which is not every turn. Nil: nothing.
	Recall func(ctx context.Context, from tool.Origin) (string, error)
	Close  func() error // may be nil
}

// Told is what a module tells an agent, by the sections of the prompt (SPEC L2).
type Told struct {
	Remembering string // how memory is used
	Hints       string
	Specialists string // to whom the agent may delegate
	Skills      string // that there are, and those that are loaded
	Channels    string
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
