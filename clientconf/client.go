package clientconf

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A Client is a program that starts MCP servers.
type Client struct {
	ID, Title string
	// Searches: the client gives its model a search of tools itself, so that
	// Helve shows it all of them. The others get discovery.
	Searches bool
	Why      string // where Searches is known from
	Note     string // what who uses it should know; "": nothing

	key   string // under which servers stand
	user  string // its file: relative to Places.Home, or with @ to Places.Config
	local string // a project's file, relative to Places.Dir
}

// Clients are the clients whose files are known.
//
// Searches is true where the maker says so: of Claude Code, its MCP page on
// tool search (ENABLE_TOOL_SEARCH, on by default); of Cursor,
// cursor.com/blog/dynamic-context-discovery (tools are looked up by name).
// Where that is not documented, or only for some models, it is false.
var Clients = []Client{
	{ID: "claude-code", Title: "Claude Code", Searches: true, Why: "it searches MCP tools itself (tool search)", key: "mcpServers", user: ".claude.json", local: ".mcp.json"},
	{ID: "claude-desktop", Title: "Claude Desktop", key: "mcpServers", user: "@Claude/claude_desktop_config.json"},
	{ID: "cursor", Title: "Cursor", Searches: true, Why: "it looks MCP tools up by name (dynamic context discovery)", key: "mcpServers", user: ".cursor/mcp.json", local: ".cursor/mcp.json"},
	{ID: "vscode", Title: "VS Code", key: "servers", user: "@Code/User/mcp.json", local: ".vscode/mcp.json"},
	{ID: "windsurf", Title: "Windsurf", key: "mcpServers", user: ".codeium/windsurf/mcp_config.json"},
	{ID: "gemini", Title: "Gemini CLI", key: "mcpServers", user: ".gemini/settings.json", local: ".gemini/settings.json"},
	{ID: "codex", Title: "Codex", key: "mcp_servers", user: ".codex/config.toml", local: ".codex/config.toml",
		Note: `Codex asks before every call of a tool that is not marked as reading, execute_tool among them, and codex exec refuses those; default_tools_approval_mode = "approve" in Helve's table leaves the asking to Helve, which judges each call by what it does`},
}

// ClientOf returns the client with an id.
func ClientOf(id string) (Client, error) {
	var ids []string
	for _, c := range Clients {
		if c.ID == id {
			return c, nil
		}
		ids = append(ids, c.ID)
	}
	return Client{}, fmt.Errorf("there is no client %q; the clients are %s", id, strings.Join(ids, ", "))
}

// View returns how Helve presents its tools to the client, for --present.
func (c Client) View() string {
	if c.Searches {
		return "full"
	}
	return "discovery"
}

// Places are the folders in which clients keep their files.
type Places struct {
	Home   string // the user's
	Config string // of applications, as os.UserConfigDir returns it
	Dir    string // the current one
	Codex  string // CODEX_HOME; "": .codex in Home
	Claude string // CLAUDE_CONFIG_DIR, in which Claude Code's file is then; "": Home
}

// User returns the client's file of the user's.
func (c Client) User(p Places) string {
	if c.ID == "codex" && p.Codex != "" {
		return filepath.Join(p.Codex, "config.toml")
	}
	if c.ID == "claude-code" && p.Claude != "" {
		return filepath.Join(p.Claude, c.user)
	}
	if name, ok := strings.CutPrefix(c.user, "@"); ok {
		return filepath.Join(p.Config, filepath.FromSlash(name))
	}
	return filepath.Join(p.Home, filepath.FromSlash(c.user))
}

// Files returns where the client's files may be: the user's, then the project's.
func (c Client) Files(p Places) []string {
	out := []string{c.User(p)}
	if local := filepath.Join(p.Dir, filepath.FromSlash(c.local)); c.local != "" && local != out[0] {
		out = append(out, local)
	}
	return out
}

// An Entry is what a client's file says of Helve.
type Entry struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// Snippet returns what to put into the client's file by hand.
func (c Client) Snippet(e Entry) string {
	if c.ID == "codex" {
		return tomlEntry(e, "\n")
	}
	return "{\n  " + quoted(c.key) + ": {\n    " + quoted(entryKey) + ": " + c.json(e, "    ", "  ", "\n") + "\n  }\n}"
}

// entryKey is the name under which Helve stands in clients' files.
const entryKey = "helve"

// json writes the entry over several lines, the first without indentation.
func (c Client) json(e Entry, indent, unit, end string) string {
	var b strings.Builder
	b.WriteString("{" + end)
	if c.key == "servers" {
		b.WriteString(indent + unit + `"type": "stdio",` + end)
	}
	b.WriteString(indent + unit + `"command": ` + quoted(e.Command) + "," + end)
	b.WriteString(indent + unit + `"args": [` + quotedList(e.Args) + "]" + end)
	b.WriteString(indent + "}")
	return b.String()
}

func quotedList(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quoted(w)
	}
	return strings.Join(out, ", ")
}

func tomlEntry(e Entry, end string) string {
	return "[mcp_servers." + entryKey + "]" + end + "command = " + quoted(e.Command) + end + "args = [" + quotedList(e.Args) + "]" + end
}
