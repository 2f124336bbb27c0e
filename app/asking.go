package app

import (
	"context"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/tool"
)

// ask asks the user on whose behalf a call is made: the one at the terminal, or
// at the client that made the call.
func (a *App) ask(ctx context.Context, c *tool.Call, q module.Question) (module.Reply, error) {
	switch {
	case c.From.Kind == tool.KindMCP:
		return mcpbridge.AskUser(ctx, q)
	case a.opts.Asker != nil && !c.From.Kind.Daemon():
		return a.opts.Asker(ctx, c, q)
	}
	return module.Reply{}, module.ErrNobody
}
