package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/task"
)

// tasksExtension is the extension of the protocol by which a call is answered
// with a task: https://modelcontextprotocol.io/seps/2663-tasks-extension.
const tasksExtension = "io.modelcontextprotocol/tasks"

const (
	methodGetTask    = "tasks/get"
	methodUpdateTask = "tasks/update"
	methodCancelTask = "tasks/cancel"
)

// A taskParams holds the parameters of the extension's methods.
type taskParams struct {
	mcp.ParamsBase
	ID        string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// A taskResult is the answer to tools/call that stands for a later one, and the
// answer to tasks/get.
type taskResult struct {
	mcp.ResultBase
	ResultType string              `json:"resultType"`
	ID         string              `json:"taskId"`
	Status     task.Status         `json:"status"`
	Message    string              `json:"statusMessage,omitempty"`
	Created    string              `json:"createdAt"`
	Updated    string              `json:"lastUpdatedAt"`
	TTL        int64               `json:"ttlMs"`
	Poll       int64               `json:"pollIntervalMs,omitempty"`
	Requests   mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result     json.RawMessage     `json:"result,omitempty"`
	Error      json.RawMessage     `json:"error,omitempty"`
}

// An ack is the answer to tasks/update and tasks/cancel.
type ack struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

// speaksTasks reports whether a request comes from a client that says, with
// this very request, that it knows tasks.
func speaksTasks[P mcp.Params](req *mcp.ServerRequest[P]) bool {
	caps := capabilitiesOf(req)
	return req.ProtocolVersion() >= firstStateless && caps != nil && caps.Extensions[tasksExtension] != nil
}

// errNeedsTasks refuses a client that does not.
func errNeedsTasks() error {
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities,
		Message: "missing required client capability: the extension " + tasksExtension,
		Data:    json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`)}
}

// addTaskMethods makes the extension's methods known; serve answers them.
func addTaskMethods(s *mcp.Server) {
	for _, method := range []string{methodGetTask, methodUpdateTask, methodCancelTask} {
		err := mcp.AddReceivingCustomMethod(s, method, func(context.Context, *mcp.ServerSession, *taskParams) (*ack, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		})
		if err != nil {
			panic(err)
		}
	}
}

// withoutTasks leaves the extension out of what clients of revisions that have
// no extensions are told.
func withoutTasks(res mcp.Result) {
	if r, ok := res.(*mcp.InitializeResult); ok && r.Capabilities != nil {
		delete(r.Capabilities.Extensions, tasksExtension)
	}
}

// serveTasks answers the extension's methods.
func (e *endpoint) serveTasks(ctx context.Context, method string, req *mcp.ServerRequest[*taskParams]) (mcp.Result, error) {
	switch {
	case req.ProtocolVersion() < firstStateless:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is of revision " + firstStateless}
	case !speaksTasks(req):
		return nil, errNeedsTasks()
	case req.Params == nil || req.Params.ID == "":
		return nil, invalidParams("%s: missing taskId", method)
	}
	from := originOf(e, req)
	if method == methodGetTask {
		return e.getTask(ctx, task.OwnerOf(from), req.Params.ID)
	}
	err := e.changeTask(ctx, method, task.OwnerOf(from), req.Params)
	// What a client answers is its user's own.
	if err = e.note(from, method, struct {
		Task string `json:"task"`
	}{req.Params.ID}, err); err != nil {
		return nil, err
	}
	return &ack{ResultType: "complete"}, nil
}

func (e *endpoint) getTask(ctx context.Context, o task.Owner, id string) (mcp.Result, error) {
	var k task.Task
	var asks mcp.InputRequestMap
	if c := e.s.handles.get(o, id); c != nil {
		k, asks = c.state()
	} else {
		var err error
		if k, err = e.s.opts.Tasks.Get(ctx, o, id); err != nil {
			return nil, noTask(id, err)
		}
	}
	res := shown(k)
	res.ResultType, res.Requests = "complete", asks
	return res, nil
}

func (e *endpoint) changeTask(ctx context.Context, method string, o task.Owner, p *taskParams) error {
	var err error
	switch c := e.s.handles.get(o, p.ID); {
	case method == methodCancelTask:
		err = e.s.opts.Tasks.Cancel(ctx, o, p.ID)
	case c != nil:
		return c.update(p.Responses)
	default: // it asks nothing here
		_, err = e.s.opts.Tasks.Get(ctx, o, p.ID)
	}
	if err != nil {
		return noTask(p.ID, err)
	}
	return nil
}

func noTask(id string, err error) error {
	if errors.Is(err, task.ErrNotFound) {
		return invalidParams("task %.60q: %v", id, err)
	}
	return err
}

const (
	firstPoll = time.Second // between two questions about a young task
	lastPoll  = 10 * time.Second
)

// shown returns a task as clients see it.
func shown(k task.Task) *taskResult {
	r := &taskResult{ID: k.ID, Status: k.Status, Message: printable(k.Message), Result: k.Result, Error: k.Error,
		Created: k.Created.Format(time.RFC3339Nano), Updated: k.Updated.Format(time.RFC3339Nano)}
	if k.Status.Over() {
		r.TTL = k.Until.Sub(k.Created).Milliseconds()
	} else {
		age := time.Since(k.Created)
		r.TTL = (age + k.Keep).Milliseconds() // it lasts as long as the call, and then some
		r.Poll = min(max(age/10, firstPoll), lastPoll).Milliseconds()
	}
	if k.Status == task.Failed && k.Error == nil {
		r.Error, _ = json.Marshal(&jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: k.Message})
	}
	return r
}

// handle makes the call a task, and returns what the client is told. After an
// error the call goes on as it was.
func (c *longCall) handle(ctx context.Context) (mcp.Result, error) {
	s := c.e.s
	k, err := s.opts.Tasks.Add(ctx, task.Task{Owner: c.owner, Tool: c.call.Name, Keep: s.long().Keep}, c.abandon)
	if err != nil {
		s.opts.Log.Warn("a long call cannot become a task", "tool", c.call.Name, "error", err)
		return nil, err
	}
	c.mu.Lock()
	p, ended := c.progress, c.ended
	c.progress, c.task = nil, &k
	s.handles.put(c, k)
	k.Message = c.message
	c.mu.Unlock()
	p.end()
	if ended {
		c.settle()
	}
	if ctx.Err() != nil { // nobody will hear of the task
		c.abandon()
	}
	res := shown(k)
	res.ResultType = "task"
	return res, nil
}

// abandon cancels the call: its client does not want it any more.
func (c *longCall) abandon() {
	c.mu.Lock()
	c.unwanted = true
	c.mu.Unlock()
	c.cancel()
}

// finish notes that the call is over.
func (c *longCall) finish() {
	c.mu.Lock()
	c.ended = true
	settle := c.task != nil
	c.mu.Unlock()
	if settle {
		c.settle()
	}
}

const (
	settleWithin = 10 * time.Second // how long the store may take
	settleAgain  = 5 * time.Second  // after it could not keep an outcome
)

// settle keeps what the task came to, where a restart does not reach it. Until
// that is done it is told from here.
func (c *longCall) settle() {
	s := c.e.s
	k := c.outcome()
	ctx, end := context.WithTimeout(context.Background(), settleWithin)
	defer end()
	err := s.opts.Tasks.Finish(ctx, k)
	if err == nil {
		s.handles.drop(k.ID)
		return
	}
	s.opts.Log.Error("the outcome of a task cannot be kept; it is told as long as the server runs", "task", k.ID, "error", err)
	if !s.stopping() {
		time.AfterFunc(settleAgain, c.settle)
	}
}

// state returns the task as it is, and what it asks.
func (c *longCall) state() (task.Task, mcp.InputRequestMap) {
	c.mu.Lock()
	ended := c.ended
	k := *c.task
	if c.message != "" {
		k.Message = c.message
	}
	if c.updated.After(k.Created) { // which is when the call became a task
		k.Updated = c.updated
	}
	c.mu.Unlock()
	if ended {
		return c.outcome(), nil
	}
	asks, _ := c.open()
	if len(asks) > 0 {
		k.Status = task.InputRequired
	}
	return k, asks
}

// outcome returns the task of a call that is over.
func (c *longCall) outcome() task.Task {
	c.mu.Lock()
	k, unwanted, interrupted := *c.task, c.unwanted, c.interrupted
	c.mu.Unlock()
	k.Updated = time.Now().UTC()
	k.Until = k.Updated.Add(k.Keep)
	err := c.err
	if err == nil {
		if k.Result, err = json.Marshal(c.res); err == nil {
			k.Status, k.Message = task.Completed, ""
			switch r, ok := c.res.(*callResult); {
			case !ok || !r.IsError:
			case unwanted:
				k.Status, k.Message, k.Result = task.Cancelled, "cancelled by the client", nil
			case interrupted:
				k.Status, k.Message, k.Result = task.Failed, task.Interrupted, nil
			default:
				k.Message = "the call failed"
			}
			return k
		}
	}
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) {
		wire = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	k.Status, k.Message = task.Failed, wire.Message
	k.Error, _ = json.Marshal(wire)
	return k
}

// update answers questions. Those that are not asked (any more) are left alone.
func (c *longCall) update(responses map[string]json.RawMessage) error {
	answers := map[string]mcp.InputResponse{}
	for id, raw := range responses {
		var a mcp.InputResponse
		switch c.asks(id).(type) {
		case nil:
			continue
		case *mcp.CreateMessageWithToolsParams:
			a = new(mcp.CreateMessageWithToolsResult)
		case *mcp.ListRootsParams:
			a = new(mcp.ListRootsResult)
		default:
			a = new(mcp.ElicitResult)
		}
		if err := json.Unmarshal(raw, a); err != nil || len(raw) == 0 || raw[0] != '{' {
			return invalidParams("the answer to %.60q cannot be read", id)
		}
		answers[id] = a
	}
	for id, a := range answers {
		c.reply(id, a)
	}
	return nil
}

// handles are the tasks that run here, by id.
type handles struct {
	mu  sync.Mutex
	all map[string]*longCall
}

func (hs *handles) put(c *longCall, k task.Task) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.all == nil {
		hs.all = map[string]*longCall{}
	}
	hs.all[k.ID] = c
}

// get returns the call behind an owner's task; nil: it does not run here.
func (hs *handles) get(o task.Owner, id string) *longCall {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if c := hs.all[id]; c != nil && c.owner == o {
		return c
	}
	return nil
}

func (hs *handles) drop(id string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	delete(hs.all, id)
}

// leave cancels the tasks of a session that has ended, which nobody could ask
// about, and waits for them for at most that long.
func (hs *handles) leave(session string, most time.Duration) {
	left := hs.those(func(c *longCall) bool { return c.owner.Session == session })
	late := time.NewTimer(most)
	defer late.Stop()
	for _, c := range left {
		c.abandon()
	}
	for _, c := range left {
		select {
		case <-c.over:
		case <-late.C:
			return
		}
	}
}

// interrupt gives up all tasks: the server ends.
func (hs *handles) interrupt() {
	for _, c := range hs.those(func(*longCall) bool { return true }) {
		c.mu.Lock()
		c.interrupted = true
		c.mu.Unlock()
		c.cancel()
	}
}

func (hs *handles) those(match func(*longCall) bool) (all []*longCall) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, c := range hs.all {
		if match(c) {
			all = append(all, c)
		}
	}
	return all
}

// noteWithin is how long before its end at the latest a server gives up the calls
// that are tasks, to note what became of them.
const noteWithin = 2 * time.Second

// misrouted answers, and reports so, a request about a task whose header does
// not name the task: what stands between client and server goes by the header.
func misrouted(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasPrefix(r.Header.Get(methodHeader), "tasks/") || r.Header.Get(versionHeader) < firstStateless {
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return true
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Task string `json:"taskId"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &msg) != nil {
		return false // the library says what is wrong
	}
	switch msg.Method {
	case methodGetTask, methodUpdateTask, methodCancelTask:
	default:
		return false
	}
	name := r.Header.Get(nameHeader)
	if name == headerValue(msg.Params.Task) {
		return false
	}
	why := fmt.Sprintf("header mismatch: %s is %.60q, and the request is about task %.60q", nameHeader, name, msg.Params.Task)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	w.Write(refusal(msg.ID, mcp.CodeHeaderMismatch, why))
	return true
}
