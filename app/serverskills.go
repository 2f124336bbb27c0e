package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// heldBucket keeps the entry from which a session loaded a skill of a server:
// only files that it lists may be read.
const heldBucket = store.Bucket[json.RawMessage]("entries of skills in use")

// lendsSkills reports whether the skills of any server may be loaded.
func (c *Config) lendsSkills() bool {
	for _, s := range c.Tools.MCPServers {
		if s.Skills && !s.Disabled {
			return true
		}
	}
	return false
}

// lendSkills gives a host the skills of the servers whose skills may be loaded.
func (a *App) lendSkills(h *module.Host) {
	if a.Config.lendsSkills() {
		h.ServerSkills, h.LoadSkill, h.ReadSkill, h.ActingOn = a.serverSkills, a.loadSkill, a.readSkill, a.actingOn
	}
}

// ofServer returns the server of a skill, and its name there; not ok: it is the
// app's own.
func ofServer(name string) (server, own string, ok bool) { return strings.Cut(name, ":") }

func (a *App) showsServer(from tool.Origin) func(server string) bool {
	return func(server string) bool { return mcpbridge.Shown(a.Visible, from, server) }
}

func (a *App) serverSkills(from tool.Origin) (all []module.ServerSkill) {
	for _, s := range a.ups.Skills(a.showsServer(from)) {
		all = append(all, module.ServerSkill{Name: s.Server + ":" + s.Name, Description: s.Description})
	}
	return all
}

// loadSkill loads a skill of a server for a session.
func (a *App) loadSkill(ctx context.Context, c *tool.Call, name string) (string, error) {
	server, own, _ := ofServer(name)
	entry, text, err := a.ups.LoadSkill(ctx, server, own, a.showsServer(c.From))
	if err != nil {
		return "", err
	}
	raw, err := tool.Encode(entry)
	if err != nil {
		return "", err
	}
	return text, a.noteSkill(ctx, c.From, name, raw)
}

// readSkill reads a file of the skill of a server that a session has loaded.
func (a *App) readSkill(ctx context.Context, c *tool.Call, name, file string) ([]byte, error) {
	loaded, err := a.skillOf(c.From)
	if err != nil {
		return nil, err
	}
	if loaded != name {
		return nil, tool.Errorf(tool.CodeValidation, "the skill %.100q is not loaded: load it first, with use_skill", name)
	}
	entry, err := a.heldEntry(ctx, c.From)
	if err != nil {
		return nil, err
	}
	server, _, _ := ofServer(name)
	return a.ups.ReadSkill(ctx, server, entry, file, a.showsServer(c.From))
}

// heldEntry returns the entry from which a session loaded the skill of a server.
func (a *App) heldEntry(ctx context.Context, from tool.Origin) (*skill.Entry, error) {
	var raw json.RawMessage
	if err := a.quietly("app").View(ctx, func(r store.Reader) (err error) {
		raw, err = heldBucket.Get(r, skillKey(from))
		return err
	}); err != nil {
		return nil, fmt.Errorf("what was loaded of the skill is not known any more: %w", err)
	}
	return skill.Parse(raw)
}

// judgeOnSkill has calls asked about that are made while a skill of a server is
// loaded, and may be its words' doing: those that run a program, and those that
// read resources of another server. Of its own, what lies in the skill's folder
// and is not listed is not read.
func (a *App) judgeOnSkill(ctx context.Context, c *tool.Call) (tool.Verdict, string) {
	reads := c.Tool != nil && c.Tool.Name == mcpbridge.ReadTool
	if c.Tool == nil || !reads && !c.Tool.Needs.Has(tool.NeedsProcess) {
		return tool.Silent, ""
	}
	server, entry, err := a.actingOn(ctx, c.From)
	switch {
	case err != nil:
		return tool.Deny, fmt.Sprintf("it cannot be told which skill is loaded: %v", err)
	case entry == nil:
		return tool.Silent, ""
	case !reads:
		return tool.Ask, fmt.Sprintf("it runs a program while a skill of the MCP server %s is loaded (%.100s)", server, entry.URI)
	}
	var in struct{ Server, URI string }
	switch err := json.Unmarshal(c.Args, &in); {
	case err != nil:
		return tool.Deny, fmt.Sprintf("its arguments cannot be read: %v", err)
	case in.Server != server:
		return tool.Ask, fmt.Sprintf("it reads of the MCP server %.100s while a skill of the MCP server %s is loaded (%.100s)", in.Server, server, entry.URI)
	case entry.Within(in.URI) && !slices.ContainsFunc(entry.Files, func(f skill.Resource) bool { return f.URI == in.URI }):
		return tool.Deny, fmt.Sprintf("%.200q is no file of the skill that is loaded", in.URI)
	}
	return tool.Silent, ""
}

// actingOn returns the skill of a server that a caller has loaded, or one of
// those above it, and the server; nil: none has.
func (a *App) actingOn(ctx context.Context, from tool.Origin) (server string, _ *skill.Entry, _ error) {
	if from.Kind == tool.KindMCP || from.Kind == tool.KindCLI || from.Kind.Daemon() {
		return "", nil, nil // it is no agent, and loads none
	}
	for at := &from; at != nil; {
		if up := a.opts.above; up != nil && at.App == up.app.Config.App.ID {
			return up.app.actingOn(ctx, *at)
		}
		name, err := a.skillOf(*at)
		if err != nil {
			return "", nil, err
		}
		if server, _, ok := ofServer(name); ok {
			entry, err := a.heldEntry(ctx, *at)
			return server, entry, err
		}
		if at.Under == nil {
			break
		}
		at = &at.Under.By
	}
	return "", nil, nil
}
