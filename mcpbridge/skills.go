package mcpbridge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/tool"
)

// skillsExtension is the extension of the protocol by which servers list
// skills: https://modelcontextprotocol.io/seps/2640-skills-extension.
const skillsExtension = "io.modelcontextprotocol/skills"

// fileTool is the tool as which reading files of the app's own skills is judged.
const fileTool = "read_skill_file"

// directoriesToo is what servers are noted with, beside their capabilities,
// that list the folders of their skills.
const directoriesToo = "skills/directories"

// children are what lies in a folder.
var children = &kind{methodReadDirectory, "resources", "uri"}

// readsDirectories reports whether a server says that it lists folders.
func readsDirectories(caps *mcp.ServerCapabilities) bool {
	if has, _ := skills.of(caps); !has {
		return false
	}
	settings, _ := caps.Extensions[skillsExtension].(map[string]any)
	return settings["directoryRead"] == true
}

// says reports whether the server is known to have said that it has something.
func (s *upstream) says(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.declared, what)
}

// untold reports whether the server has yet to say what it has.
func (s *upstream) untold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.declared == nil && s.status.State != Stopped
}

// space returns the part of an address under which the skills of one server
// lie: its scheme, and what follows up to the next slash.
func space(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	return strings.ToLower(scheme) + "://" + first
}

// maxLeftOut bounds how many entries of a list are told of that cannot be used.
const maxLeftOut = 100

// skills returns how many skills the server listed last, and which others
// cannot be used, and why.
func (r *relay) skills() (listed int, bad []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lists[skills]; l != nil {
		return len(l.entries), slices.Clone(l.leftOut)
	}
	return 0, nil
}

func (l *list) leaveOut(i int, id string, why error) {
	name := fmt.Sprintf("the skill at place %d", i+1)
	if id != "" {
		name = fmt.Sprintf("skill %.100q", id)
	}
	if len(l.leftOut) >= maxLeftOut {
		return
	}
	l.leftOut = append(l.leftOut, fmt.Sprintf("%s: %v", name, why))
}

func (l *list) addFiles(e *skill.Entry) {
	if l.files == nil {
		l.files = map[string]bool{}
	}
	l.files[e.URI] = true
	for _, f := range e.Files {
		l.files[f.URI] = true
	}
}

// A skillParams holds the parameters of the extension's methods.
type skillParams struct {
	mcp.ParamsBase
	URI    string `json:"uri,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// A skillResult is the answer to skills/get.
type skillResult struct {
	mcp.ResultBase
	ResultType string          `json:"resultType,omitempty"`
	TTL        *int            `json:"ttlMs,omitempty"`
	Scope      string          `json:"cacheScope,omitempty"`
	Skill      json.RawMessage `json:"skill"`
}

// addSkillMethods makes the extension's methods known; serve answers them.
func addSkillMethods(s *mcp.Server) {
	for _, method := range []string{methodListSkills, methodGetSkill, methodReadDirectory} {
		err := mcp.AddReceivingCustomMethod(s, method, func(context.Context, *mcp.ServerSession, *skillParams) (*ack, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		})
		if err != nil {
			panic(err)
		}
	}
}

func skillSettings(directories bool) map[string]any {
	if directories {
		return map[string]any{"directoryRead": true}
	}
	return map[string]any{}
}

// folders returns the app's own skills that a caller may read.
func (e *endpoint) folders(from tool.Origin) []*skill.Folder {
	o := &e.s.opts
	if o.Skills == nil || o.Resolve == nil || o.Resolve(from, fileTool) == nil {
		return nil
	}
	return o.Skills()
}

// folderOf returns the own skill in whose folder an address lies; nil: none.
func (e *endpoint) folderOf(from tool.Origin, uri string) *skill.Folder {
	for _, f := range e.folders(from) {
		if _, ok := f.Path(uri); ok {
			return f
		}
	}
	return nil
}

// hasSkills reports whether there are skills that a caller may see, and whether
// their folders are listed. Servers that have yet to say what they offer count
// as if they had some.
func (e *endpoint) hasSkills(from tool.Origin) (has, directories bool) {
	if len(e.folders(from)) > 0 {
		return true, true
	}
	for _, s := range e.visible(from, readTool) {
		has = has || s.untold() || s.says(skills.capability())
		directories = directories || s.says(directoriesToo)
	}
	return has, directories
}

// serveSkills answers the extension's methods.
func (e *endpoint) serveSkills(ctx context.Context, method string, req *mcp.ServerRequest[*skillParams]) (mcp.Result, error) {
	from, p := originOf(e, req), req.Params
	has, directories := e.hasSkills(from)
	switch {
	case !has || method == methodReadDirectory && !directories:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + ": no server here says that it has such"}
	case p == nil:
		p = &skillParams{}
	}
	if method == methodListSkills {
		return e.listSkills(ctx, from, p.Cursor, req.ProtocolVersion())
	}
	if p.URI == "" {
		return nil, invalidParams("%s: missing uri", method)
	}
	ctx, done := e.calling(ctx, req)
	defer done()
	if method == methodReadDirectory {
		return e.page(children, p.URI, from, p.Cursor, req.ProtocolVersion(), func() ([]json.RawMessage, error) {
			all, err := e.childrenOf(ctx, from, p.URI)
			if err := e.note(from, method, watching{p.URI}, err); err != nil {
				return nil, err
			}
			return all, nil
		})
	}
	raw, err := e.skillAt(ctx, from, p.URI)
	if err := e.note(from, method, watching{p.URI}, err); err != nil {
		return nil, err
	}
	res := &skillResult{Skill: raw}
	if version := req.ProtocolVersion(); version >= firstStateless {
		res.ResultType, res.TTL, res.Scope = complete(version), new(int), "private"
	}
	return res, nil
}

func (e *endpoint) listSkills(ctx context.Context, from tool.Origin, cursor, version string) (mcp.Result, error) {
	return e.page(skills, "", from, cursor, version, func() (all []json.RawMessage, err error) {
		for _, entry := range e.own(ctx, from) {
			raw, err := entry.MarshalJSON()
			if err != nil {
				return nil, err
			}
			all = append(all, raw)
		}
		a := e.survey(ctx, from, skills)
		for i, s := range a.servers {
			for _, en := range a.skills[i].entries {
				raw := en.raw
				if a.shown(i, skills, en.id) != en.id {
					if raw, err = qualifySkill(s.Name, raw); err != nil {
						return nil, err
					}
				}
				all = append(all, raw)
			}
		}
		return all, nil
	})
}

// own returns the app's skills as they are now. Those that cannot be served are
// left out, and told of in the log.
func (e *endpoint) own(ctx context.Context, from tool.Origin) (all []*skill.Entry) {
	for _, f := range e.folders(from) {
		entry, err := f.Entry(ctx)
		if err != nil {
			if _, told := e.s.unserved.Swap(f.Command, err.Error()); !told {
				e.s.opts.Log.Warn("a skill of the app cannot be served", "skill", f.Command, "why", err)
			}
			continue
		}
		all = append(all, entry)
	}
	return all
}

// instructions returns the SKILL.md of the app's skills as resources.
func (e *endpoint) instructions(ctx context.Context, from tool.Origin) (all []json.RawMessage) {
	for _, entry := range e.own(ctx, from) {
		raw, err := tool.Encode(struct {
			URI         string `json:"uri"`
			Name        string `json:"name"`
			Description string `json:"description"`
			MIME        string `json:"mimeType"`
		}{entry.URI, entry.Name, entry.Description, skill.MIME(entry.URI)})
		if err == nil { // of texts
			all = append(all, raw)
		}
	}
	return all
}

// qualifySkill returns a server's entry with addresses that name the server.
func qualifySkill(server string, raw json.RawMessage) (json.RawMessage, error) {
	rename := func(raw json.RawMessage) (json.RawMessage, error) {
		var uri string
		if err := json.Unmarshal(raw, &uri); err != nil {
			return nil, err
		}
		return tool.Encode(qualified(server, uri))
	}
	raw, err := changeField(raw, "uri", rename)
	if err != nil {
		return nil, err
	}
	return changeField(raw, "resources", func(list json.RawMessage) (json.RawMessage, error) {
		var files []json.RawMessage
		if json.Unmarshal(list, &files) != nil {
			return list, nil // they are made on demand
		}
		for i := range files {
			if files[i], err = changeField(files[i], "uri", rename); err != nil {
				return nil, err
			}
		}
		return tool.Encode(files)
	})
}

// skillAt returns the entry of the skill at an address, asked for anew.
func (e *endpoint) skillAt(ctx context.Context, from tool.Origin, uri string) (json.RawMessage, error) {
	for _, f := range e.folders(from) {
		if f.URI() == uri {
			entry, err := f.Entry(ctx)
			if err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("the skill %s cannot be served: %v", uri, err)}
			}
			return entry.MarshalJSON()
		}
	}
	s, own, err := e.survey(ctx, from).find(uri)
	if err == nil && !s.says(skills.capability()) {
		err = mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, unfound{err}
	}
	_, raw, err := s.getSkill(ctx, own)
	if err != nil {
		return nil, notServed(err)
	}
	if own != uri {
		return qualifySkill(s.Name, raw)
	}
	return raw, nil
}

// getSkill asks the server for the entry of one skill.
func (s *upstream) getSkill(ctx context.Context, uri string) (*skill.Entry, json.RawMessage, error) {
	raw, err := s.call(ctx, methodGetSkill, rawParams{URI: uri}, nil)
	if err != nil {
		return nil, nil, err
	}
	var r struct {
		Skill json.RawMessage `json:"skill"`
	}
	if err := s.unpack(raw, &r); err != nil {
		return nil, nil, err
	}
	entry, err := skill.Parse(r.Skill)
	if err == nil && entry.URI != uri {
		err = fmt.Errorf("its address is %.200q, and %.200q was asked for", entry.URI, uri)
	}
	if err != nil {
		return nil, nil, tool.Errorf(tool.CodeExternal, "the MCP server %s has a skill that cannot be used: %v", s.Name, err)
	}
	return entry, r.Skill, nil
}

// notServed returns a server's error on the wire. An older code of what is not
// there is the one that the extension wants.
func notServed(err error) error {
	const oldNotFound = -32002
	wire := onWire(tool.AsError(err))
	var e *jsonrpc.Error
	if errors.As(wire, &e) && e.Code == oldNotFound {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: e.Message, Data: e.Data}
	}
	return wire
}

// childrenOf returns what lies in the folder at an address. Where a server does
// not list folders, its lists of files say it.
func (e *endpoint) childrenOf(ctx context.Context, from tool.Origin, uri string) ([]json.RawMessage, error) {
	for _, entry := range e.own(ctx, from) {
		if entry.Within(uri) {
			return childrenIn([]*skill.Entry{entry}, uri)
		}
	}
	a := e.survey(ctx, from)
	s, own, err := a.find(uri)
	if err == nil && !s.says(skills.capability()) {
		err = mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, unfound{err}
	}
	var all []json.RawMessage
	if s.says(directoriesToo) {
		all, err = pages(children.key, func(cursor string) (json.RawMessage, error) {
			return s.call(ctx, methodReadDirectory, rawParams{URI: own, Cursor: cursor}, nil)
		})
		if err != nil {
			return nil, notServed(err)
		}
	} else if all, err = childrenIn(a.entriesOf(s), own); err != nil {
		return nil, err
	}
	if own == uri {
		return all, nil
	}
	for i, raw := range all {
		var child struct {
			URI string `json:"uri"`
		}
		if err := json.Unmarshal(raw, &child); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "what the MCP server " + s.Name + " lists of a folder cannot be read"}
		}
		if all[i], err = setField(raw, "uri", qualified(s.Name, child.URI)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (a *atlas) entriesOf(s *upstream) (all []*skill.Entry) {
	for _, en := range a.skills[slices.Index(a.servers, s)].entries {
		all = append(all, en.skill)
	}
	return all
}

// childrenIn returns what the entries list of a folder.
func childrenIn(entries []*skill.Entry, dir string) (all []json.RawMessage, _ error) {
	seen := map[string]bool{}
	for _, entry := range entries {
		kids, _ := entry.Children(dir)
		for _, kid := range kids {
			if seen[kid.URI] {
				continue // a nested skill's file is one of the other's too
			}
			seen[kid.URI] = true
			raw, err := tool.Encode(kid)
			if err != nil {
				return nil, err
			}
			all = append(all, raw)
		}
	}
	if len(all) == 0 {
		return nil, unfound{invalidParams("%.200q is no folder of a skill", dir)}
	}
	return all, nil
}

// A fileIn is what read_skill_file is asked, and a fileOut what it answers.
type fileIn struct {
	Skill string `json:"skill"`
	File  string `json:"file"`
}

type fileOut struct {
	MIME string  `json:"mime"`
	Text *string `json:"text"`
	Blob *[]byte `json:"blob"`
}

// readOwn reads a file of one of the app's skills.
func (e *endpoint) readOwn(ctx context.Context, from tool.Origin, f *skill.Folder, uri, version string) (mcp.Result, error) {
	file, _ := f.Path(uri)
	var got fileOut
	if err := e.do(ctx, from, fileTool, fileIn{f.Command, file}, &got); err != nil {
		return nil, err
	}
	raw, err := tool.Encode(resource{URI: uri, MIME: got.MIME, Text: got.Text, Blob: got.Blob})
	if err != nil {
		return nil, err
	}
	out := &readResult{Contents: []json.RawMessage{raw}}
	if version >= firstStateless {
		out.ResultType, out.TTL, out.Scope = complete(version), new(int), "private"
	}
	return out, nil
}

// contentOf returns the bytes of the one file in an answer to resources/read.
func contentOf(raw json.RawMessage, uri string) ([]byte, error) {
	var r struct {
		Contents []struct {
			URI  string
			Text *string
			Blob *string
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	switch {
	case len(r.Contents) != 1:
		return nil, fmt.Errorf("the answer has %d parts, not one", len(r.Contents))
	case r.Contents[0].URI != uri:
		return nil, fmt.Errorf("the answer is of %.200q", r.Contents[0].URI)
	case r.Contents[0].Blob != nil:
		return base64.StdEncoding.DecodeString(*r.Contents[0].Blob)
	case r.Contents[0].Text == nil || !utf8.ValidString(*r.Contents[0].Text):
		return nil, errors.New("the answer has no content")
	}
	return []byte(*r.Contents[0].Text), nil
}
