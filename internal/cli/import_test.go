package cli

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/clientconf"
)

// machine makes a home folder and a current folder of its own.
func machine(t *testing.T) (home, dir string) {
	t.Helper()
	home, dir = t.TempDir(), t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("AppData", filepath.Join(home, ".config"))
	t.Setenv("CODEX_HOME", "")
	t.Chdir(dir)
	return home, dir
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// helve runs a command line, and returns its code and all that it printed.
func helve(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := Run(t.Context(), args, strings.NewReader(""), &out, &out)
	return code, out.String()
}

// must is helve for command lines that succeed and print certain words.
func must(t *testing.T, args []string, words ...string) string {
	t.Helper()
	code, out := helve(t, args...)
	if code != 0 {
		t.Fatalf("%v: code %d\n%s", args, code, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("%v: no %q in\n%s", args, w, out)
		}
	}
	return out
}

// files returns every file below some folders.
func everyFile(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				out[name] = get(t, name)
			}
			return err
		})
	}
	return out
}

const (
	clearToken = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
	clearPass  = "correct-horse"
	cursorFile = `{
  // mine
  "mcpServers": {
    "github": {"command": "npx", "args": ["-y", "server-github", "--password", "` + clearPass + `"], "env": {"GITHUB_TOKEN": "` + clearToken + `", "LEVEL": "${LEVEL}"}},
    "far away": {"url": "https://far.example.com/mcp?key=` + clearPass + `", "headers": {"Authorization": "Bearer ` + clearToken + `"}, "disabled": true}, // off
  },
}
`
)

func TestImport(t *testing.T) {
	home, dir := machine(t)
	cursor := filepath.Join(home, ".cursor", "mcp.json")
	put(t, cursor, cursorFile)
	must(t, []string{"import"}, "Cursor", cursor, "helve import "+cursor)

	out := must(t, []string{"import", cursor, "--dry-run"}, "Dry run", "would be added", "far away as far_away")
	if files := everyFile(t, dir); len(files) != 0 {
		t.Errorf("a dry run wrote %v", files)
	}
	out += must(t, []string{"import", cursor}, "2 of 2 servers added to helve.yaml", "export HELVE_SECRET_GITHUB_TOKEN=", "export LEVEL=", "that server cannot be started without it", cursor+":4:5")
	out += must(t, []string{"import", cursor, "--json"}, `"action": "same"`)
	for name, text := range everyFile(t, dir) {
		out += name + text
	}
	if strings.Contains(out, clearToken) || strings.Contains(out, clearPass) {
		t.Errorf("a secret was told:\n%s", out)
	}
	got := get(t, "helve.yaml")
	for _, want := range []string{"GITHUB_TOKEN: \"{{secret.GITHUB_TOKEN}}\"\n", "LEVEL: \"{{env.LEVEL}}\"\n", "disabled: true\n", "\"--password\", \"{{secret.GITHUB_PASSWORD}}\""} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, name := range []string{"LEVEL", "HELVE_SECRET_GITHUB_PASSWORD", "HELVE_SECRET_FAR_AWAY_KEY"} {
		t.Setenv(name, "x")
	}
	must(t, []string{"app", "check", "helve.yaml"}, "is fine")
	if out := must(t, []string{"import", cursor}); strings.Contains(out, "export LEVEL") {
		t.Errorf("a variable that is set is asked for:\n%s", out)
	}
}

// A server that Helve cannot reach keeps none of the rest from being taken
// over, and stays in the client's file. Tools that were off stay off.
func TestImportLeavesOutWhatItCannotReach(t *testing.T) {
	_, _ = machine(t)
	put(t, "c.json", `{"mcpServers": {
  "sock": {"type": "http", "url": "unix:///run/x.sock"},
  "a": {"command": "a", "disabledTools": ["drop all"]}
}}`)
	must(t, []string{"import", "--install", "cursor", "--file", "c.json", "--replace"},
		"a: added", "sock: left out (url is not an absolute http or https URL)", "1 of 2 servers added", "Removed there: a.")
	if text := get(t, "c.json"); !strings.Contains(text, "unix:///run/x.sock") || strings.Contains(text, "drop all") {
		t.Errorf("the client's file:\n%s", text)
	}
	if text := get(t, "helve.yaml"); !strings.Contains(text, `overrides: {"drop all": {hidden: true}}`) || strings.Contains(text, "sock") {
		t.Errorf("the app file:\n%s", text)
	}
	must(t, []string{"app", "check", "helve.yaml"})
	must(t, []string{"import", "--uninstall", "cursor", "--file", "c.json"}, "as it was")
	put(t, "flow.yaml", "app: {app_id: x, name: X}\ntools: {mcp_servers: {b: {command: b}}}\n")
	must(t, []string{"import", "c.json", "--app", "flow.yaml"}, "1 of 2 servers added")
	if text := get(t, "flow.yaml"); !strings.Contains(text, `"a": {command: "a", overrides: {"drop all": {hidden: true}}}`) {
		t.Errorf("the app file:\n%s", text)
	}
}

func TestImportConflictKeepsTheFile(t *testing.T) {
	_, dir := machine(t)
	const before = "# top\napp: {app_id: mine, name: Mine}\n\ntools: # t\n  mcp_servers:\n    # about github\n    github: {command: other} # c\n\n  capabilities: {default_policy: block}   # odd   spacing\n"
	put(t, "my.yaml", before)
	put(t, ".mcp.json", `{"mcpServers": {"github": {"command": "npx"}, "helve": {"command": "/x/helve", "args": ["mcp"]}}}`)
	must(t, []string{"import", "--all", "--app", "my.yaml"}, "github as github_2: added (github is there with another definition)", "helve: left out (it is Helve itself)")
	got := get(t, "my.yaml")
	if got != strings.Replace(before, "# c\n", "# c\n    github_2:\n      command: npx\n", 1) {
		t.Errorf("the file became\n%s", got)
	}
	if get(t, "my.yaml"+clientconf.BackupSuffix) != before {
		t.Error("the backup is not what was there")
	}
	must(t, []string{"import", "--all", "--app", "my.yaml"}, "left as it is", "0 of 2")
	if get(t, "my.yaml") != got || len(everyFile(t, dir)) != 3 {
		t.Error("the second import wrote")
	}
}

func TestImportRefuses(t *testing.T) {
	_, dir := machine(t)
	put(t, "good.json", `{"mcpServers": {"a": {"command": "a"}}}`)
	put(t, "bad.json", "{\n  \"mcpServers\": {\"a\": oops}\n}")
	put(t, "bad.yaml", "app: {app_id: x, name: X}\nnonsense: 1\n")
	put(t, "alias.yaml", "app: {app_id: x, name: X}\ntools: &t {mcp_servers: &s {z: {command: z}}}\n")
	put(t, "url.json", `{"mcpServers": {"a": {"url": "ftp://x"}}}`)
	before := everyFile(t, dir)
	for _, test := range []struct {
		code int
		args []string
		want string
	}{
		{1, []string{"good.json", "bad.json"}, "bad.json:2:23: a value is wanted here"},
		{1, []string{"none.json"}, "none.json: there is no such file"},
		{1, []string{"good.json", "--app", "bad.yaml"}, "bad.yaml:2:1"},
		{1, []string{"url.json"}, "is not an absolute http or https URL"},
		{1, []string{"--all"}, "no file with MCP servers was found"},
		{1, []string{"good.json", "--install", "cursor", "--file", "bad.json"}, "bad.json:2:23"},
		{1, []string{"--uninstall", "cursor", "--file", "good.json"}, "Helve does not stand in this file"},
		{1, []string{"--install", "codex", "--file", "good.json"}, "the file is JSON, and Codex reads TOML"},
		{64, []string{"--install", "emacs"}, "the clients are claude-code"},
		{64, []string{"--install", "cursor", "--present", "loud"}, "--present"},
		{64, []string{"good.json", "--replace"}, "--replace needs --install"},
		{64, []string{"good.json", "--all"}, "leave good.json out"},
		{64, []string{"--uninstall", "cursor", "good.json"}, "imports nothing"},
	} {
		code, out := helve(t, append([]string{"import"}, test.args...)...)
		if code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%v: code %d\n%s", test.args, code, out)
		}
	}
	for name, text := range everyFile(t, dir) {
		if before[name] != text {
			t.Errorf("%s was written", name)
		}
	}
}

func TestInstallAndUninstall(t *testing.T) {
	home, dir := machine(t)
	for _, client := range clientconf.Clients {
		file := client.User(clientconf.Places{Home: home, Config: filepath.Join(home, ".config"), Dir: dir})
		if config, err := os.UserConfigDir(); err == nil {
			file = client.User(clientconf.Places{Home: home, Config: config, Dir: dir})
		}
		must(t, []string{"import", "--install", client.ID}, "with the view "+client.View())
		if !strings.Contains(get(t, file), `"--present", "`+client.View()+`"`) {
			t.Errorf("%s:\n%s", client.ID, get(t, file))
		}
		must(t, []string{"import", "--install", client.ID}, "already")
		must(t, []string{"import", "--uninstall", client.ID}, "was made for Helve")
		if files := everyFile(t, home); len(files) != 0 {
			t.Errorf("%s left %v", client.ID, files)
		}
	}
}

func TestInstallReplaceAndRestore(t *testing.T) {
	home, _ := machine(t)
	cursor := filepath.Join(home, ".cursor", "mcp.json")
	put(t, cursor, strings.ReplaceAll(cursorFile, "\n", "\r\n"))
	before := get(t, cursor)
	must(t, []string{"import", "--install", "cursor", "--replace", "--dry-run"}, "would be added")
	if get(t, cursor) != before {
		t.Fatal("a dry run wrote")
	}
	must(t, []string{"import", "--install", "cursor", "--replace"}, "Removed there: github, far away", "helve.yaml", "--uninstall cursor")
	now := get(t, cursor)
	if strings.Contains(now, "github") || !strings.Contains(now, "helve.yaml") || !strings.Contains(now, "// mine\r\n") || strings.Contains(now, clearToken) {
		t.Errorf("the file became\n%s", now)
	}
	must(t, []string{"import", "--install", "cursor", "--present", "compact"}, "renewed")
	must(t, []string{"import", "--uninstall", "cursor"}, "is as it was before")
	if get(t, cursor) != before {
		t.Errorf("restored:\n%s", get(t, cursor))
	}
	if _, err := os.Stat(cursor + clientconf.BackupSuffix); err == nil {
		t.Error("the backup was left")
	}
	must(t, []string{"import", "--install", "cursor"}, "added to "+cursor)
	put(t, cursor, strings.Replace(get(t, cursor), "// mine", "// ours", 1))
	must(t, []string{"import", "--uninstall", "cursor"}, "the file had changed since", clientconf.BackupSuffix)
	if get(t, cursor) != strings.Replace(before, "// mine", "// ours", 1) {
		t.Errorf("with a change kept:\n%s", get(t, cursor))
	}
}

// What was added to a client's file since Helve was installed is in a backup
// before it is taken out of the file, and comes back.
func TestInstallReplaceAfterChange(t *testing.T) {
	home, _ := machine(t)
	cursor := filepath.Join(home, ".cursor", "mcp.json")
	put(t, cursor, `{"mcpServers": {"a": {"command": "x"}}}`)
	must(t, []string{"import", "--install", "cursor"}, "added to "+cursor)
	put(t, cursor, strings.Replace(get(t, cursor), `"mcpServers": {`, `"mcpServers": {"b": {"command": "y", "env": {"B_TOKEN": "`+clearToken+`"}},`, 1))
	backup := cursor + clientconf.BackupSuffix
	must(t, []string{"import", "--install", "cursor", "--replace"}, "Removed there: b, a", "its value is at "+backup+":1:17", "What it was before is in "+backup)
	if strings.Contains(get(t, cursor), clearToken) || !strings.Contains(get(t, backup), clearToken) || strings.Contains(get(t, backup), "helve") {
		t.Errorf("the file is\n%s\nand its backup\n%s", get(t, cursor), get(t, backup))
	}
	before := get(t, backup)
	must(t, []string{"import", "--install", "cursor", "--replace", "--present", "compact"}, "renewed")
	must(t, []string{"import", "--uninstall", "cursor"}, "is as it was before")
	if get(t, cursor) != before {
		t.Errorf("restored:\n%s", get(t, cursor))
	}
	if old := get(t, backup+".1"); old != `{"mcpServers": {"a": {"command": "x"}}}` {
		t.Errorf("the earlier backup is\n%s", old)
	}
}

// Helve that stands in a file without a backup, since somebody wrote it there
// or the file was made for it, is renewed and taken out again.
func TestRenewWithoutBackup(t *testing.T) {
	machine(t)
	must(t, []string{"import", "--install", "claude-code", "--file", ".mcp.json"}, "added to .mcp.json")
	must(t, []string{"import", "--install", "claude-code", "--file", ".mcp.json", "--present", "compact"}, "renewed")
	must(t, []string{"import", "--uninstall", "claude-code", "--file", ".mcp.json"}, "was made for Helve")
	put(t, ".mcp.json", `{"mcpServers": {"a": {"command": "x"}, "helve": {"command": "/usr/bin/helve", "args": ["mcp"]}}}`)
	must(t, []string{"import", "--install", "claude-code", "--file", ".mcp.json"}, "renewed")
	must(t, []string{"import", "--uninstall", "claude-code", "--file", ".mcp.json"}, "is as it was before")
	if got := get(t, ".mcp.json"); got != `{"mcpServers": {"a": {"command": "x"} }}` {
		t.Errorf("the file became\n%s", got)
	}
}

func TestPrintConfig(t *testing.T) {
	machine(t)
	must(t, []string{"mcp", "--print-config"}, "Claude Code (full view", "--present full", "[mcp_servers.helve]", `"servers"`, `"--present", "discovery"`)
	out := must(t, []string{"mcp", "--print-config", "--client", "vscode"}, `"servers"`)
	if strings.Contains(out, "mcpServers") {
		t.Errorf("other clients too:\n%s", out)
	}
	var got struct {
		MCPServers map[string]struct{ Command string } `json:"mcpServers"`
		Clients    map[string]struct{ View string }
	}
	if err := json.Unmarshal([]byte(must(t, []string{"mcp", "--print-config", "--json"})), &got); err != nil {
		t.Fatal(err)
	}
	if got.MCPServers["helve"].Command == "" || got.Clients["cursor"].View != "full" || got.Clients["codex"].View != "discovery" {
		t.Errorf("%+v", got)
	}
	if code, out := helve(t, "mcp", "--print-config", "--client", "emacs"); code != 64 {
		t.Errorf("code %d: %s", code, out)
	}
}

// What is no secret arrives in the app as the client's file has it, whatever
// YAML and templates would make of it.
func TestImportKeepsTexts(t *testing.T) {
	machine(t)
	texts := []string{"", "yes", "1.0", "~", "- x", "a: b", "# no", "x #y", "'", `"`, `\`, "two\nlines\n", "\ttab", " pad ", "é世🙂", "\x7f\u0085\u2028\ufeff", "{{", "{{{", "}}", "{{x}}", "${", "${1}", "$", "$$", "$HOME", "{", "[a]", "&a", "*a", "!t", "%d", "@x", "|", ">", "?", "null", "0x1f", "2024-01-01", "=", "<<", strings.Repeat("long ", 40)}
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"all":   map[string]any{"command": "run", "args": texts, "env": map[string]string{"A: b": "{{x}}", "yes": "no", "": "empty"}},
		"joins": map[string]any{"command": "run", "args": []string{"{${X}", "$${X}", "${X}}}"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("X", "v")
	put(t, "mcp.json", string(data))
	must(t, []string{"import", "mcp.json"}, "2 of 2")
	c := &cli{root_: "."}
	cfg, err := c.checkApp("helve.yaml", []byte(get(t, "helve.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Tools.MCPServers["all"]; !slices.Equal(got.Args, texts) || got.Env["A: b"] != "{{x}}" || got.Env["yes"] != "no" || got.Env[""] != "empty" {
		t.Errorf("got\n%q\nwant\n%q\n%q", got.Args, texts, got.Env)
	}
	if got := cfg.Tools.MCPServers["joins"].Args; !slices.Equal(got, []string{"{v", "$v", "v}}"}) {
		t.Errorf("%q", got)
	}
	must(t, []string{"import", "mcp.json"}, "0 of 2")
}
