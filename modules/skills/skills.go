// Package skills is the module by which agents load instructions that were written for one kind of work.
package skills

import (
	"context"
	"fmt"
	"strings"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/tool"
)

// Module is the skills module. It is open in every app, and seen by agents
// where skills are declared.
var Module = always(module.New("skills", "Load the skills that the app declares under dev.skills: instructions, and the tools that they need.", Config{}, open))

func always(m *module.Module) *module.Module { m.Always = true; return m }

// Config configures the module. There is nothing to configure.
type Config struct{}

type skills struct{ host *module.Host }

func open(_ context.Context, h *module.Host, _ Config) (*module.Toolset, error) {
	s := &skills{h}
	tools := []*tool.Tool{s.use()}
	for _, k := range h.Skills {
		tools = append(tools, s.shortcut(k))
	}
	return &module.Toolset{Tools: tools, Sees: s.sees, Tell: s.tell}, nil
}

// sees shows the tools to agents of the app, if there are skills.
func (s *skills) sees(from tool.Origin, _ *tool.Tool) bool {
	return len(s.host.Skills) > 0 && s.host.UseSkill != nil && from.Agent != "" && (from.Kind == tool.KindModel || from.Kind == "")
}

func def(name, description string, aliases ...string) tool.Definition {
	return tool.Definition{Name: name, Module: "skills", Description: description, Effect: tool.Reads, Category: tool.AgentWork,
		Group: tool.GroupAgent, Aliases: aliases, Meta: true, MaxResult: 100_000}
}

type useInput struct {
	Name string `json:"name" jsonschema:"of the skill; an empty text ends the one that is loaded"`
}

func (s *skills) use() *tool.Tool {
	d := def("use_skill", "Load a skill and return its instructions; an empty name ends it.", "Skill", "invoke_skill", "load_skill")
	d.Help = "While a skill is loaded that names its tools, only those can be called, besides the tools by which tools are found. Another skill takes its place."
	return tool.NewFor(d, func(ctx context.Context, c *tool.Call, in useInput) (string, error) {
		return s.load(ctx, c, strings.TrimPrefix(in.Name, "/"))
	})
}

// shortcut is the tool that loads one skill (SPEC I4).
func (s *skills) shortcut(k module.Skill) *tool.Tool {
	return tool.NewFor(def("skills."+k.Command, "Skill: "+strings.TrimSuffix(k.Description, ".")+"."),
		func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) { return s.load(ctx, c, k.Command) })
}

func (s *skills) load(ctx context.Context, c *tool.Call, name string) (string, error) {
	if name == "" {
		return "No skill is loaded any more.", s.host.UseSkill(ctx, c.From, "")
	}
	var names []string
	for _, k := range s.host.Skills {
		if k.Command == name {
			return Instructions(k), s.host.UseSkill(ctx, c.From, name)
		}
		names = append(names, k.Command)
	}
	return "", tool.Errorf(tool.CodeValidation, "there is no skill %q; there are %s", name, strings.Join(names, ", "))
}

// Instructions returns a skill as an agent reads it.
func Instructions(k module.Skill) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Skill %s\n\n%s\n", k.Command, strings.TrimSpace(k.Text))
	if k.Tools != nil {
		fmt.Fprintf(&b, "\nWhile it is loaded these are the tools that can be called: %s. use_skill with an empty name ends it.\n", strings.Join(k.Tools, ", "))
	}
	if k.NeedsNet {
		b.WriteString("\nWhile it is loaded commands reach the network.\n")
	}
	if len(k.PassEnv) > 0 {
		fmt.Fprintf(&b, "\nWhile it is loaded commands see these variables, where they are set and safe to pass: %s.\n", strings.Join(k.PassEnv, ", "))
	}
	if len(k.Withheld) > 0 {
		fmt.Fprintf(&b, "\nCommands do not see %s: what looks like a credential is not passed.\n", strings.Join(k.Withheld, ", "))
	}
	return b.String()
}

// tell names the skills that there are, and spells out those of the agent's capabilities.
func (s *skills) tell(_ context.Context, from tool.Origin) (told module.Told, _ error) {
	if len(s.host.Skills) == 0 {
		return told, nil
	}
	own := s.host.Capabilities(from)
	var b, loaded strings.Builder
	b.WriteString("There are skills: instructions for one kind of work. Load one (use_skill) before you do such work.")
	for _, k := range s.host.Skills {
		fmt.Fprintf(&b, "\n- %s: %s", k.Command, k.Description)
		for _, name := range own {
			if name == k.Command {
				loaded.WriteString("\n\n" + strings.TrimSpace(Instructions(k)))
			}
		}
	}
	told.Skills = b.String() + loaded.String()
	return told, nil
}
