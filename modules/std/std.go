// Package std lists the modules that come with Helve.
package std

import (
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/agents"
	"github.com/helve-ai/helve/modules/apps"
	"github.com/helve-ai/helve/modules/ask"
	"github.com/helve-ai/helve/modules/checkpoint"
	"github.com/helve-ai/helve/modules/discovery"
	"github.com/helve-ai/helve/modules/filesystem"
	"github.com/helve-ai/helve/modules/http"
	"github.com/helve-ai/helve/modules/memory"
	"github.com/helve-ai/helve/modules/results"
	"github.com/helve-ai/helve/modules/shell"
	"github.com/helve-ai/helve/modules/skills"
	"github.com/helve-ai/helve/modules/tasks"
	"github.com/helve-ai/helve/modules/workspace"
)

// Modules returns them, in the order of their names.
func Modules() []*module.Module {
	return []*module.Module{agents.Module, apps.Module, ask.Module, checkpoint.Module, discovery.Module, filesystem.Module, http.Module, memory.Module, results.Module, shell.Module, skills.Module, tasks.Module, workspace.Module}
}
