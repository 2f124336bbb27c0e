package clientconf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// An Outcome says what became of one server.
type Outcome struct {
	Name   string `json:"name"`         // in the client's file
	As     string `json:"as,omitempty"` // in the app file
	Action string `json:"action"`       // added, same, or skipped
	Note   string `json:"note,omitempty"`
	Server Server `json:"server"` // as it was written, without secrets
}

// newApp is what an app file begins with that is made by an import.
const newApp = `# MCP servers that were imported from the files of other clients.
# Find mistakes with: helve app check FILE

app:
  app_id: imported
  name: Imported
`

// Merge adds servers to the text of an app file and leaves all else as it is,
// to the byte; a file without content becomes a small app. A server that is
// there already is not added again; one with another definition gets the name
// with _2. taken reports names that the app has from other files; nil: none.
// An error is a file to which nothing can be added; it says what to write by hand.
func Merge(file string, app []byte, servers []Server, p Secrets, taken func(name string) bool) ([]byte, []Outcome, []Reference, error) {
	text := string(app)
	if strings.TrimSpace(strings.TrimPrefix(text, bom)) == "" {
		text = newApp
	}
	there, err := appServers(file, text)
	if err != nil {
		return nil, nil, nil, err
	}
	m := &merger{secrets: p, there: there, taken: taken, raw: map[string]Server{}}
	var add []Server
	for _, s := range servers {
		if secured, ok := m.place(s); ok {
			add = append(add, secured)
		}
	}
	if len(add) == 0 {
		return app, m.outcomes, m.refs, nil
	}
	out, err := insertServers(file, text, add)
	return []byte(out), m.outcomes, m.refs, err
}

// A merger finds names for servers.
type merger struct {
	secrets  Secrets
	there    map[string]Server // in the app file, and added
	raw      map[string]Server // added, in clear
	taken    func(string) bool
	outcomes []Outcome
	refs     []Reference
}

// place decides on one server; true: it is to be added.
func (m *merger) place(s Server) (Server, bool) {
	o := Outcome{Name: s.Name, Action: "skipped"}
	defer func() { m.outcomes = append(m.outcomes, o) }()
	if s.Helve() {
		o.Note = "it is Helve itself"
		return s, false
	}
	base := validName(s.Name)
	for i := 1; ; i++ {
		name := base
		if i > 1 {
			name = fmt.Sprintf("%s_%d", base, i)
		}
		secured, refs := m.secrets.Secure(s, name)
		old, known := m.there[name]
		raw, added := m.raw[name]
		switch {
		case known && old.same(secured) && (!added || raw.same(s)):
			o.As, o.Action, o.Server, o.Note = name, "same", secured, "it is there already"
			m.refs = append(m.refs, refs...)
			return s, false
		case known || m.taken != nil && m.taken(name):
			continue
		}
		o.As, o.Action, o.Server = name, "added", secured
		switch {
		case i > 1:
			o.Note = fmt.Sprintf("%s is there with another definition", base)
		case name != s.Name:
			o.Note = "the name was made valid"
		}
		m.there[name], m.raw[name] = secured, s
		m.refs = append(m.refs, refs...)
		return secured, true
	}
}

var (
	nameRune  = regexp.MustCompile(`[^A-Za-z0-9-]+`)
	nameFirst = regexp.MustCompile(`^[-_]+|_+$`)
)

// validName makes a name that app files accept for a server: letters, digits,
// - and single _.
func validName(name string) string {
	if name = nameFirst.ReplaceAllString(nameRune.ReplaceAllString(name, "_"), ""); name == "" {
		return "server"
	}
	return name
}

// appServers returns the servers that an app file itself declares.
func appServers(file, text string) (map[string]Server, error) {
	var doc struct {
		Tools struct {
			Servers map[string]struct {
				Command, Cwd, URL string
				Args              []string
				Env, Headers      map[string]string
			} `yaml:"mcp_servers"`
		}
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := map[string]Server{}
	for name, s := range doc.Tools.Servers {
		out[name] = Server{Name: name, Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd, URL: s.URL, Headers: s.Headers}
	}
	return out, nil
}

// insertServers returns the text with servers added. Each way of inserting is
// tried until one yields what was there and the servers, and nothing else.
func insertServers(file, text string, servers []Server) (string, error) {
	lead := ""
	if strings.HasPrefix(text, bom) {
		lead, text = bom, text[len(bom):]
	}
	before, err := decoded(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	want, err := withServers(before, servers)
	if err == nil {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		for _, out := range candidates(text, doc.Content[0], servers) {
			if after, err := decoded(out); err == nil && reflect.DeepEqual(after, want) {
				return lead + out, nil
			}
		}
		err = errors.New("the place of tools.mcp_servers is written in a way that cannot be extended without rewriting it")
	}
	return "", fmt.Errorf("%s: %w; add this by hand:\n\n%s", file, err, strings.TrimLeft(block([]string{"tools", "mcp_servers"}, servers, 0, "\n"), "\n"))
}

func decoded(text string) (map[string]any, error) {
	var v map[string]any
	err := yaml.Unmarshal([]byte(text), &v)
	return v, err
}

// withServers returns what the file must say when servers were added.
func withServers(before map[string]any, servers []Server) (map[string]any, error) {
	out := maps.Clone(before)
	if out == nil {
		return nil, errors.New("the file is not a map")
	}
	level := out
	for _, key := range []string{"tools", "mcp_servers"} {
		next, ok := level[key].(map[string]any)
		if level[key] != nil && !ok {
			return nil, fmt.Errorf("%s is not a map", key)
		}
		if next = maps.Clone(next); next == nil {
			next = map[string]any{}
		}
		level[key], level = next, next
	}
	for _, s := range servers {
		v, err := decoded("x: " + flow(s))
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", s.Name, err)
		}
		level[s.Name] = v["x"]
	}
	return out, nil
}

// candidates returns the text with servers inserted, in each way that may do.
func candidates(text string, node *yaml.Node, servers []Server) []string {
	keys := []string{"tools", "mcp_servers"}
	var key *yaml.Node // of node
	for len(keys) > 0 {
		k, v := entry(node, keys[0])
		if v == nil {
			break
		}
		key, node, keys = k, v, keys[1:]
	}
	end := "\n"
	if strings.Contains(text, "\r\n") {
		end = "\r\n"
	}
	switch {
	case node.Kind == yaml.MappingNode && node.Style&yaml.FlowStyle != 0 && len(node.Content) > 0:
		at := offset(text, node.Line, node.Column)
		if at >= len(text) || text[at] != '{' {
			return nil
		}
		return []string{text[:at+1] + inline(keys, servers) + ", " + text[at+1:]}
	case node.Kind == yaml.MappingNode && len(node.Content) > 0:
		indent := node.Content[0].Column - 1
		last, first := lastLine(text, node), lineStart(text, node.Content[0].Line)
		gap := ""
		if indent == 0 {
			gap = end
		}
		added := block(keys, servers, indent, end)
		return []string{insertLines(text, last, gap+added, end), insertLines(text, first, added+gap, end)}
	case key != nil && (node.Kind == yaml.MappingNode || node.Kind == yaml.ScalarNode && node.Tag == "!!null"):
		return fillEmpty(text, key, node, keys, servers, end)
	}
	return nil
}

// fillEmpty replaces an empty value, {} or null or nothing at all.
func fillEmpty(text string, key, node *yaml.Node, keys []string, servers []Server, end string) []string {
	var out []string
	at, n := offset(text, node.Line, node.Column), 0
	rest := text[at:]
	if node.Kind == yaml.MappingNode {
		if !strings.HasPrefix(rest, "{") || strings.IndexByte(rest, '}') < 0 {
			return nil
		}
		n = strings.IndexByte(rest, '}') + 1
		out = append(out, text[:at]+"{"+inline(keys, servers)+"}"+rest[n:]) // within a flow map
	} else if n = len(node.Value); !strings.HasPrefix(rest, node.Value) {
		n = 0
	}
	added := block(keys, servers, key.Column+1, end)
	emptied := text
	if n > 0 {
		emptied = strings.TrimRight(text[:at], " ") + rest[n:]
	}
	return append([]string{insertLines(emptied, lineStart(emptied, key.Line+1), added, end)}, out...)
}

// entry returns the last pair of a map with a key.
func entry(m *yaml.Node, key string) (k, v *yaml.Node) {
	if m.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if m.Content[i].Value == key {
				k, v = m.Content[i], m.Content[i+1]
			}
		}
	}
	return k, v
}

// lineStart returns where a line begins, counted from 1.
func lineStart(text string, line int) int {
	at := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}

// offset returns where a character stands.
func offset(text string, line, column int) int {
	at := lineStart(text, line)
	for ; column > 1 && at < len(text); column-- {
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
	return at
}

// lastLine returns where the lines of a block map end: behind the last that is
// indented as deep as its keys.
func lastLine(text string, m *yaml.Node) int {
	indent := m.Content[0].Column - 1
	start := lineStart(text, m.Content[len(m.Content)-2].Line)
	at, end := start, start
	for line := range strings.Lines(text[start:]) {
		content := strings.TrimLeft(line, " ")
		if blank := strings.TrimSpace(content) == ""; !blank {
			if at > start && (len(line)-len(content) < indent || strings.HasPrefix(line, "...")) {
				break
			}
			end = at + len(line)
		}
		at += len(line)
	}
	return end
}

// insertLines puts whole lines at an offset where a line begins or the text ends.
func insertLines(text string, at int, lines, end string) string {
	if at > 0 && text[at-1] != '\n' { // the last line has no end, and gets none
		return text[:at] + end + strings.TrimSuffix(lines, end) + text[at:]
	}
	return text[:at] + lines + text[at:]
}

// block writes servers below keys, as lines.
func block(keys []string, servers []Server, indent int, end string) string {
	var b strings.Builder
	line := func(depth int, s string) { b.WriteString(strings.Repeat(" ", indent+2*depth) + s + end) }
	for i, key := range keys {
		line(i, key+":")
	}
	for _, s := range servers {
		depth := len(keys)
		line(depth, scalar(s.Name)+":")
		for _, f := range fields(s) {
			switch v := f.value.(type) {
			case map[string]string:
				line(depth+1, f.key+":")
				for _, k := range slices.Sorted(maps.Keys(v)) {
					line(depth+2, scalar(k)+": "+scalar(v[k]))
				}
			case []string:
				items := make([]string, len(v))
				for i, item := range v {
					items[i] = scalar(item)
				}
				if one := "[" + strings.Join(items, ", ") + "]"; len(one) < 90 {
					line(depth+1, f.key+": "+one)
					continue
				}
				line(depth+1, f.key+":")
				for _, item := range items {
					line(depth+2, "- "+item)
				}
			case hidden:
				line(depth+1, f.key+": "+v.inline())
			case string:
				line(depth+1, f.key+": "+scalar(v))
			default:
				line(depth+1, fmt.Sprint(f.key, ": ", v))
			}
		}
	}
	return b.String()
}

// inline writes servers below keys as the inside of a flow map.
func inline(keys []string, servers []Server) string {
	parts := make([]string, len(servers))
	for i, s := range servers {
		parts[i] = quoted(s.Name) + ": " + flow(s)
	}
	out := strings.Join(parts, ", ")
	for _, key := range slices.Backward(keys) {
		out = key + ": {" + out + "}"
	}
	return out
}

// flow writes the definition of a server as JSON, which is YAML too.
func flow(s Server) string {
	parts := []string{}
	for _, f := range fields(s) {
		var body string
		switch v := f.value.(type) {
		case string:
			body = quoted(v)
		case []string:
			items := make([]string, len(v))
			for i, item := range v {
				items[i] = quoted(item)
			}
			body = "[" + strings.Join(items, ", ") + "]"
		case map[string]string:
			items := []string{}
			for _, k := range slices.Sorted(maps.Keys(v)) {
				items = append(items, quoted(k)+": "+quoted(v[k]))
			}
			body = "{" + strings.Join(items, ", ") + "}"
		case hidden:
			body = v.inline()
		default:
			body = fmt.Sprint(v)
		}
		parts = append(parts, f.key+": "+body)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

type fieldValue struct {
	key   string
	value any
}

// fields returns what an app file says of a server, without what is empty.
func fields(s Server) []fieldValue {
	var out []fieldValue
	add := func(key string, v any) {
		r := reflect.ValueOf(v)
		if !r.IsZero() && (r.Kind() == reflect.Bool || r.Kind() == reflect.Int || r.Len() > 0) {
			out = append(out, fieldValue{key, v})
		}
	}
	add("command", s.Command)
	add("args", s.Args)
	add("env", s.Env)
	add("cwd", s.Cwd)
	add("url", s.URL)
	add("headers", s.Headers)
	add("disabled", s.Disabled)
	add("start_timeout", s.Start)
	add("timeout", s.Timeout)
	add("only", s.Only)
	add("overrides", hidden(s.Hidden))
	return out
}

// hidden are tools, for the overrides of a server.
type hidden []string

func (h hidden) inline() string {
	items := make([]string, len(h))
	for i, name := range h {
		items[i] = quoted(name) + ": {hidden: true}"
	}
	return "{" + strings.Join(items, ", ") + "}"
}

var (
	bareScalar = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_/.@+-]*$`)
	reserved   = regexp.MustCompile(`(?i)^(?:true|false|null|yes|no|on|off|y|n)$`)
)

// scalar writes a text in YAML, plain where that is surely a text.
func scalar(s string) string {
	if bareScalar.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return quoted(s)
}

// quoted writes a text between double quotes, for JSON, YAML and TOML alike.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(s)
	var out strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if r >= 0x7f && r < 0xa0 || r == '\ufeff' || r == '\ufffe' || r == '\uffff' {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
