package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/task"
	"github.com/helve-ai/helve/tool"
)

const (
	shortestPoll = 100 * time.Millisecond // between two questions about a task, whatever the server says
	usualPoll    = time.Second            // where it says nothing
	longestPoll  = 30 * time.Second

	maxMissed  = 3               // questions about a task that get no answer, in a row
	cancelTime = 5 * time.Second // for telling the server that a task is not wanted any more
)

// A theirTask is a task of an upstream server, as it tells it.
type theirTask struct {
	Type     string                     `json:"resultType"`
	ID       string                     `json:"taskId"`
	Status   task.Status                `json:"status"`
	Message  string                     `json:"statusMessage"`
	Poll     *float64                   `json:"pollIntervalMs"`
	Requests map[string]json.RawMessage `json:"inputRequests"`
	Result   json.RawMessage            `json:"result"`
	Error    *jsonrpc.Error             `json:"error"`
}

// taskIn returns the task with which a server answers a call; nil: the answer
// is another.
func taskIn(method string, raw json.RawMessage) *theirTask {
	var t theirTask
	if method != methodCallTool || json.Unmarshal(raw, &t) != nil || t.Type != "task" || t.ID == "" {
		return nil
	}
	return &t
}

// await waits for a task of the server, answers what it asks, and returns what
// the call came to. If ctx ends, the server is told that the task is not wanted.
func (l *link) await(ctx context.Context, t *theirTask, progress func(tool.Content)) (raw []byte, err error) {
	id := t.ID
	defer func() {
		if err != nil && !t.Status.Over() {
			l.unwant(ctx, id)
		}
	}()
	said, missed, answered := "", 0, map[string]bool{}
	for {
		if t.Message != said && t.Message != "" && progress != nil && !t.Status.Over() {
			said = t.Message
			progress(tool.Content{Text: cut(printable(said), maxLogLine)})
		}
		switch t.Status {
		case task.Completed:
			return t.Result, nil
		case task.Failed:
			if t.Error == nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: orElse(t.Message, "the task failed")}
			}
			return nil, t.Error
		case task.Cancelled:
			return nil, tool.Errorf(tool.CodeCancelled, "the MCP server cancelled the call")
		case task.InputRequired:
			if err := l.answer(ctx, t, answered); err != nil {
				return nil, err
			}
		}
		select {
		case <-time.After(t.pause()):
		case <-l.ended:
			return nil, l.why()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		next, err := l.task(ctx, id)
		switch {
		case err == nil:
			t, missed = next, 0
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case refusedBy(err) != nil || l.lost():
			return nil, err
		default:
			if missed++; missed == maxMissed {
				return nil, err
			}
		}
	}
}

func (t *theirTask) pause() time.Duration {
	if t.Poll == nil {
		return usualPoll
	}
	ms := min(max(*t.Poll, 0), float64(longestPoll.Milliseconds()))
	return max(time.Duration(ms)*time.Millisecond, shortestPoll)
}

// task asks the server about a task.
func (l *link) task(ctx context.Context, id string) (*theirTask, error) {
	raw, err := callRaw(ctx, l.session, methodGetTask, rawParams{TaskID: id})
	if err != nil {
		return nil, err
	}
	var t theirTask
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, tool.Errorf(tool.CodeExternal, "what the MCP server says of the task cannot be read: %v", err)
	}
	if t.Status == "" {
		return nil, errors.New("the MCP server says nothing of the task")
	}
	return &t, nil
}

// answer asks the client what the task asks, unless it was asked before.
func (l *link) answer(ctx context.Context, t *theirTask, answered map[string]bool) error {
	fresh := map[string]json.RawMessage{}
	for id, request := range t.Requests {
		if !answered[id] {
			answered[id] = true
			fresh[id] = request
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	var asked mcp.InputRequestMap
	raw, err := json.Marshal(fresh)
	if err == nil {
		err = json.Unmarshal(raw, &asked)
	}
	if err != nil {
		return wantsInput(l.owner, fmt.Errorf("its questions cannot be read: %w", err))
	}
	if call := callOf(ctx); call != nil {
		defer call.clock.pause()()
	}
	responses, err := l.owner.answers(ctx, askerOf(ctx), asked, false)
	if err != nil {
		return wantsInput(l.owner, err)
	}
	_, err = callRaw(ctx, l.session, methodUpdateTask, rawParams{TaskID: t.ID, Responses: responses})
	return err
}

// unwant tells the server that a task is not wanted any more.
func (l *link) unwant(ctx context.Context, id string) {
	if l.lost() {
		return
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer end()
	_, _ = callRaw(ctx, l.session, methodCancelTask, rawParams{TaskID: id}) // it may have ended meanwhile
}
