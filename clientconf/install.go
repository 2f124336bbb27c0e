package clientconf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An edit replaces a part of a text.
type edit struct {
	start, end int
	text       string
}

// apply makes edits, which do not overlap.
func apply(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return a.end - b.end
	})
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.start < at {
			e.start = at
		}
		b.WriteString(text[at:e.start] + e.text)
		at = max(e.end, at)
	}
	return b.String() + text[at:]
}

// Install returns the text of the client's file with Helve in it as a server,
// and without those of the servers in replace that were read from it. An
// earlier entry of Helve is replaced. All else stays, to the byte. Data without
// content becomes a file.
func (c Client) Install(file string, data []byte, e Entry, replace []Server) ([]byte, error) {
	var paths [][]string
	for _, s := range replace {
		if s.file == file {
			paths = append(paths, s.path)
		}
	}
	return c.install(file, data, e, paths)
}

func (c Client) install(file string, data []byte, e Entry, remove [][]string) ([]byte, error) {
	if len(e.Args) == 0 {
		e.Args = []string{}
	}
	if lead := strings.TrimPrefix(string(data), bom); strings.TrimSpace(lead) == "" {
		if c.ID == "codex" {
			return append(data, tomlEntry(e, "\n")...), nil
		}
		return append(data, c.Snippet(e)+"\n"...), nil
	}
	d, err := c.parse(file, data)
	if err != nil {
		return nil, err
	}
	out, err := "", error(nil)
	if old := d.root.get(append(c.container(d), entryKey)...); !plainEntry(old) {
		out, err = d.renew(old, e, remove)
	} else if d.toml {
		out, err = d.installTOML(e, remove)
	} else {
		out, err = d.installJSON(c, e, remove)
	}
	if err != nil {
		return nil, err
	}
	if got, ok := c.entry(file, []byte(out)); !ok || got.Command != e.Command || !slices.Equal(got.Args, e.Args) {
		return nil, fmt.Errorf("%s: Helve cannot be added to this file as it is written; add it by hand:\n\n%s", file, c.Snippet(e))
	}
	return []byte(out), nil
}

// parse reads the client's file and sees that it has the client's format.
func (c Client) parse(file string, data []byte) (*document, error) {
	d, err := parse(file, data)
	if c.ID != "codex" && (err != nil && d != nil && d.toml || err == nil && d.toml) {
		return nil, fmt.Errorf("%s: the file is no JSON object, as the files of %s are", file, c.Title)
	}
	if err == nil && d.toml != (c.ID == "codex") {
		return nil, fmt.Errorf("%s: the file is JSON, and %s reads TOML", file, c.Title)
	}
	return d, err
}

// container returns the path under which Helve stands in a document.
func (c Client) container(d *document) []string {
	if c.key == "servers" && d.root.get("servers") == nil && d.root.get("mcp", "servers") != nil {
		return []string{"mcp", "servers"}
	}
	return []string{c.key}
}

// entry returns what a client's file says of Helve.
func (c Client) entry(file string, data []byte) (Entry, bool) {
	d, err := c.parse(file, data)
	if err != nil {
		return Entry{}, false
	}
	v := d.root.get(append(c.container(d), entryKey)...)
	if v == nil || v.kind != isMap || v.get("command") == nil {
		return Entry{}, false
	}
	e := Entry{Command: v.get("command").text, Args: []string{}}
	if args := v.get("args"); args != nil {
		e.Args = append(e.Args, texts(args)...)
	}
	return e, true
}

// plainEntry reports whether an entry says nothing but how Helve is started, so
// that nothing is lost with it. There is nothing to keep of one without a command.
func plainEntry(v *value) bool {
	if v == nil || v.kind != isMap || v.get("command") == nil {
		return true
	}
	return !slices.ContainsFunc(v.members, func(m member) bool { return !slices.Contains([]string{"type", "command", "args"}, m.key) })
}

// Plain reports whether the client's file says no more of Helve than how it is
// started: not which of its calls are approved, say.
func (c Client) Plain(file string, data []byte) bool {
	d, err := c.parse(file, data)
	return err == nil && plainEntry(d.root.get(append(c.container(d), entryKey)...))
}

// renew writes the command and its arguments into an entry that says more, of
// which all the rest stays.
func (d *document) renew(old *value, e Entry, remove [][]string) (string, error) {
	var edits []edit
	args := "[" + quotedList(e.Args) + "]"
	for _, m := range old.members {
		switch {
		case m.key == "args":
			edits = append(edits, edit{m.value.start, m.value.end, args})
		case m.key == "command" && old.get("args") == nil:
			join := `"args": ` + args + ", "
			if d.toml && old.open {
				join = "args = " + args + d.lineEnd() + d.indent(m.start)
			} else if d.toml {
				join = "args = " + args + ", "
			}
			edits = append(edits, edit{m.start, m.start, join})
			fallthrough
		case m.key == "command":
			edits = append(edits, edit{m.value.start, m.value.end, quoted(e.Command)})
		}
	}
	if !d.toml {
		return apply(d.text, append(edits, d.removals(remove)...)), nil
	}
	gone, err := d.tables(remove)
	return apply(d.text, append(edits, gone...)), err
}

// Installed reports whether Helve stands in the client's file.
func (c Client) Installed(file string, data []byte) bool {
	_, ok := c.entry(file, data)
	return ok
}

func (d *document) lineEnd() string {
	if strings.Contains(d.text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

func (d *document) installJSON(c Client, e Entry, remove [][]string) (string, error) {
	path := c.container(d)
	at := d.root.get(path...)
	null := at != nil && at.kind == isNull
	if at != nil && at.kind != isMap && !null {
		return "", (&scanner{file: d.file, text: d.text}).fail(at.start, "%s is not an object of servers", strings.Join(path, "."))
	}
	remove = append(slices.Clone(remove), append(slices.Clone(path), entryKey))
	edits := d.removals(remove)
	end, unit := d.lineEnd(), "  "
	if m := d.root.members; len(m) > 0 && d.indent(m[0].start) != "" {
		unit = d.indent(m[0].start)
	}
	if at == nil {
		indent := unit
		body := quoted(c.key) + ": {" + end + indent + unit + quoted(entryKey) + ": " + c.json(e, indent+unit, unit, end) + end + indent + "}"
		edits = append(edits, d.first(d.root, nil, body, indent, "", end))
		return apply(d.text, edits), nil
	}
	outer := d.indent(at.start)
	if null {
		body := "{" + end + outer + unit + quoted(entryKey) + ": " + c.json(e, outer+unit, unit, end) + end + outer + "}"
		return apply(d.text, append(edits, edit{at.start, at.end, body})), nil
	}
	indent := outer + unit
	if len(at.members) > 0 && d.indent(at.members[0].start) != "" {
		indent = d.indent(at.members[0].start)
	}
	gone := func(m member) bool {
		return slices.ContainsFunc(remove, func(p []string) bool {
			return slices.Equal(p[:len(p)-1], path) && p[len(p)-1] == m.key
		})
	}
	body := quoted(entryKey) + ": " + c.json(e, indent, unit, end)
	edits = append(edits, d.first(at, gone, body, indent, outer, end))
	return apply(d.text, edits), nil
}

// first puts a member at the beginning of an object.
func (d *document) first(object *value, gone func(member) bool, body, indent, outer, end string) edit {
	stays := slices.ContainsFunc(object.members, func(m member) bool { return gone == nil || !gone(m) })
	text := end + indent + body
	if stays {
		text += ","
	}
	rest := strings.TrimLeft(d.text[object.start+1:], " \t\r")
	if !strings.HasPrefix(rest, "\n") { // the object goes on in this line
		text += end
		if stays {
			text += indent
		} else {
			text += outer
		}
	}
	return edit{object.start + 1, object.start + 1, text}
}

// indent returns the white space before an offset, if nothing else stands
// before it in its line; else that at the beginning of the line.
func (d *document) indent(at int) string {
	line := d.text[strings.LastIndexByte(d.text[:at], '\n')+1 : at]
	line = strings.TrimPrefix(line, bom)
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// removals returns the edits that take members out of their objects.
func (d *document) removals(paths [][]string) []edit {
	var out []edit
	done := map[*value]bool{}
	for _, p := range paths {
		object := d.root.get(p[:len(p)-1]...)
		if object == nil || object.kind != isMap || done[object] {
			continue
		}
		done[object] = true
		keep := -1 // the last that stays
		var gone []bool
		for i, m := range object.members {
			g := slices.ContainsFunc(paths, func(q []string) bool {
				return q[len(q)-1] == m.key && d.root.get(q[:len(q)-1]...) == object
			})
			if gone = append(gone, g); !g {
				keep = i
			}
		}
		for i, m := range object.members {
			if gone[i] {
				out = append(out, d.removal(m)...)
			}
		}
		last := len(object.members) - 1
		if keep >= 0 && keep < last && object.members[last].comma < 0 {
			comma := object.members[keep].comma
			out = append(out, edit{comma, comma + 1, ""})
		}
	}
	return out
}

// removal takes out one member with its comma, and the line if it is empty then.
func (d *document) removal(m member) []edit {
	start, end := m.start, m.value.end
	var out []edit
	if m.comma >= 0 {
		if strings.TrimSpace(d.text[end:m.comma]) == "" {
			end = m.comma + 1
		} else {
			out = append(out, edit{m.comma, m.comma + 1, ""})
		}
	}
	left := strings.TrimRight(d.text[:start], " \t")
	right := strings.TrimLeft(d.text[end:], " \t\r")
	switch {
	case strings.HasSuffix(left, "\n") && strings.HasPrefix(right, "\n"):
		start, end = len(left), len(d.text)-len(right)+1
	case strings.HasPrefix(d.text[end:], " ") && m.comma >= 0:
		end++
	}
	return append(out, edit{start, end, ""})
}

func (d *document) installTOML(e Entry, remove [][]string) (string, error) {
	remove = append(slices.Clone(remove), []string{"mcp_servers", entryKey})
	if servers := d.root.get("mcp_servers"); servers != nil && !servers.open {
		return "", (&scanner{file: d.file, text: d.text}).fail(servers.start, "mcp_servers is an inline table, which cannot be added to; write it as tables: [mcp_servers.NAME]")
	}
	text, err := d.withoutTables(remove)
	if err != nil {
		return "", err
	}
	end := d.lineEnd()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += end
	}
	if strings.TrimSpace(text) != "" && !strings.HasSuffix(text, "\n\n") && !strings.HasSuffix(text, "\n\r\n") {
		text += end
	}
	return text + tomlEntry(e, end), nil
}

// withoutTables returns the text without the tables of servers.
func (d *document) withoutTables(paths [][]string) (string, error) {
	edits, err := d.tables(paths)
	if err != nil {
		return "", err
	}
	return apply(d.text, edits), nil
}

// tables returns the edits that take out the tables of servers.
func (d *document) tables(paths [][]string) ([]edit, error) {
	var edits []edit
	for _, p := range paths {
		n := 0
		for _, s := range d.sections {
			if len(s.path) >= len(p) && slices.Equal(s.path[:len(p)], p) {
				edits = append(edits, edit{s.start, s.end, ""})
				n++
			}
		}
		if n == 0 && d.root.get(p...) != nil {
			return nil, fmt.Errorf("%s: the server %s does not stand under a header [%s]; remove it by hand", d.file, p[len(p)-1], strings.Join(p, "."))
		}
	}
	return edits, nil
}

// errNotInstalled is the error of an uninstall where Helve is not.
var errNotInstalled = errors.New("Helve does not stand in this file")

// Uninstall returns the text of the client's file as it was before Install.
// If the file still is as Install left it, that is the backup, to the byte
// (nil: there was no file), and exact is true. Else only the entry of Helve is
// taken out.
func (c Client) Uninstall(file string, data, backup []byte) (out []byte, exact bool, err error) {
	d, err := c.parse(file, data)
	if err != nil {
		return nil, false, err
	}
	e, ok := c.entry(file, data)
	if !ok {
		return nil, false, fmt.Errorf("%s: %w", file, errNotInstalled)
	}
	if again, err := c.install(file, backup, e, c.missing(file, data, backup)); err == nil && string(again) == string(data) {
		return backup, true, nil
	}
	path := append(c.container(d), entryKey)
	text := ""
	if d.toml {
		text, err = d.withoutTables([][]string{path})
	} else {
		text = apply(d.text, d.removals([][]string{path}))
	}
	return []byte(text), err == nil && backup != nil && text == string(backup), err
}

// missing returns the servers that stand in the backup and not in data.
func (c Client) missing(file string, data, backup []byte) [][]string {
	old, err := parse(file, backup)
	if err != nil {
		return nil
	}
	now, err := parse(file, data)
	if err != nil {
		return nil
	}
	var out [][]string
	for _, p := range old.places() {
		servers := old.root.get(p.path...)
		if servers == nil {
			continue
		}
		for _, m := range servers.members {
			if q := append(slices.Clone(p.path), m.key); now.root.get(q...) == nil {
				out = append(out, q)
			}
		}
	}
	return out
}

// AppFile returns the app file that the entry of Helve names; "": none.
func (c Client) AppFile(file string, data []byte) string {
	e, _ := c.entry(file, data)
	if i := slices.Index(e.Args, "--app"); i >= 0 && i+1 < len(e.Args) {
		return e.Args[i+1]
	}
	return ""
}

// Missing returns the servers that stand in the backup and not in data.
func (c Client) Missing(file string, data, backup []byte) []Server {
	gone := c.missing(file, data, backup)
	all, _, err := Read(file, backup)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(s Server) bool {
		return !slices.ContainsFunc(gone, func(p []string) bool { return slices.Equal(p, s.path) })
	})
}

// PutBack returns data with servers of Missing as the backup has them, and those
// that found a place.
func (c Client) PutBack(file string, data, backup []byte, servers []Server) ([]byte, []Server, error) {
	old, err := c.parse(file, backup)
	if err != nil {
		return nil, nil, err
	}
	var done []Server
	for _, s := range servers {
		d, err := c.parse(file, data)
		if err != nil {
			return nil, nil, err
		}
		text := ""
		if d.toml {
			text = d.appended(old, s)
		} else {
			text = d.inserted(old, s)
		}
		before, _, _ := Read(file, data)
		after, _, err := Read(file, []byte(text))
		if err == nil && len(after) == len(before)+1 && slices.ContainsFunc(after, func(o Server) bool { return slices.Equal(o.path, s.path) && o.same(s) }) {
			data, done = []byte(text), append(done, s)
		}
	}
	return data, done, nil
}

// inserted returns the text with a server of another document, if the object in
// which it stood is there.
func (d *document) inserted(old *document, s Server) string {
	at, v := d.root.get(s.path[:len(s.path)-1]...), old.root.get(s.path...)
	if at == nil || at.kind != isMap || v == nil {
		return d.text
	}
	unit := "  "
	if m := d.root.members; len(m) > 0 && d.indent(m[0].start) != "" {
		unit = d.indent(m[0].start)
	}
	outer := d.indent(at.start)
	indent := outer + unit
	if len(at.members) > 0 && d.indent(at.members[0].start) != "" {
		indent = d.indent(at.members[0].start)
	}
	body := quoted(s.Name) + ": " + old.text[v.start:v.end]
	return apply(d.text, []edit{d.first(at, nil, body, indent, outer, d.lineEnd())})
}

// appended returns the text with the tables of a server of another document.
func (d *document) appended(old *document, s Server) string {
	text, end := d.text, d.lineEnd()
	for _, part := range old.sections {
		if len(part.path) < len(s.path) || !slices.Equal(part.path[:len(s.path)], s.path) {
			continue
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += end
		}
		if text != "" && !strings.HasSuffix(text, "\n\n") && !strings.HasSuffix(text, "\n\r\n") {
			text += end
		}
		text += old.text[part.start:part.end]
	}
	return text
}
