package mcpbridge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

// ReadTool is the tool that reads resources of upstream servers.
const ReadTool = "mcp.read_resource"

// The tools as which reading and getting are judged: what they are not allowed
// to do for a caller, the protocol's own methods are not either.
const (
	readTool = ReadTool
	getTool  = "mcp.get_prompt"
)

// ourScheme is that of addresses which name their server: helve:SERVER/ADDRESS.
// Names of servers may have an underscore, which schemes may not, and the path
// of an address without an authority is left alone by those who parse it.
const ourScheme = "helve:"

func qualified(server, uri string) string { return ourScheme + server + "/" + uri }

// visible returns the servers whose offers a caller may see, by name: none if
// it may not use the tool that stands for asking them.
func (e *endpoint) visible(from tool.Origin, standIn string) []*upstream {
	o := &e.s.opts
	if o.Upstreams == nil || o.Resolve == nil || o.Resolve(from, standIn) == nil {
		return nil
	}
	u := o.Upstreams()
	if u == nil {
		return nil
	}
	var all []*upstream
	for _, s := range u.servers {
		if o.Shows == nil || o.Shows(from, s.Name) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *upstream) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// An atlas tells which servers have which addresses. A resource keeps its
// address if one server only has it. A template keeps its address if no other
// server uses the scheme. A skill keeps its address if no other server, nor the
// app, has anything in its space, and its files as it does. All others are
// qualified.
type atlas struct {
	servers   []*upstream
	resources []*list
	templates []*list
	skills    []*list
	taken     map[string]bool // the spaces of the app's own skills
	offering  int             // servers that have any resource, template or skill
}

// survey asks the servers that a caller may see what they have; what may have
// changed of the kinds in anew, anew.
func (e *endpoint) survey(ctx context.Context, from tool.Origin, anew ...*kind) *atlas {
	a := &atlas{servers: e.visible(from, readTool), taken: map[string]bool{}}
	for _, f := range e.folders(from) {
		a.taken[space(f.URI())] = true
	}
	of := func(k *kind) []*list {
		ask := (*upstream).known
		if slices.Contains(anew, k) {
			ask = (*upstream).listed
		}
		return each(a.servers, func(s *upstream) *list {
			if k == skills && !s.says(skills.capability()) {
				return &list{}
			}
			if l := ask(s, ctx, k); l != nil {
				return l
			}
			return &list{}
		})
	}
	a.resources, a.templates, a.skills = of(resources), of(templates), of(skills)
	for i := range a.servers {
		if a.offers(i) {
			a.offering++
		}
	}
	return a
}

func (a *atlas) offers(i int) bool {
	return len(a.resources[i].entries)+len(a.templates[i].entries)+len(a.skills[i].entries) > 0 || a.servers[i].says(skills.capability())
}

// having returns the servers that list the address as a resource, or as a file
// of a skill.
func (a *atlas) having(uri string) (at []int) {
	for i := range a.servers {
		if a.resources[i].has[uri] || a.skills[i].files[uri] {
			at = append(at, i)
		}
	}
	return at
}

// sole reports whether a server alone has something in a space.
func (a *atlas) sole(i int, space string) bool {
	for j := range a.servers {
		if j != i && (a.skills[j].spaces[space] || a.resources[j].spaces[space]) {
			return false
		}
	}
	return !a.taken[space]
}

// using returns the servers that use the scheme.
func (a *atlas) using(scheme string) (at []int) {
	for i := range a.servers {
		if a.resources[i].schemes[scheme] || a.templates[i].schemes[scheme] || a.skills[i].schemes[scheme] {
			at = append(at, i)
		}
	}
	return at
}

// within returns the servers that have skills in a space.
func (a *atlas) within(space string) (at []int) {
	for i := range a.servers {
		if a.skills[i].spaces[space] {
			at = append(at, i)
		}
	}
	return at
}

// shown returns the address under which a server's resource, template or skill
// is shown.
func (a *atlas) shown(i int, k *kind, uri string) string {
	var alone bool
	switch s, sp := scheme(uri), space(uri); {
	case k == templates:
		alone = a.offering == 1 || s != "" && len(a.using(s)) == 1
	case k == skills || a.skills[i].spaces[sp]:
		alone = a.sole(i, sp)
	default:
		alone = len(a.having(uri)) == 1 && !a.taken[sp]
	}
	if !alone || strings.HasPrefix(uri, ourScheme) {
		return qualified(a.servers[i].Name, uri)
	}
	return uri
}

// find returns the server that a client means by an address, and the server's
// own address.
func (a *atlas) find(uri string) (*upstream, string, error) {
	if rest, ok := strings.CutPrefix(uri, ourScheme); ok {
		name, own, _ := strings.Cut(rest, "/")
		for _, s := range a.servers {
			if s.Name == name && own != "" {
				return s, own, nil
			}
		}
		return nil, "", mcp.ResourceNotFoundError(uri)
	}
	if a.taken[space(uri)] {
		return nil, "", mcp.ResourceNotFoundError(uri)
	}
	at := a.having(uri)
	if s := scheme(uri); len(at) == 0 && s != "" {
		if at = a.within(space(uri)); len(at) == 0 {
			at = a.using(s)
		}
	}
	if len(at) == 0 && a.offering == 1 { // it may have more than it lists
		for i := range a.servers {
			if a.offers(i) {
				at = append(at, i)
			}
		}
	}
	switch len(at) {
	case 0:
		return nil, "", mcp.ResourceNotFoundError(uri)
	case 1:
		return a.servers[at[0]], uri, nil
	}
	var ways []string
	for _, i := range at {
		ways = append(ways, qualified(a.servers[i].Name, uri))
	}
	return nil, "", invalidParams("several servers have such a resource; say which: %s", strings.Join(ways, " or "))
}

// A catalogue tells which servers have which prompts: SERVER__PROMPT, as with
// tools, and mcp.SERVER.PROMPT where that could mean two.
type catalogue struct {
	servers []*upstream
	prompts []*list
}

func promptsOf(ctx context.Context, servers []*upstream, anew bool) *catalogue {
	return &catalogue{servers, each(servers, func(s *upstream) *list {
		ask := s.known
		if anew {
			ask = s.listed
		}
		if l := ask(ctx, prompts); l != nil {
			return l
		}
		return &list{}
	})}
}

// A promptAt is a prompt of a server.
type promptAt struct {
	server *upstream
	name   string
}

func (p promptAt) wire() string { return p.server.Name + "__" + p.name }
func (p promptAt) full() string { return p.server.owner() + "." + p.name }

// meaning returns the prompts that are listed and have the name on the wire.
func (c *catalogue) meaning(wire string) (all []promptAt) {
	for i, s := range c.servers {
		if own, ok := strings.CutPrefix(wire, s.Name+"__"); ok && c.prompts[i].has[own] {
			all = append(all, promptAt{s, own})
		}
	}
	return all
}

func (c *catalogue) shown(p promptAt) string {
	if len(c.meaning(p.wire())) == 1 {
		return p.wire()
	}
	return p.full()
}

// find returns the prompt that a client means: by its name on the wire, its
// full name, or the server's own if only one has it.
func (c *catalogue) find(name string) (promptAt, error) {
	found := c.meaning(name)
	if len(found) == 0 {
		for i, s := range c.servers {
			if own, ok := strings.CutPrefix(name, s.owner()+"."); ok && c.prompts[i].has[own] {
				return promptAt{s, own}, nil
			}
			if c.prompts[i].has[name] {
				found = append(found, promptAt{s, name})
			}
		}
	}
	switch len(found) {
	case 0:
		return promptAt{}, invalidParams("there is no prompt %.100q", name)
	case 1:
		return found[0], nil
	}
	var ways []string
	for _, p := range found {
		ways = append(ways, p.full())
	}
	return promptAt{}, invalidParams("several servers have the prompt %.100q; say which: %s", name, strings.Join(ways, " or "))
}

// A pagedResult is the answer to a request for a list.
type pagedResult struct {
	mcp.ResultBase
	ResultType string          `json:"resultType,omitempty"`
	TTL        *int            `json:"ttlMs,omitempty"`
	Scope      string          `json:"cacheScope,omitempty"`
	NextCursor string          `json:"nextCursor,omitempty"`
	Resources  json.RawMessage `json:"resources,omitempty"`
	Templates  json.RawMessage `json:"resourceTemplates,omitempty"`
	Prompts    json.RawMessage `json:"prompts,omitempty"`
	Skills     json.RawMessage `json:"skills,omitempty"`
}

func (e *endpoint) listResources(ctx context.Context, from tool.Origin, k *kind, cursor, version string) (mcp.Result, error) {
	return e.page(k, "", from, cursor, version, func() ([]json.RawMessage, error) {
		var all []json.RawMessage
		a := e.survey(ctx, from, resources, templates)
		lists := a.resources
		if k == templates {
			lists = a.templates
		} else {
			all = e.instructions(ctx, from)
		}
		for i, l := range lists {
			for _, en := range l.entries {
				raw, err := setField(en.raw, k.id, a.shown(i, k, en.id))
				if err != nil {
					return nil, err
				}
				all = append(all, raw)
			}
		}
		return all, nil
	})
}

func (e *endpoint) listPrompts(ctx context.Context, req *mcp.ListPromptsRequest) (mcp.Result, error) {
	from, cursor := originOf(e, req), ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	return e.page(prompts, "", from, cursor, req.ProtocolVersion(), func() ([]json.RawMessage, error) {
		var all []json.RawMessage
		c := promptsOf(ctx, e.visible(from, getTool), true)
		for i, s := range c.servers {
			for _, en := range c.prompts[i].entries {
				raw, err := setField(en.raw, "name", c.shown(promptAt{s, en.id}))
				if err != nil {
					return nil, err
				}
				all = append(all, raw)
			}
		}
		return all, nil
	})
}

// page returns a page of a list: the first of what all returns, or the one at
// the cursor of a list that was begun before. Of several lists of a kind, which
// says the one.
func (e *endpoint) page(k *kind, which string, from tool.Origin, cursor, version string, all func() ([]json.RawMessage, error)) (mcp.Result, error) {
	ls := &e.offers
	key := k.key + "\x00" + from.User + "\x00" + which
	var l *listing
	n := 0
	if cursor == "" {
		items, err := all()
		if err != nil {
			return nil, err
		}
		if l, err = newPages(key, items, e.s.opts.PageSize); err != nil {
			return nil, err
		}
		ls.keep(l, keptOffers)
	} else {
		var err error
		if l, n, err = ls.at(cursor); err == nil && l.key != key {
			err = invalidParams("cursor %.60q: not one of this list", cursor)
		}
		if err != nil {
			return nil, err
		}
	}
	res := &pagedResult{}
	switch k {
	case resources, children:
		res.Resources = l.pages[n]
	case templates:
		res.Templates = l.pages[n]
	case skills:
		res.Skills = l.pages[n]
	default:
		res.Prompts = l.pages[n]
	}
	if n+1 < len(l.pages) {
		res.NextCursor = l.digest + "." + strconv.Itoa(n+1)
	}
	if res.ResultType = complete(version); version >= firstStateless && k != children {
		res.TTL, res.Scope = new(int), "private"
	}
	return res, nil
}

// keptOffers bounds how many older lists of resources and prompts can still be
// read on.
const keptOffers = 32

func newPages(key string, items []json.RawMessage, size int) (*listing, error) {
	l := &listing{key: key}
	hash := sha256.New()
	io.WriteString(hash, key)
	for first := true; first || len(items) > 0; first = false {
		n := min(size, len(items))
		data, err := tool.Encode(append([]json.RawMessage{}, items[:n]...))
		if err != nil {
			return nil, err
		}
		hash.Write(data)
		l.pages = append(l.pages, data)
		items = items[n:]
	}
	l.digest = base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:12])
	return l, nil
}

// keep keeps a list so that it can be read on.
func (ls *listings) keep(l *listing, most int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.recent = slices.DeleteFunc(ls.recent, func(old *listing) bool { return old.digest == l.digest })
	if ls.recent = append(ls.recent, l); len(ls.recent) > most {
		ls.recent = ls.recent[1:]
	}
}

// setField returns the object with another text in a field that it has, and
// nothing else changed.
func setField(raw json.RawMessage, field, text string) (json.RawMessage, error) {
	return changeField(raw, field, func(json.RawMessage) (json.RawMessage, error) { return tool.Encode(text) })
}

// changeField returns the object with another value in a field that it has, and
// nothing else changed.
func changeField(raw json.RawMessage, field string, change func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	out, last, set := []byte{}, 0, false
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if name != field {
			continue
		}
		other, err := change(value)
		if err != nil {
			return nil, err
		}
		end := int(dec.InputOffset())
		out = append(append(out, raw[last:end-len(value)]...), other...)
		last, set = end, true
	}
	if !set {
		return nil, fmt.Errorf("there is no field %s", field)
	}
	return append(out, raw[last:]...), nil
}

// A readResult is the answer to resources/read.
type readResult struct {
	mcp.ResultBase
	ResultType string            `json:"resultType,omitempty"`
	TTL        *int              `json:"ttlMs,omitempty"`
	Scope      string            `json:"cacheScope,omitempty"`
	Contents   []json.RawMessage `json:"contents"`
}

func (e *endpoint) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	if req.Params == nil || req.Params.URI == "" {
		return nil, invalidParams("resources/read: missing uri")
	}
	from := originOf(e, req)
	return e.calls(ctx, req, &turnRequest{from: from, what: identify(from, methodReadResource, req.Params.URI, nil),
		state: req.Params.RequestState, given: req.Params.InputResponses,
		run: func(ctx context.Context, _ func(tool.Content)) (mcp.Result, error) { return e.readFor(ctx, from, req) }})
}

func (e *endpoint) readFor(ctx context.Context, from tool.Origin, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	uri := req.Params.URI
	if f := e.folderOf(from, uri); f != nil {
		return e.readOwn(ctx, from, f, uri, req.ProtocolVersion())
	}
	s, own, err := e.survey(ctx, from).find(uri)
	if err != nil {
		return nil, err
	}
	var r struct {
		Contents []json.RawMessage `json:"contents"`
		Meta     json.RawMessage   `json:"_meta"`
	}
	if err := e.do(ctx, from, readTool, resourceIn{s.Name, own}, &r); err != nil {
		return nil, err
	}
	out := &readResult{Contents: make([]json.RawMessage, 0, len(r.Contents))}
	out.SetMeta(metaOf(r.Meta))
	for _, c := range r.Contents {
		var at struct {
			URI string `json:"uri"`
		}
		if own != uri && json.Unmarshal(c, &at) == nil && at.URI != "" {
			if c, err = setField(c, "uri", qualified(s.Name, at.URI)); err != nil {
				return nil, err
			}
		}
		out.Contents = append(out.Contents, c)
	}
	if version := req.ProtocolVersion(); version >= firstStateless {
		out.ResultType, out.TTL, out.Scope = complete(version), new(int), "private"
	}
	return out, nil
}

// A promptResult is the answer to prompts/get.
type promptResult struct {
	mcp.ResultBase
	ResultType  string          `json:"resultType,omitempty"`
	Description string          `json:"description,omitempty"`
	Messages    json.RawMessage `json:"messages"`
}

func (e *endpoint) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (mcp.Result, error) {
	if req.Params == nil || req.Params.Name == "" {
		return nil, invalidParams("prompts/get: missing name")
	}
	from := originOf(e, req)
	return e.calls(ctx, req, &turnRequest{from: from, what: identify(from, methodGetPrompt, req.Params.Name, req.Params.Arguments),
		state: req.Params.RequestState, given: req.Params.InputResponses,
		run: func(ctx context.Context, _ func(tool.Content)) (mcp.Result, error) {
			return e.promptFor(ctx, from, req)
		}})
}

func (e *endpoint) promptFor(ctx context.Context, from tool.Origin, req *mcp.GetPromptRequest) (mcp.Result, error) {
	p, err := promptsOf(ctx, e.visible(from, getTool), false).find(req.Params.Name)
	if err != nil {
		return nil, err
	}
	var r struct {
		Description string          `json:"description"`
		Messages    json.RawMessage `json:"messages"`
		Meta        json.RawMessage `json:"_meta"`
	}
	if err := e.do(ctx, from, getTool, promptIn{p.server.Name, p.name, req.Params.Arguments}, &r); err != nil {
		return nil, err
	}
	out := &promptResult{ResultType: complete(req.ProtocolVersion()), Description: r.Description,
		Messages: messagesFor(req.ProtocolVersion(), r.Messages)}
	out.SetMeta(metaOf(r.Meta))
	return out, nil
}

// do runs a call of one of our tools, and reads its structured result into v.
func (e *endpoint) do(ctx context.Context, from tool.Origin, name string, args, v any) error {
	data, err := tool.Encode(args)
	if err != nil {
		return err
	}
	res, err := e.s.opts.Do(ctx, &tool.Call{Name: name, Args: data, From: from})
	switch {
	case err != nil:
		return onWire(tool.AsError(err))
	case res == nil:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call had neither a result nor an error"}
	case res.Err != nil:
		return onWire(res.Err)
	case res.Structured == nil || json.Unmarshal(res.Structured, v) != nil:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "what the server sent was withheld: " + strings.Join(append(res.Notes, name), "; ")}
	}
	return nil
}

// onWire returns an error in the protocol's form: with the server's own code
// and data, where it was the server that refused.
func onWire(err *tool.Error) error {
	var theirs jsonrpc.Error
	if err.Code == tool.CodeExternal && json.Unmarshal(err.Details, &theirs) == nil && theirs.Code != 0 {
		return &jsonrpc.Error{Code: theirs.Code, Message: err.Message, Data: theirs.Data}
	}
	code := int64(jsonrpc.CodeInternalError)
	if err.Code == tool.CodeValidation {
		code = jsonrpc.CodeInvalidParams
	}
	data, _ := tool.Encode(map[string]any{errorKey: err}) // what cannot be encoded is left out
	return &jsonrpc.Error{Code: code, Message: err.Error(), Data: data}
}

// A completion is the answer to completion/complete.
type completion struct {
	mcp.ResultBase
	ResultType string          `json:"resultType,omitempty"`
	Completion json.RawMessage `json:"completion"`
}

// complete passes on what a user has typed so far to the server that can
// complete it.
func (e *endpoint) complete(ctx context.Context, req *mcp.CompleteRequest) (mcp.Result, error) {
	if req.Params == nil || req.Params.Ref == nil || req.Params.Argument.Name == "" {
		return nil, invalidParams("completion/complete: needs ref and argument.name")
	}
	ctx, done := e.calling(ctx, req)
	defer done()
	from := originOf(e, req)
	out, err := e.completed(ctx, from, req)
	if err := e.note(from, methodComplete, map[string]any{"ref": req.Params.Ref, "argument": req.Params.Argument}, err); err != nil {
		return nil, err
	}
	return out, nil
}

func (e *endpoint) completed(ctx context.Context, from tool.Origin, req *mcp.CompleteRequest) (mcp.Result, error) {
	ref := *req.Params.Ref
	var s *upstream
	if ref.Type == "ref/prompt" {
		p, err := promptsOf(ctx, e.visible(from, getTool), false).find(ref.Name)
		if err != nil {
			return nil, unfound{err}
		}
		s, ref.Name = p.server, p.name
	} else {
		var err error
		if s, ref.URI, err = e.survey(ctx, from).find(ref.URI); err != nil {
			return nil, unfound{err}
		}
	}
	raw, err := s.call(ctx, methodComplete, rawParams{Ref: &ref, Argument: &req.Params.Argument, Context: req.Params.Context}, nil)
	if err != nil {
		return nil, onWire(tool.AsError(err))
	}
	out := &completion{}
	if err := s.unpack(raw, out); err != nil {
		return nil, onWire(tool.AsError(err))
	}
	if out.Completion == nil {
		out.Completion = json.RawMessage(`{"values":[]}`)
	}
	out.SetMeta(nil)
	out.ResultType = complete(req.ProtocolVersion())
	return out, nil
}

// serveOffers answers what concerns resources and prompts.
func (e *endpoint) serveOffers(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	switch r := req.(type) {
	case *mcp.ListResourcesRequest:
		cursor := ""
		if r.Params != nil {
			cursor = r.Params.Cursor
		}
		return e.listResources(ctx, originOf(e, r), resources, cursor, r.ProtocolVersion())
	case *mcp.ListResourceTemplatesRequest:
		cursor := ""
		if r.Params != nil {
			cursor = r.Params.Cursor
		}
		return e.listResources(ctx, originOf(e, r), templates, cursor, r.ProtocolVersion())
	case *mcp.ListPromptsRequest:
		return e.listPrompts(ctx, r)
	case *mcp.ReadResourceRequest:
		return e.readResource(ctx, r)
	case *mcp.GetPromptRequest:
		return e.getPrompt(ctx, r)
	case *mcp.CompleteRequest:
		return e.complete(ctx, r)
	case *mcp.SubscriptionsListenRequest:
		ctx = e.listening(ctx, r)
	case *mcp.ServerRequest[*mcp.SetLoggingLevelParams]:
		if err := e.note(originOf(e, r), method, r.Params, nil); err != nil {
			return nil, err
		}
		e.setLevel(r.Params.Level)
	}
	res, err := next(ctx, method, req)
	if err == nil {
		e.honest(req, res)
	}
	return res, err
}
