package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/tool"
)

// moduleAliases are names that app files give to what is several modules here,
// or has another name. Each stands for those of its modules that there are.
var moduleAliases = map[string][]string{
	"agent_spawn":     {"agents"},
	"context_builder": {"discovery", "tasks", "ask", "skills", "apps", "watch"},
	"cron_native":     {"schedule"},
}

// A catalogue is what the modules offer, by which names in a file are judged.
type catalogue struct {
	modules []string                // in order
	tools   map[string][]*tool.Tool // by module; a module that cannot be described has none
	servers []string
}

func newCatalogue(modules []*module.Module, root *node) *catalogue {
	c := &catalogue{modules: []string{"mcp"}, tools: map[string][]*tool.Tool{}}
	for _, m := range modules {
		c.modules = append(c.modules, m.Name)
		if tools, err := describe(m, nil); err == nil {
			c.tools[m.Name] = tools
		}
	}
	if c.tools["mcp"] == nil {
		c.tools["mcp"] = toolsOfMCP()
	}
	slices.Sort(c.modules)
	c.modules = slices.Compact(c.modules)
	for _, f := range root.get("tools", "mcp_servers").members() {
		c.servers = append(c.servers, f.key)
	}
	return c
}

// toolsOfMCP returns the tools that the module mcp has of its own.
var toolsOfMCP = sync.OnceValue(func() []*tool.Tool {
	ups := mcpbridge.OpenUpstreams(context.Background(), nil, mcpbridge.UpstreamOptions{})
	defer ups.Close()
	tools, err := describe(ups.Module(), nil)
	if err != nil {
		panic(err) // of no servers: nothing is opened that could fail
	}
	return tools
})

// describe opens a module with a configuration, to be looked at only, and
// returns its tools. A module that fails in this is an error.
func describe(m *module.Module, config json.RawMessage) (tools []*tool.Tool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	ts, err := m.Open(context.Background(), &module.Host{Log: slog.New(slog.DiscardHandler), Now: time.Now}, config)
	if err != nil {
		return nil, err
	}
	if ts.Close != nil {
		defer ts.Close()
	}
	return ts.Tools, nil
}

// resolve returns the modules for which a name stands; none if it is not known.
func (c *catalogue) resolve(name string) []string {
	if server, ok := strings.CutPrefix(name, "mcp."); ok {
		if slices.Contains(c.servers, server) {
			return []string{name}
		}
		return nil
	}
	if slices.Contains(c.modules, name) {
		return []string{name}
	}
	var out []string
	for _, m := range moduleAliases[name] {
		if slices.Contains(c.modules, m) {
			out = append(out, m)
		}
	}
	return out
}

// names returns every name that resolve knows, for suggestions.
func (c *catalogue) names() []string {
	out := slices.Clone(c.modules)
	for _, s := range c.servers {
		out = append(out, "mcp."+s)
	}
	return out
}

// actions returns the actions of modules, and whether they are known.
func (c *catalogue) actions(modules []string) (names []string, known bool) {
	for _, m := range modules {
		tools, ok := c.tools[m]
		if !ok {
			return nil, false
		}
		for _, t := range tools {
			names = append(names, t.Action())
		}
	}
	return names, true
}

// action returns the action of a module that is meant by a name: itself, its
// full name, or an alias that the tool has; "" if there is none. Names with *
// mean themselves if they match any action.
func (c *catalogue) action(moduleName, name string) string {
	tools, known := c.tools[moduleName]
	if !known {
		return name
	}
	for _, t := range tools {
		if t.Action() == name || t.Name == name {
			return t.Action()
		}
		if strings.Contains(name, "*") && (matchName(name, t.Action()) || matchName(name, t.Name)) {
			return name
		}
	}
	for _, t := range tools {
		if slices.ContainsFunc(t.Aliases, func(a string) bool { return strings.EqualFold(a, name) }) {
			return t.Action()
		}
	}
	return ""
}

// matchName matches names: * stands for any characters.
func matchName(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok || len(parts) == 1 {
		return ok && s == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[last])
}

// matches reports whether a pattern of full names matches a tool that may exist.
func (c *catalogue) matches(pattern string) bool {
	if rest, ok := strings.CutPrefix(pattern, "mcp."); ok {
		server, _, ofServer := strings.Cut(rest, ".")
		if strings.Contains(server, "*") || ofServer && slices.Contains(c.servers, server) {
			return true
		}
	}
	for _, tools := range c.tools {
		if slices.ContainsFunc(tools, func(t *tool.Tool) bool { return matchName(pattern, t.Name) }) {
			return true
		}
	}
	if strings.HasPrefix(pattern, "*") {
		return true // a server's tools
	}
	for _, m := range c.modules { // whose tools are not known
		if _, known := c.tools[m]; !known && m != "mcp" && strings.HasPrefix(pattern, m+".") {
			return true
		}
	}
	return false
}

// byAlias returns the name of the tool that has an alias, "" if none has.
func (c *catalogue) byAlias(alias string) string {
	for _, m := range c.modules {
		for _, t := range c.tools[m] {
			if slices.Contains(t.Aliases, alias) {
				return t.Name
			}
		}
	}
	return ""
}

// toolNames returns the full names of all tools that are known.
func (c *catalogue) toolNames() []string {
	var out []string
	for _, m := range c.modules {
		for _, t := range c.tools[m] {
			out = append(out, t.Name)
		}
	}
	return out
}

// resolveNames replaces the aliases of modules and actions in a Config that
// was checked by the names that the other rooms know.
func (l *loader) resolveNames(c *Config) {
	k := l.catalogue
	for i := range c.Agents {
		c.Agents[i].Modules = k.uses(c.Agents[i].Modules)
	}
	c.Runtime.DirectModules = k.expand(c.Runtime.DirectModules)
	p := &c.Tools.Capabilities
	p.HiddenModules = k.expand(p.HiddenModules)
	for _, rules := range []*[]Rule{&p.Grant, &p.Approve, &p.Deny, &p.Hidden} {
		*rules = k.rules(*rules)
	}
	k.blocks(c.Tools.Modules)
	for name, d := range c.Tools.Apps {
		d.May = l.called[name].catalogue.rules(d.May)
		c.Tools.Apps[name] = d
	}
	for name, limit := range p.RateLimits {
		if moduleAliases[name] == nil {
			continue
		}
		delete(p.RateLimits, name)
		for _, m := range k.resolve(name) {
			p.RateLimits[m] = limit
		}
	}
}

func (c *catalogue) expand(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, c.resolve(n)...)
	}
	return out
}

// only returns those of the actions that a module has, by its own names.
func (c *catalogue) only(moduleName string, actions []string) []string {
	var out []string
	for _, a := range actions {
		if own := c.action(moduleName, a); own != "" {
			out = append(out, own)
		}
	}
	return out
}

func (c *catalogue) uses(uses []ModuleUse) []ModuleUse {
	var out []ModuleUse
	for _, u := range uses {
		for _, m := range c.resolve(u.Module) {
			own := ModuleUse{Module: m, Actions: c.only(m, u.Actions)}
			if u.Actions != nil && own.Actions == nil {
				if len(u.Actions) > 0 {
					continue
				}
				own.Actions = []string{}
			}
			out = append(out, own)
		}
	}
	return out
}

func (c *catalogue) rules(rules []Rule) []Rule {
	var out []Rule
	for _, r := range rules {
		if r.Module == "" || strings.Contains(r.Module, "*") {
			out = append(out, r)
			continue
		}
		for _, m := range c.resolve(r.Module) {
			own := Rule{Module: m, Actions: c.only(m, r.Actions), Reason: r.Reason}
			if m == "mcp" {
				own.Actions = r.Actions // which may be those of its servers' tools
			}
			if len(r.Actions) == 0 || len(own.Actions) > 0 {
				out = append(out, own)
			}
		}
	}
	return out
}

// blocks spreads the block of an alias over its modules, and names actions in
// constraints as their modules do.
func (c *catalogue) blocks(blocks map[string]ModuleBlock) {
	for name, b := range blocks {
		delete(blocks, name)
		for _, m := range c.resolve(name) {
			own := b
			own.Overrides = map[string]Costing{}
			for action, costing := range b.Overrides {
				if known := c.action(m, action); known != "" {
					own.Overrides[known] = costing
				}
			}
			own.Constraints.BlockedActions = c.only(m, b.Constraints.BlockedActions)
			if b.Constraints.AllowedActions != nil {
				own.Constraints.AllowedActions = append([]string{}, c.only(m, b.Constraints.AllowedActions)...)
			}
			blocks[m] = own
		}
	}
}
