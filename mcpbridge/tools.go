package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/tool"
)

// Module returns the module "mcp": tools about the servers themselves, their
// resources and their prompts. It works without any server.
func (u *Upstreams) Module() *module.Module {
	m := module.New("mcp", "MCP servers: which are connected, whether they answer, and the resources and prompts that they offer.",
		struct{}{}, func(_ context.Context, h *module.Host, _ struct{}) (*module.Toolset, error) {
			return &module.Toolset{Tools: asked{u, h.Visible, h.ActingOn}.tools()}, nil
		})
	m.Always = true
	return m
}

// Shown reports whether a caller may see what a server offers beside tools: what
// visible says of a tool that would read it.
func Shown(visible func(tool.Origin, *tool.Tool) bool, from tool.Origin, server string) bool {
	module := "mcp." + server
	return visible(from, &tool.Tool{Definition: tool.Definition{Name: module + ".resources", Module: module, Effect: tool.Reads}})
}

// asked are the servers as the module's tools see them: each caller only those
// that it may know of.
type asked struct {
	*Upstreams
	visible func(tool.Origin, *tool.Tool) bool
	acting  func(context.Context, tool.Origin) (server string, e *skill.Entry, err error) // nil: nobody acts on a server's skill
}

func (a asked) shows(c *tool.Call, server string) bool {
	return a.visible != nil && Shown(a.visible, c.From, server)
}

// find returns the named server, if the caller may know of it.
func (a asked) find(c *tool.Call, name string) (*upstream, error) {
	return a.Upstreams.find(name, func(server string) bool { return a.shows(c, server) })
}

// about returns what the module's tools have in common.
func about(name, title, description string, aliases ...string) tool.Definition {
	return tool.Definition{Name: "mcp." + name, Module: "mcp", Title: title, Description: description, Aliases: aliases,
		Effect: tool.Reads, Category: tool.Custom, Tags: []string{"mcp", "upstream server", "integration"},
		ParallelSafe: true, Deferred: true}
}

// asks returns the definition of a tool that asks a server.
func asks(name, title, description string, aliases ...string) tool.Definition {
	d := about(name, title, description, aliases...)
	d.Needs = tool.NeedsNetwork
	return d
}

func (a asked) tools() []*tool.Tool {
	return []*tool.Tool{
		tool.NewFor(about("list_servers", "List MCP servers",
			"List the MCP servers that are configured: their state, how many tools each offers, which tools cannot be used and why, and what went wrong last.",
			"mcp_servers", "list_mcp_servers", "upstreams"),
			a.listServers),
		tool.NewFor(asks("health", "Check MCP servers",
			"Ask every MCP server, or one, whether it answers, and tell how long it took. A server that is down is not started by this.",
			"mcp_ping", "mcp_health_check"), a.health),
		tool.NewFor(asks("list_resources", "List MCP resources",
			"List the resources (documents, records, files) that MCP servers offer, and the templates of their addresses. Read one with mcp.read_resource.",
			"list_mcp_resources", "ListMcpResources"), a.listResources),
		tool.NewFor(whole(asks("read_resource", "Read an MCP resource",
			"Read a resource of an MCP server by its address, as mcp.list_resources tells it.",
			"read_mcp_resource", "ReadMcpResource"), "contents"), a.readResource),
		tool.NewFor(asks("list_prompts", "List MCP prompts",
			"List the prompts (ready-made instructions with parameters) that MCP servers offer. Fetch one with mcp.get_prompt.",
			"list_mcp_prompts"), a.listPrompts),
		tool.NewFor(whole(asks("get_prompt", "Get an MCP prompt",
			"Fetch a prompt of an MCP server, filled in with arguments, as mcp.list_prompts tells them.",
			"get_mcp_prompt"), "messages"), a.getPrompt),
	}
}

// whole says that beside the content for models the result holds, structured,
// all that the server sent, with a list under key.
func whole(d tool.Definition, key string) tool.Definition {
	d.Timeout, d.HeedsContext = longestCall+askPatience, true // each server has a limit of its own
	d.Output = schema.Must(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"array"}},"required":[%q]}`, key, key))
	return d
}

type serverList struct {
	Servers []ServerStatus `json:"servers"`
}

// longestCall is more than any server may be given to start and to answer.
const longestCall = 2 * time.Hour

// which names a server, or means them all.
type which struct {
	Server string `json:"server,omitempty" jsonschema:"the name of one server; left out: all of them"`
}

func (a asked) listServers(_ context.Context, c *tool.Call, _ struct{}) (serverList, error) {
	return serverList{slices.DeleteFunc(a.Status(), func(s ServerStatus) bool { return !a.shows(c, s.Name) })}, nil
}

// chosen returns the servers that w means.
func (a asked) chosen(c *tool.Call, w which) ([]*upstream, error) {
	if w.Server != "" {
		s, err := a.find(c, w.Server)
		return []*upstream{s}, err
	}
	if a.Upstreams == nil {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(a.servers), func(s *upstream) bool { return !a.shows(c, s.Name) }), nil
}

// each runs ask for all the servers at once, and returns the answers in order.
func each[T any](servers []*upstream, ask func(*upstream) T) []T {
	out := make([]T, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { out[i] = ask(s) })
	}
	all.Wait()
	return out
}

type health struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Alive bool   `json:"alive"`
	Ms    int64  `json:"ms" jsonschema:"how long the answer took"`
	Error string `json:"error,omitempty"`
}

type healthList struct {
	Servers []health `json:"servers"`
}

const pingTimeout = 10 * time.Second

func (a asked) health(ctx context.Context, c *tool.Call, in which) (healthList, error) {
	servers, err := a.chosen(c, in)
	if err != nil {
		return healthList{}, err
	}
	return healthList{each(servers, func(s *upstream) health { return s.ping(ctx) })}, nil
}

// ping asks the server whether it answers. Revisions without ping are asked
// for their list of tools.
func (s *upstream) ping(ctx context.Context) health {
	st := s.now()
	h := health{Name: s.Name, State: st.State, Error: st.Error}
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l == nil {
		return h
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	began := time.Now()
	var err error
	if l.protocol >= firstStateless {
		_, err = callRaw(ctx, l.session, methodListTools, rawParams{})
		if refusedBy(err) != nil {
			err = nil // a refusal is an answer
		}
	} else {
		err = l.session.Ping(ctx, nil)
	}
	h.Alive, h.Ms = err == nil, time.Since(began).Milliseconds()
	if err != nil {
		h.Error = s.plain(err)
	}
	return h
}

// An offer is what one server lists, as it sent it; or why it did not.
type offer struct {
	Server    string            `json:"server"`
	Resources []json.RawMessage `json:"resources,omitempty"`
	Templates []json.RawMessage `json:"templates,omitempty"`
	Prompts   []json.RawMessage `json:"prompts,omitempty"`
	Error     string            `json:"error,omitempty"`
}

// answerOf is free text, because the servers' own fields are in it.
func answerOf(offers []offer) (*tool.Result, error) {
	if offers == nil {
		offers = []offer{}
	}
	data, err := tool.Encode(struct {
		Servers []offer `json:"servers"`
	}{offers})
	if err != nil {
		return nil, err
	}
	return tool.Text(string(data)), nil
}

func (a asked) listResources(ctx context.Context, c *tool.Call, in which) (*tool.Result, error) {
	servers, err := a.chosen(c, in)
	if err != nil {
		return nil, err
	}
	return answerOf(each(servers, func(s *upstream) offer {
		o := offer{Server: s.Name}
		var err error
		if o.Resources, err = s.offers(ctx, resources); err == nil {
			o.Templates, err = s.offers(ctx, templates)
		}
		if err != nil {
			o.Error = tool.AsError(err).Message
		}
		return o
	}))
}

func (a asked) listPrompts(ctx context.Context, c *tool.Call, in which) (*tool.Result, error) {
	servers, err := a.chosen(c, in)
	if err != nil {
		return nil, err
	}
	return answerOf(each(servers, func(s *upstream) offer {
		o := offer{Server: s.Name}
		var err error
		if o.Prompts, err = s.offers(ctx, prompts); err != nil {
			o.Error = tool.AsError(err).Message
		}
		return o
	}))
}

// offers returns what the server lists of a kind, as it sent it: what it listed
// last while it does not run.
func (s *upstream) offers(ctx context.Context, k *kind) ([]json.RawMessage, error) {
	if s.lacks(k) {
		return nil, nil
	}
	if raws, kept := s.kept(k); kept && !s.connected() {
		return raws, nil
	}
	defer s.hold()()
	l, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	if has, _ := k.of(l.session.InitializeResult().Capabilities); !has {
		return nil, nil
	}
	raws, err := s.list(ctx, k.method, k.key)
	if err == nil {
		s.keepList(k, raws)
	}
	return raws, err
}

// list reads all pages of a list. A server that does not know the method has
// nothing to list.
func (s *upstream) list(ctx context.Context, method, key string) ([]json.RawMessage, error) {
	all, err := pages(key, func(cursor string) (json.RawMessage, error) {
		return s.call(ctx, method, rawParams{Cursor: cursor}, nil)
	})
	if e := refusedBy(err); e != nil && e.Code == jsonrpc.CodeMethodNotFound {
		return nil, nil
	}
	return all, err
}

type resourceIn struct {
	Server string `json:"server" jsonschema:"the name of the server"`
	URI    string `json:"uri" jsonschema:"the address of the resource"`
}

func (a asked) readResource(ctx context.Context, c *tool.Call, in resourceIn) (*tool.Result, error) {
	s, err := a.find(c, in.Server)
	if err != nil {
		return nil, err
	}
	raw, err := s.call(ctx, methodReadResource, rawParams{URI: in.URI}, nil)
	if err != nil {
		return nil, err
	}
	var r struct {
		Contents []json.RawMessage `json:"contents"`
		Meta     json.RawMessage   `json:"_meta"`
	}
	if err := s.unpack(raw, &r); err != nil {
		return nil, err
	}
	if err := a.verify(ctx, c, in, raw); err != nil {
		return nil, err
	}
	res := &tool.Result{Meta: r.Meta, Structured: raw}
	for _, c := range r.Contents {
		block := append(append(json.RawMessage(`{"type":"resource","resource":`), c...), '}')
		res.Content = append(res.Content, content(block))
	}
	return res, nil
}

// verify holds what was read against the skill on which the caller acts, if it
// is a file of it.
func (a asked) verify(ctx context.Context, c *tool.Call, in resourceIn, raw json.RawMessage) error {
	if a.acting == nil {
		return nil
	}
	server, e, err := a.acting(ctx, c.From)
	if err != nil || e == nil || server != in.Server || !e.Within(in.URI) {
		return err
	}
	data, err := contentOf(raw, in.URI)
	if err == nil {
		err = e.Verify(in.URI, data)
	}
	if err != nil {
		return tool.Errorf(tool.CodeExternal, "the file of the MCP server %s is refused: %s; load the skill again to have what it is now", server, printable(err.Error()))
	}
	return nil
}

// unpack reads the server's answer into v.
func (s *upstream) unpack(raw json.RawMessage, v any) error {
	var r struct {
		Type string `json:"resultType"`
	}
	err := json.Unmarshal(raw, &r)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	switch {
	case err != nil:
		return tool.Errorf(tool.CodeExternal, "what the MCP server %s sent cannot be read: %v", s.Name, err)
	case r.Type != "" && r.Type != "complete":
		return tool.Errorf(tool.CodeExternal, "the MCP server %s answered with a result of type %q, which is not supported", s.Name, cut(printable(r.Type), 60))
	}
	return nil
}

type promptIn struct {
	Server    string            `json:"server" jsonschema:"the name of the server"`
	Name      string            `json:"name" jsonschema:"the name of the prompt"`
	Arguments map[string]string `json:"arguments,omitempty" jsonschema:"values for its parameters"`
}

func (a asked) getPrompt(ctx context.Context, c *tool.Call, in promptIn) (*tool.Result, error) {
	s, err := a.find(c, in.Server)
	if err != nil {
		return nil, err
	}
	p := rawParams{Name: in.Name}
	if len(in.Arguments) > 0 {
		if p.Arguments, err = tool.Encode(in.Arguments); err != nil {
			return nil, err
		}
	}
	raw, err := s.call(ctx, methodGetPrompt, p, nil)
	if err != nil {
		return nil, err
	}
	var r struct {
		Description string `json:"description"`
		Messages    []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := s.unpack(raw, &r); err != nil {
		return nil, err
	}
	res := &tool.Result{Structured: raw}
	if r.Description != "" {
		res.Content = append(res.Content, tool.Content{Text: printable(r.Description)})
	}
	for _, m := range r.Messages {
		c := content(m.Content)
		if c.Text != "" && c.URI == "" {
			c = tool.Content{Text: fmt.Sprintf("%s: %s", printable(m.Role), c.Text)}
		}
		res.Content = append(res.Content, c)
	}
	return res, nil
}
