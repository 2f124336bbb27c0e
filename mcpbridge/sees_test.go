package mcpbridge_test

import (
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/tool"
)

// seesAll is a host under which every caller may see every server.
var seesAll = &module.Host{Visible: func(tool.Origin, *tool.Tool) bool { return true }}
