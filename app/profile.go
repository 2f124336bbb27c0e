package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// grants reports whether an agent's modules and profile let it know of a tool
// (SPEC T5). An agent that names neither sees all; meta-tools are for everyone,
// since they reach only what the agent may call.
func (a *Agent) grants(t *tool.Tool) bool {
	if t.Meta && !slices.ContainsFunc(a.Profile, func(p string) bool { return strings.HasPrefix(p, "-") && names(p[1:], t) }) {
		return true
	}
	return a.hasModule(t) && a.inProfile(t)
}

func (a *Agent) hasModule(t *tool.Tool) bool {
	if len(a.Modules) == 0 {
		return true
	}
	m := t.ModuleName()
	for _, use := range a.Modules {
		if use.Module == m || strings.HasPrefix(m, use.Module+".") {
			return use.Actions == nil || slices.Contains(use.Actions, t.Action())
		}
	}
	return false
}

// inProfile reads a profile: groups grant, +NAME adds, -NAME takes away; the
// last two beat the groups, and the name of a tool beats what names several of
// them: of those what takes away counts. A profile that only takes away grants
// the rest.
func (a *Agent) inProfile(t *tool.Tool) bool {
	grants, granted, taken := false, false, false
	for _, p := range a.Profile {
		name, adds := strings.CutPrefix(p, "+")
		name, takes := strings.CutPrefix(name, "-")
		switch {
		case (adds || takes) && names(name, t):
			return adds
		case takes:
			taken = taken || covers(name, t)
		default:
			grants = true
			granted = granted || p == string(t.GroupName()) || adds && covers(name, t)
		}
	}
	return !taken && (granted || !grants)
}

// names reports whether a name in a profile is a tool's, in whatever form
// clients are told it.
func names(name string, t *tool.Tool) bool {
	return name == t.Name || name == tool.Wire(t.Name)
}

// covers reports whether a tool is among those that a name in a profile stands
// for: a group, a module, a server (mcp.SERVER), or whatever its * matches.
func covers(name string, t *tool.Tool) bool {
	name = strings.ReplaceAll(name, "__", ".")
	return name == string(t.GroupName()) || strings.HasPrefix(t.Name, name+".") || strings.Contains(name, "*") && matchName(name, t.Name)
}

// A Profile bounds what a caller may use of an app: rights are what both allow.
type Profile struct {
	text  string
	agent *Agent // whose modules and profile hold; nil: nothing is allowed
}

// Profile reads a profile: the id of one of the app's agents, whose modules and
// profile then hold, or what agents have as their profile, separated by commas:
// groups, +NAME and -NAME. A name of a group is never an agent's. The error
// says what is neither, and what names nothing, so that it takes nothing away.
func (c *Config) Profile(text string) (*Profile, error) {
	if a := c.agent(text); a != nil && !isGroup(text) {
		return &Profile{text, a}, nil
	}
	items, err := ProfileItems(text)
	if err != nil {
		return nil, fmt.Errorf("%w; or the id of an agent of the app %s", err, c.App.ID)
	}
	for _, it := range items {
		if name := strings.TrimLeft(it, "+-"); name != it && c.known != nil && !c.known.covered(name) {
			err := fmt.Errorf("profile %q: %q names no tool, module or server of the app %s", text, it, c.App.ID)
			if near := nearest(name, slices.Concat(c.known.toolNames(), c.known.names())); near != "" {
				err = fmt.Errorf("%w; %s", err, near)
			}
			return nil, err
		}
	}
	return &Profile{text, &Agent{Profile: items}}, nil
}

// ProfileItems reads the items of a profile, separated by commas or spaces.
func ProfileItems(text string) ([]string, error) {
	items := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	if len(items) == 0 {
		return nil, fmt.Errorf("profile %q: it is empty", text)
	}
	for _, it := range items {
		if named := strings.TrimLeft(it, "+-"); named != it && len(named) == len(it)-1 && named != "" || isGroup(it) {
			continue
		}
		return nil, fmt.Errorf("profile %q: %q is neither a group (%s) nor +NAME or -NAME", text, it, groupNames())
	}
	return items, nil
}

// covered reports whether a name in a profile may stand for a tool.
func (c *catalogue) covered(name string) bool {
	dotted := strings.ReplaceAll(name, "__", ".")
	return isGroup(dotted) || len(c.resolve(dotted)) > 0 || c.matches(dotted) ||
		slices.ContainsFunc(c.toolNames(), func(n string) bool { return name == tool.Wire(n) })
}

func isGroup(name string) bool { return slices.Contains(tool.Groups(), tool.Group(name)) }

func groupNames() string {
	var names []string
	for _, g := range tool.Groups() {
		names = append(names, string(g))
	}
	return strings.Join(names, ", ")
}

// allows reports whether a caller that is bound to a profile ("": to none) may
// know of a tool. What cannot be read allows nothing.
func (a *App) allows(profile string, t *tool.Tool) bool {
	if profile == "" {
		return true
	}
	known, ok := a.profiles.Load(profile)
	if !ok {
		p, err := a.Config.Profile(profile)
		if err != nil {
			p = &Profile{text: profile}
		}
		known, _ = a.profiles.LoadOrStore(profile, p)
	}
	agent := known.(*Profile).agent
	return agent != nil && agent.grants(t)
}

// agent returns the agent of that id, nil if there is none.
func (c *Config) agent(id string) *Agent {
	for i := range c.Agents {
		if c.Agents[i].ID == id {
			return &c.Agents[i]
		}
	}
	return nil
}
