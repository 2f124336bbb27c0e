package mcpbridge

import (
	"errors"
	"fmt"

	"github.com/helve-ai/helve/tool"
)

// The names under which requests that are no calls of tools are written down.
var noted = map[string]string{
	methodComplete:          "mcp.complete",
	"resources/subscribe":   "mcp.subscribe",
	"resources/unsubscribe": "mcp.unsubscribe",
	"logging/setLevel":      "mcp.set_log_level",
	methodUpdateTask:        "mcp.answer_task",
	methodCancelTask:        "mcp.cancel_task",
	methodGetSkill:          "mcp.get_skill",
	methodReadDirectory:     "mcp.read_directory",
}

// An unfound error says that what a client named does not exist, as far as it
// may know.
type unfound struct{ error }

func (u unfound) Unwrap() error { return u.error }

// note writes down a request, with what came of it. It returns what the client
// is told: err, unless the request could not be written down.
func (e *endpoint) note(from tool.Origin, method string, params any, err error) error {
	var u unfound
	told := err
	if errors.As(err, &u) {
		told = u.error
	}
	if e.s.opts.Record == nil {
		return told
	}
	args, bad := tool.Encode(params)
	if bad != nil {
		return fmt.Errorf("%s: %w", method, bad)
	}
	if told != err {
		err = tool.Errorf(tool.CodeNotFound, "%s", plain(told))
	}
	if lost := e.s.opts.Record(&tool.Call{Name: noted[method], Args: args, From: from}, err); lost != nil {
		return onWire(tool.AsError(lost))
	}
	return told
}

// A watching is what a client asks to be told of, as it is written down.
type watching struct {
	URI string `json:"uri"`
}
