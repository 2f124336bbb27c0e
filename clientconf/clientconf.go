// Package clientconf reads and changes the MCP configuration files of other
// people's clients.
package clientconf

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

const bom = "\ufeff"

// A Server is one MCP server as a client's file has it, with its values in
// clear: hand it to Secrets.Secure before it is written or shown.
type Server struct {
	Name     string            `json:"name"`
	Command  string            `json:"command,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Cwd      string            `json:"cwd,omitempty"`
	URL      string            `json:"url,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Disabled bool              `json:"disabled,omitempty"`
	Hidden   []string          `json:"hidden,omitempty"`        // tools that are switched off
	Only     []string          `json:"only,omitempty"`          // the only tools that are not; nil: all that Hidden lacks
	Start    int               `json:"start_timeout,omitempty"` // seconds that it may take to start; 0: nothing is said
	Timeout  int               `json:"timeout,omitempty"`       // seconds that a call may take; 0: nothing is said
	Source   string            `json:"source,omitempty"`        // file:line:column, and the project that it belongs to

	file string
	path []string // where it stands in the file
}

// Helve reports whether the server is Helve itself.
func (s Server) Helve() bool {
	base := path.Base(strings.ReplaceAll(s.Command, `\`, "/"))
	return strings.TrimSuffix(strings.ToLower(base), ".exe") == "helve"
}

// File returns the file from which the server was read, as it was named.
func (s Server) File() string { return s.file }

// same reports whether two servers are started or reached in the same way.
func (s Server) same(o Server) bool {
	return s.Command == o.Command && s.Cwd == o.Cwd && s.URL == o.URL &&
		slices.Equal(s.Args, o.Args) && maps.Equal(s.Env, o.Env) && maps.Equal(s.Headers, o.Headers)
}

// relative reports whether the command, or an argument that begins like a
// path, is meant from the folder in which the server runs.
func (s Server) relative() bool {
	at := func(word string) bool {
		return slices.ContainsFunc([]string{"./", "../", `.\`, `..\`}, func(lead string) bool { return strings.HasPrefix(word, lead) })
	}
	return at(s.Command) || slices.ContainsFunc(s.Args, at)
}

// foreign returns the references in the server's values that nothing else than
// its client can fill in, each once.
func (s Server) foreign() []string {
	var out []string
	for _, v := range s.values() {
		for _, m := range reference.FindAllStringSubmatch(v, -1) {
			if isForeign(m[1]) && !slices.Contains(out, m[0]) {
				out = append(out, m[0])
			}
		}
	}
	return out
}

// values returns the texts of a definition, in an order that stays.
func (s Server) values() []string {
	out := append([]string{s.Command, s.Cwd, s.URL}, s.Args...)
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			out = append(out, m[k])
		}
	}
	return out
}

// A Warning tells what of a file was not taken over. It holds no values of the file.
type Warning struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

func (w Warning) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Text)
}

// A document is a file that was parsed.
type document struct {
	file, text string
	root       *value
	toml       bool
	sections   []section // of TOML
	warnings   []Warning
}

// parse tells JSON from TOML by how the text begins, or by the file's name, and parses it.
func parse(file string, data []byte) (*document, error) {
	d := &document{file: file, text: string(data)}
	head := strings.TrimLeft(strings.TrimPrefix(d.text, bom), " \t\r\n")
	var err error
	switch {
	case strings.IndexByte(d.text, 0) >= 0:
		return nil, fmt.Errorf("%s: the file holds NUL bytes; save it as UTF-8", file)
	case head == "":
		return nil, fmt.Errorf("%s: the file is empty", file)
	case head[0] == '{' || head[0] == '/' || strings.HasSuffix(strings.ToLower(file), ".json"):
		d.root, err = parseJSONC(file, d.text)
	default:
		d.toml = true
		d.root, d.sections, err = parseTOML(file, d.text)
	}
	return d, err
}

// A place holds the servers of one part of a file.
type place struct {
	path    []string
	project string
	off     []string // servers that are switched off elsewhere in the file
	only    []string // the only ones that are not; nil: there is no such list
}

// places returns where servers stand in a document.
func (d *document) places() []place {
	if d.toml {
		return []place{{path: []string{"mcp_servers"}}}
	}
	out := []place{
		{path: []string{"mcpServers"}, off: texts(d.root.get("mcp", "excluded")), only: texts(d.root.get("mcp", "allowed"))}, // Claude, Cursor, Windsurf, Gemini CLI
		{path: []string{"servers"}},        // VS Code, mcp.json
		{path: []string{"mcp", "servers"}}, // VS Code, settings.json
	}
	projects := d.root.get("projects") // Claude Code
	if projects != nil {
		for _, m := range projects.members {
			out = append(out, place{path: []string{"projects", m.key, "mcpServers"}, project: m.key, off: texts(m.value.get("disabledMcpServers"))})
		}
	}
	return out
}

// texts returns the strings of a list.
func texts(list *value) []string {
	var out []string
	if list != nil {
		for _, item := range list.items {
			if item.kind == isString {
				out = append(out, item.text)
			}
		}
	}
	return out
}

// Read returns the servers of a client's file, in the order in which they
// stand there. The client is told by the content. A file without servers has a
// warning. What cannot be read is an error with its line and column.
func Read(file string, data []byte) ([]Server, []Warning, error) {
	d, err := parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	var out []Server
	found := false
	for _, p := range d.places() {
		servers := d.root.get(p.path...)
		if servers == nil || servers.kind == isNull {
			continue
		}
		if servers.kind != isMap {
			return nil, nil, (&scanner{file: file, text: d.text}).fail(servers.start, "%s is not an object of servers", strings.Join(p.path, "."))
		}
		found = true
		for i, m := range servers.members {
			if servers.get(m.key) != servers.members[i].value {
				d.warn(m.start, "%q is given again below, which counts", m.key)
				continue
			}
			if s, ok := d.server(m, p); ok {
				out = append(out, s)
			}
		}
	}
	if !found {
		d.warn(d.root.start, "the file holds no MCP servers: none of mcpServers, servers, mcp.servers and mcp_servers is there")
	}
	return out, d.warnings, nil
}

func (d *document) warn(at int, format string, args ...any) {
	line, column := position(d.text, at)
	d.warnings = append(d.warnings, Warning{d.file, line, column, fmt.Sprintf(format, args...)})
}

// silent are keys that say nothing that a server's definition needs.
var silent = []string{"type", "transport", "transport_type", "description", "name", "title", "gallery", "version", "enabled", "disabled"}

// server reads one server; false: it cannot be taken over, as a warning says.
func (d *document) server(m member, p place) (Server, bool) {
	line, column := position(d.text, m.start)
	s := Server{Name: m.key, Source: fmt.Sprintf("%s:%d:%d", d.file, line, column),
		Disabled: slices.Contains(p.off, m.key) || p.only != nil && !slices.Contains(p.only, m.key), file: d.file, path: append(slices.Clone(p.path), m.key)}
	if p.project != "" {
		s.Source += " (project " + p.project + ")"
	}
	if m.value.kind != isMap {
		d.warn(m.start, "%q is not an object, and is left out", m.key)
		return s, false
	}
	var left []string
	kind := ""
	for _, f := range m.value.members {
		if f.key == "type" && f.value.kind == isString {
			kind = f.value.text
		}
		if !d.field(&s, f) && !slices.Contains(silent, f.key) {
			left = append(left, f.key)
		}
	}
	if len(left) > 0 {
		d.warn(m.start, "%q: not taken over: %s", m.key, strings.Join(left, ", "))
	}
	if slices.Contains(left, "envFile") {
		d.warn(m.start, "%q: its envFile is not read: name what the server needs of it under env, as {{secret.NAME}} or {{env.NAME}}", m.key)
	}
	for _, ref := range s.foreign() {
		d.warn(m.start, "%q: only its client knows what %s stands for; it stays as it is", m.key, ref)
	}
	if s.Cwd == "" && p.project != "" && s.relative() {
		s.Cwd = p.project // where Claude Code starts it
	}
	switch {
	case s.Command == "" && s.URL == "":
		d.warn(m.start, "%q has neither a command nor a url, and is left out", m.key)
		return s, false
	case s.Command != "" && s.URL != "" && (kind == "http" || kind == "sse" || kind == "streamable-http"):
		s.Command, s.Args, s.Env, s.Cwd = "", nil, nil, ""
		d.warn(m.start, "%q has a command and a url; its type says that the url counts", m.key)
	case s.Command != "" && s.URL != "":
		s.URL, s.Headers = "", nil
		d.warn(m.start, "%q has a command and a url; the command is taken", m.key)
	case s.Command != "" && len(s.Headers) > 0:
		s.Headers = nil
		d.warn(m.start, "%q has headers and no url; they are left out", m.key)
	case s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Cwd != ""):
		s.Args, s.Env, s.Cwd = nil, nil, ""
		d.warn(m.start, "%q has a url; args, env and cwd belong to servers with a command, and are left out", m.key)
	}
	return s, true
}

// field takes over one key of a server; false: it is not one that is.
func (d *document) field(s *Server, f member) bool {
	v := f.value
	switch f.key {
	case "command":
		if v.kind == isList { // the command and its arguments in one list
			if all := texts(v); len(all) > 0 {
				s.Command, s.Args = all[0], append(all[1:], s.Args...)
			}
			return true
		}
		return take(&s.Command, v)
	case "args":
		for _, item := range v.items {
			if item.kind == isList || item.kind == isMap || item.kind == isNull {
				s.Args = nil
				return false
			}
			s.Args = append(s.Args, item.text)
		}
		return v.kind == isList
	case "env":
		return pairs(&s.Env, v, "%s")
	case "headers", "http_headers":
		return pairs(&s.Headers, v, "%s")
	case "env_http_headers": // Codex: the names of variables
		return pairs(&s.Headers, v, "${%s}")
	case "bearer_token_env_var":
		var name string
		if !take(&name, v) {
			return false
		}
		set(&s.Headers, "Authorization", "Bearer ${"+name+"}")
		return true
	case "env_vars":
		whole := v.kind == isList
		for _, item := range v.items { // NAME, or {name = NAME, source = …}
			name := item
			if item.kind == isMap {
				name = item.get("name")
			}
			if name == nil || name.kind != isString {
				whole = false
				continue
			}
			set(&s.Env, name.text, "${"+name.text+"}")
		}
		return whole
	case "cwd":
		return take(&s.Cwd, v)
	case "disabledTools", "excludeTools", "disabled_tools": // Windsurf, Gemini CLI, Codex
		s.Hidden = append(s.Hidden, texts(v)...)
		return v.kind == isList
	case "includeTools", "enabled_tools": // Gemini CLI, Codex
		s.Only = append(s.Only, texts(v)...)
		s.Disabled = s.Disabled || v.kind == isList && len(s.Only) == 0
		return v.kind == isList
	case "startup_timeout_sec": // Codex
		return seconds(&s.Start, v, 1)
	case "startup_timeout_ms":
		return seconds(&s.Start, v, 1000)
	case "tool_timeout_sec":
		return seconds(&s.Timeout, v, 1)
	case "httpUrl": // Gemini CLI: before url
		return take(&s.URL, v)
	case "url", "serverUrl":
		if s.URL != "" {
			return v.kind == isString
		}
		return take(&s.URL, v)
	case "disabled":
		s.Disabled = s.Disabled || v.text == "true"
	case "enabled":
		s.Disabled = s.Disabled || v.text == "false"
	}
	return false
}

// take takes over a text; false: it is none.
func take(into *string, v *value) bool {
	if v.kind != isString {
		return false
	}
	*into = v.text
	return true
}

// seconds takes over a time of which unit are one second, rounded up, within
// what an app file may say; false: it is none.
func seconds(into *int, v *value, unit float64) bool {
	n, err := strconv.ParseFloat(v.text, 64)
	if v.kind != isNumber || err != nil || !(n > 0) {
		return false
	}
	*into = int(math.Ceil(min(n/unit, 3600)))
	return true
}

// pairs reads an object of scalars.
func pairs(into *map[string]string, v *value, format string) bool {
	if v.kind != isMap {
		return v.kind == isNull
	}
	whole := true
	for _, m := range v.members {
		switch m.value.kind {
		case isList, isMap:
			whole = false
		case isNull: // VS Code: unset
		default:
			set(into, m.key, strings.ReplaceAll(format, "%s", m.value.text))
		}
	}
	return whole
}

func set(into *map[string]string, key, text string) {
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[key] = text
}
