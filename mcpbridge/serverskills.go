package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/helve-ai/helve/poison"
	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/tool"
)

// A ServerSkill is a skill of a server, as far as its list says.
type ServerSkill struct {
	Server      string
	Name        string // its path on the server, such as acme/refunds; or its address
	Description string
}

// maxShown is how many skills of one server are shown to those who may load them.
const maxShown = 1_000

// maxSkillText is how many bytes of a skill's description are told to agents.
const maxSkillText = 500

// Skills returns the skills that servers have listed, of those servers whose
// skills may be loaded and that shows accepts. It asks no server. Those that
// would be held back for what they say of themselves are left out, and so are
// those of one server beyond its first thousand.
func (u *Upstreams) Skills(shows func(server string) bool) (all []ServerSkill) {
	if u == nil {
		return nil
	}
	for _, s := range u.servers {
		if !s.Upstream.Skills || s.Disabled || !shows(s.Name) {
			continue
		}
		s.relay.mu.Lock()
		l := s.relay.lists[skills]
		s.relay.mu.Unlock()
		if l == nil {
			continue
		}
		for _, en := range l.entries[:min(len(l.entries), maxShown)] {
			if !s.holdsFlags(l.flagsOf(en)) {
				all = append(all, ServerSkill{s.Name, pathOf(en.skill), cut(printable(strings.Join(strings.Fields(en.skill.Description), " ")), maxSkillText)})
			}
		}
	}
	return all
}

// pathOf returns the name by which agents call a skill: it is unique on its
// server.
func pathOf(e *skill.Entry) string { return strings.TrimPrefix(e.Root(), "skill://") }

// skillFlags are what was found in skills, by their addresses.
type skillFlags struct {
	mu sync.Mutex
	by map[string][]poison.Finding
}

// flagsOf returns what is found in what a skill says of itself.
func (l *list) flagsOf(en entry) []poison.Finding {
	l.flags.mu.Lock()
	defer l.flags.mu.Unlock()
	if found, ok := l.flags.by[en.id]; ok {
		return found
	}
	raw, err := definitionOf(en.skill)
	if err != nil {
		raw = en.raw
	}
	found := poison.Definition(raw)
	l.flags.by[en.id] = found
	return found
}

// definitionOf returns what is pinned of a skill: what it says of itself, and
// the digests of its files.
func definitionOf(e *skill.Entry) (json.RawMessage, error) {
	files := slices.Clone(e.Files)
	slices.SortFunc(files, func(a, b skill.Resource) int { return strings.Compare(a.URI, b.URI) })
	return tool.Encode(told{Name: e.URI, Description: e.Description,
		Input: map[string]any{"frontmatter": e.Frontmatter, "resources": files}})
}

// lender returns the named server if its skills may be loaded.
func (u *Upstreams) lender(server string, shows func(string) bool) (*upstream, error) {
	s, err := u.find(server, shows)
	if err != nil {
		return nil, err
	}
	if !s.Upstream.Skills {
		return nil, tool.Errorf(tool.CodePermission, "the skills of the MCP server %s may not be loaded: the app file does not say skills: true for it", s.Name)
	}
	return s, nil
}

// LoadSkill reads the SKILL.md of a skill of a server, by its name (see
// [ServerSkill]) or its address, and returns its instructions with the entry
// that vouches for them. What is not as listed, or has changed since it was
// first loaded, is refused.
func (u *Upstreams) LoadSkill(ctx context.Context, server, name string, shows func(server string) bool) (*skill.Entry, string, error) {
	s, err := u.lender(server, shows)
	if err != nil {
		return nil, "", err
	}
	defer s.hold()()
	if _, err := s.ready(ctx); err != nil { // what it listed when it ran last may be old
		return nil, "", err
	}
	e, err := s.findSkill(ctx, name)
	if err != nil {
		return nil, "", err
	}
	text, err := s.loadSkill(ctx, e)
	return e, text, err
}

// findSkill returns the entry of a skill, as the server lists it now.
func (s *upstream) findSkill(ctx context.Context, name string) (*skill.Entry, error) {
	var names []string
	if l := s.listed(ctx, skills); l != nil {
		for _, en := range l.entries {
			if name == pathOf(en.skill) || name == en.id {
				return en.skill, nil
			}
			names = append(names, pathOf(en.skill))
		}
	}
	if strings.Contains(name, "://") { // a list need not be whole
		if !strings.HasSuffix(name, "/"+skill.File) {
			name += "/" + skill.File
		}
		e, _, err := s.getSkill(ctx, name)
		return e, err
	}
	const most = 20
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return nil, tool.Errorf(tool.CodeValidation, "the MCP server %s has no skill %.100q; it lists: %s", s.Name, name, printable(orElse(strings.Join(names, ", "), "none")))
}

// loadSkill reads a skill that may be loaded, and holds it against its entry.
func (s *upstream) loadSkill(ctx context.Context, e *skill.Entry) (string, error) {
	refuse := func(why error) error {
		return tool.Errorf(tool.CodeExternal, "the skill %s of the MCP server %s is not loaded: %s", printable(pathOf(e)), s.Name, printable(why.Error()))
	}
	if e.Files == nil {
		return "", refuse(fmt.Errorf("its files are made on demand, and nothing vouches for them"))
	}
	if err := e.TooLarge(); err != nil {
		return "", refuse(err)
	}
	if err := s.judgeSkill(ctx, e); err != nil {
		return "", err
	}
	data, err := s.readFile(ctx, e.URI)
	if err != nil {
		return "", err
	}
	text, err := e.Instructions(data)
	if err != nil {
		return "", refuse(err)
	}
	return text, nil
}

// judgeSkill holds a skill against what was accepted of it, as tools are.
func (s *upstream) judgeSkill(ctx context.Context, e *skill.Entry) error {
	raw, err := definitionOf(e)
	if err != nil {
		return err
	}
	m := &manifest{made: map[string]*manifestEntry{e.URI: {raw: raw, sum: digest(raw)}}, order: []string{e.URI}}
	if err := s.judge(ctx, m, true); err != nil {
		return err
	}
	if len(m.held) > 0 {
		return s.heldBack(m.held[0])
	}
	return nil
}

func (s *upstream) readFile(ctx context.Context, uri string) ([]byte, error) {
	raw, err := s.call(ctx, methodReadResource, rawParams{URI: uri}, nil)
	if err != nil {
		return nil, err
	}
	data, err := contentOf(raw, uri)
	if err != nil {
		return nil, tool.Errorf(tool.CodeExternal, "what the MCP server %s sent of %.200q cannot be read: %v", s.Name, uri, err)
	}
	return data, nil
}

// ReadSkill returns a file of a skill that was loaded from an entry, by its
// path in the folder of the skill. What the entry does not list is refused
// unread, and what is not as listed after.
func (u *Upstreams) ReadSkill(ctx context.Context, server string, e *skill.Entry, file string, shows func(server string) bool) ([]byte, error) {
	s, err := u.lender(server, shows)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(file, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	at := slices.IndexFunc(e.Files, func(f skill.Resource) bool {
		return f.URI == e.Root()+"/"+file || f.URI == e.Root()+"/"+strings.Join(parts, "/")
	})
	if at < 0 {
		var names []string
		for _, f := range e.Files[:min(len(e.Files), 50)] {
			names = append(names, strings.TrimPrefix(f.URI, e.Root()+"/"))
		}
		return nil, tool.Errorf(tool.CodeValidation, "%.200q is no file of the skill, which has: %s", file, printable(strings.Join(names, ", ")))
	}
	uri := e.Files[at].URI
	data, err := s.readFile(ctx, uri)
	if err != nil {
		return nil, err
	}
	if err := e.Verify(uri, data); err != nil {
		return nil, tool.Errorf(tool.CodeExternal, "the file of the MCP server %s is refused: %s; load the skill again to have what it is now", s.Name, printable(err.Error()))
	}
	return data, nil
}
