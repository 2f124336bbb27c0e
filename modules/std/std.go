// Package std lists the modules that come with Helve.
package std

import (
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/checkpoint"
	"github.com/helve-ai/helve/modules/discovery"
	"github.com/helve-ai/helve/modules/filesystem"
	"github.com/helve-ai/helve/modules/http"
	"github.com/helve-ai/helve/modules/results"
	"github.com/helve-ai/helve/modules/shell"
	"github.com/helve-ai/helve/modules/tasks"
	"github.com/helve-ai/helve/modules/workspace"
)

// Modules returns them, in the order of their names.
func Modules() []*module.Module {
	return []*module.Module{checkpoint.Module, discovery.Module, filesystem.Module, http.Module, results.Module, shell.Module, tasks.Module, workspace.Module}
}
