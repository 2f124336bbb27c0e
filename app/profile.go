package app

import (
	"slices"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// grants reports whether an agent's modules and profile let it know of a tool
// (SPEC T5). An agent that names neither sees all; meta-tools are for everyone,
// since they reach only what the agent may call.
func (a *Agent) grants(t *tool.Tool) bool {
	if t.Meta && !slices.Contains(a.Profile, "-"+t.Name) {
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

// inProfile reads a profile: groups grant, +tool adds, -tool takes away; the
// last two beat the groups. A profile without a group grants what is not taken away.
func (a *Agent) inProfile(t *tool.Tool) bool {
	groups, granted := false, false
	for _, p := range a.Profile {
		switch {
		case p == "+"+t.Name:
			return true
		case p == "-"+t.Name:
			return false
		case !strings.HasPrefix(p, "+") && !strings.HasPrefix(p, "-"):
			groups = true
			granted = granted || p == string(t.GroupName())
		}
	}
	return granted || !groups
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
