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
	"github.com/helve-ai/helve/credentials"
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
	t.Setenv("CLAUDE_CONFIG_DIR", "")
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
  "a": {"command": "a", "disabledTools": ["drop all"], "includeTools": ["get", "on"]}
}}`)
	must(t, []string{"import", "c.json", "--install", "cursor", "--file", "c.json", "--dry-run"}, "It goes on starting sock, a itself; with --replace Helve takes that over")
	must(t, []string{"import", "--install", "cursor", "--file", "c.json", "--replace"},
		"a: added", "sock: left out (url is not an absolute http or https URL)", "1 of 2 servers added", "Removed there: a.")
	if text := get(t, "c.json"); !strings.Contains(text, "unix:///run/x.sock") || strings.Contains(text, "drop all") {
		t.Errorf("the client's file:\n%s", text)
	}
	if text := get(t, "helve.yaml"); !strings.Contains(text, "only: [get, \"on\"]\n") || !strings.Contains(text, `overrides: {"drop all": {hidden: true}}`) || strings.Contains(text, "sock") {
		t.Errorf("the app file:\n%s", text)
	}
	must(t, []string{"app", "check", "helve.yaml"})
	must(t, []string{"import", "--uninstall", "cursor", "--file", "c.json"}, "as it was")
	put(t, "flow.yaml", "app: {app_id: x, name: X}\ntools: {mcp_servers: {b: {command: b}}}\n")
	must(t, []string{"import", "c.json", "--app", "flow.yaml"}, "1 of 2 servers added")
	if text := get(t, "flow.yaml"); !strings.Contains(text, `"a": {command: "a", only: ["get", "on"], overrides: {"drop all": {hidden: true}}}`) {
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

// A client that writes its file anew, as Claude Code does whenever it starts,
// gets back what Helve took over, and nothing else that is not in it any more.
func TestUninstallAfterChange(t *testing.T) {
	machine(t)
	for client, test := range map[string]struct{ before, own, other string }{
		"claude-code": {`{"n": 1, "mcpServers": {"a": {"command": "x", "env": {"A_TOKEN": "` + clearToken + `"}}, "b": {"type": "http", "url": "https://b.example.com/mcp"}}, "projects": {"/p": {"mcpServers": {"c": {"command": "c"}}}}}` + "\n", `"n": 1`, `"n": 2`},
		"codex":       {"n = 1\n\n[mcp_servers.a]\ncommand = \"x\"\n\n[mcp_servers.a.env]\nA_TOKEN = \"" + clearToken + "\"\n\n[mcp_servers.b]\nurl = \"https://b.example.com/mcp\"\n", "n = 1", "n = 2"},
	} {
		put(t, client, test.before)
		want, _, err := clientconf.Read(client, []byte(test.before))
		if err != nil {
			t.Fatal(err)
		}
		must(t, []string{"import", "--install", client, "--file", client, "--replace", "--app", client + ".yaml"}, "Removed there: a, b")
		put(t, client, strings.Replace(get(t, client), test.own, test.other, 1))
		must(t, []string{"import", "--uninstall", client, "--file", client, "--dry-run"}, "put back: a, b")
		must(t, []string{"import", "--uninstall", client, "--file", client}, "put back: a, b", client+clientconf.BackupSuffix)
		now := get(t, client)
		got, _, err := clientconf.Read(client, []byte(now))
		if err != nil || len(got) != len(want) || !strings.Contains(now, test.other) || strings.Contains(now, "helve") || !strings.Contains(now, clearToken) {
			t.Errorf("%s: %v\n%s", client, err, now)
		}

		put(t, client, test.before)
		must(t, []string{"import", "--install", client, "--file", client})
		text, err := os.ReadFile(client)
		if err != nil {
			t.Fatal(err)
		}
		put(t, client, strings.Replace(strings.Replace(string(text), "b.example.com", "c.example.com", 1), "mcp_servers.b]", "mcp_servers.d]", 1))
		put(t, client, strings.Replace(get(t, client), `"b": {"type"`, `"d": {"type"`, 1))
		must(t, []string{"import", "--uninstall", client, "--file", client}, "nothing else was restored", "Not put back", ": b.")
	}
}

// Helve that stands in a file without a backup, since somebody wrote it there
// or the file was made for it, is renewed and taken out again.
func TestRenewWithoutBackup(t *testing.T) {
	machine(t)
	must(t, []string{"import", "--install", "claude-code", "--file", ".mcp.json"}, "added to .mcp.json")
	must(t, []string{"import", "--install", "claude-code", "--file", ".mcp.json", "--present", "compact"}, "renewed")
	must(t, []string{"import", "--uninstall", "claude-code", "--file", ".mcp.json"}, "was made for Helve")
	const byHand = `{"mcpServers": {"a": {"command": "x"}, "helve": {"command": "/usr/bin/helve", "args": ["mcp"]}}}`
	put(t, ".mcp.json", byHand)
	must(t, []string{"import", "--install", "claude-code", "--file", ".mcp.json"}, "renewed")
	must(t, []string{"import", "--uninstall", "claude-code", "--file", ".mcp.json"}, "is as it was before", "by hand; the same command again")
	if got := get(t, ".mcp.json"); got != byHand {
		t.Errorf("the file became\n%s", got)
	}
	must(t, []string{"import", "--uninstall", "claude-code", "--file", ".mcp.json"}, "Helve's entry is taken out of .mcp.json.")
	if got := get(t, ".mcp.json"); got != `{"mcpServers": {"a": {"command": "x"} }}` {
		t.Errorf("the file became\n%s", got)
	}
}

// What else a client's file says of Helve, such as which of its calls are
// approved, stays when its entry is renewed, and goes with it.
func TestRenewKeepsTheRest(t *testing.T) {
	machine(t)
	const codex = "model = \"m\" # mine\n"
	put(t, "config.toml", codex)
	in := []string{"import", "--install", "codex", "--file", "config.toml"}
	must(t, in, "added to config.toml", "default_tools_approval_mode")
	const more = "default_tools_approval_mode = \"approve\"\n\n[mcp_servers.helve.tools.execute_tool]\napproval_mode = \"approve\"\n"
	put(t, "config.toml", get(t, "config.toml")+more)
	for _, view := range []string{"compact", "full"} {
		must(t, append(in, "--present", view), "renewed")
		if got := get(t, "config.toml"); !strings.HasSuffix(got, "\""+view+"\"]\n"+more) || strings.Count(got, "command") != 1 {
			t.Errorf("the file became\n%s", got)
		}
	}
	must(t, append(in, "--present", "full"), "already")
	must(t, []string{"import", "--uninstall", "codex", "--file", "config.toml"}, "taken out of config.toml")
	if got := get(t, "config.toml"); strings.Contains(got, "helve") || !strings.HasPrefix(got, codex) {
		t.Errorf("the file became\n%s", got)
	}

	for before, after := range map[string]string{
		`{"mcpServers": {"a": {"command": "x"}, "helve": {"timeout": 9, "command": "helve", "args": ["mcp"], "alwaysAllow": ["a"]}}}`: `, "args": ["mcp", `,
		`{"mcpServers": {"helve": {"env": {"A": "b"}, "command": "helve"}, "a": {"command": "x"}}}`:                                   `{"env": {"A": "b"}, "args": ["mcp", `,
	} {
		put(t, "c.json", before)
		in := []string{"import", "--install", "cursor", "--file", "c.json"}
		must(t, in, "renewed")
		if got := get(t, "c.json"); !strings.Contains(got, after) || strings.Count(got, "helve\": {") != 1 {
			t.Errorf("%s became\n%s", before, got)
		}
		must(t, append(in, "--replace"), "Removed there: a.")
		if got := get(t, "c.json"); !strings.Contains(got, after) || strings.Contains(got, `"a": {`) {
			t.Errorf("%s became\n%s", before, got)
		}
		must(t, []string{"import", "--uninstall", "cursor", "--file", "c.json"}, "c.json is as it was before", "by hand")
		if got := get(t, "c.json"); got != before {
			t.Errorf("%s came back as\n%s", before, got)
		}
	}
}

// What one does by mistake is told before a client would stumble over it.
func TestInstallMistakes(t *testing.T) {
	machine(t)
	put(t, "null.json", `{"mcpServers": null}`)
	must(t, []string{"import", "--install", "cursor", "--file", "null.json"}, "added to null.json")
	must(t, []string{"import", "--uninstall", "cursor", "--file", "null.json"}, "is as it was")
	if got := get(t, "null.json"); got != `{"mcpServers": null}` {
		t.Error(got)
	}
	put(t, "two.json", `{"mcpServers": {"tools": {"command": "/opt/helve", "args": ["mcp"]}}}`)
	must(t, []string{"import", "--install", "cursor", "--file", "two.json"}, `Helve stands there as "tools", too`)
	put(t, "list.json", "[1]")
	if out := must(t, []string{"mcp", "--print-config"}); strings.Contains(out, "warning") {
		t.Error(out)
	}
	put(t, "helve.yaml", "app: {app_id: x, name: X}\n")
	must(t, []string{"mcp", "--print-config", "--client", "cursor"}, "warning: this leaves out helve.yaml")
	if out := must(t, []string{"mcp", "--print-config", "--app", "helve.yaml"}); strings.Contains(out, "warning") {
		t.Error(out)
	}
	if err := os.Remove("helve.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		code int
		args []string
		want string
	}{
		{1, []string{"import", "--install", "cursor", "--file", "c.json", "--app", "typo.yaml"}, "there is no file typo.yaml"},
		{1, []string{"mcp", "--print-config", "--app", "typo.yaml"}, "there is no file typo.yaml"},
		{64, []string{"mcp", "--install", "cursor"}, "helve import --install cursor"},
		{64, []string{"mcp", "--uninstall", "cursor"}, "helve import --uninstall cursor"},
		{1, []string{"import", "cursor"}, "helve import --install cursor writes Helve into that of Cursor"},
		{64, []string{"mcp", "my.yaml"}, "helve mcp --app my.yaml"},
		{64, []string{"upstreams", "--at", "127.0.0.1:7777"}, "such as http://127.0.0.1:7777"},
		{64, []string{"upstreams", "--at", "foo"}, "--at foo"},
		{1, []string{"import", "list.json"}, "list.json:1:1: the file is not a JSON object"},
		{1, []string{"import", "--install", "cursor", "--file", "list.json"}, "list.json:1:1: the file is not a JSON object"},
	} {
		if code, out := helve(t, test.args...); code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%v: code %d\n%s", test.args, code, out)
		}
	}
	if _, err := os.Stat("c.json"); err == nil {
		t.Error("the client's file was written")
	}
}

// The secrets of a client's file can be kept with its servers: sealed, and
// without being told, and none that is kept already is lost.
func TestImportKeepsSecrets(t *testing.T) {
	home, dir := machine(t)
	t.Setenv("HELVE_CREDENTIALS_DIR", filepath.Join(home, "kept"))
	for _, name := range []string{"helve.yaml", "other.yaml"} {
		put(t, name, "app: {app_id: x, name: X}\nsecurity: {credentials: file}\n")
	}
	put(t, "mcp.json", `{"mcpServers": {
  "a": {"command": "a", "args": ["--password", "`+clearPass+`", "${input:asked}"], "env": {"A_TOKEN": "`+clearToken+`", "B_KEY": "${B_KEY}"}}
}}`)
	must(t, []string{"import", "mcp.json", "--keep-secrets", "--dry-run"}, "export HELVE_SECRET_A_TOKEN")
	if len(everyFile(t, home)) != 0 {
		t.Error("a dry run has kept something")
	}
	out := must(t, []string{"import", "mcp.json", "--keep-secrets"}, "1 of 1", "Kept, sealed, for the references to them: A_PASSWORD, A_TOKEN.", "export HELVE_SECRET_asked=", "export B_KEY=")
	if strings.Contains(out, "export HELVE_SECRET_A_TOKEN") {
		t.Errorf("what is kept is asked for:\n%s", out)
	}
	kept := credentials.New(credentials.Options{Backend: credentials.File, Dir: filepath.Join(home, "kept")})
	for name, want := range map[string]string{"A_TOKEN": clearToken, "A_PASSWORD": clearPass} {
		if got, err := kept.Get(name); got != want {
			t.Errorf("%s is kept as %q, %v", name, got, err)
		}
	}
	put(t, "other.json", strings.ReplaceAll(get(t, "mcp.json"), clearToken, "another-token"))
	out += must(t, []string{"import", "other.json", "--keep-secrets", "--app", "other.yaml"}, "A_TOKEN is kept with another value")
	if got, _ := kept.Get("A_TOKEN"); got != clearToken {
		t.Errorf("what was kept became %q", got)
	}
	for _, name := range []string{"mcp.json", "other.json"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range everyFile(t, home, dir) {
		out += name + text
	}
	if strings.Contains(out, clearToken) || strings.Contains(out, clearPass) || strings.Contains(out, "another-token") {
		t.Errorf("a secret stands in clear:\n%s", out)
	}
}

// A file that may not be written is left alone, and what is written for another
// user stays theirs.
func TestImportRespectsFiles(t *testing.T) {
	machine(t)
	put(t, "mcp.json", `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b", "args": ["${input:k}"]}, "c": {"command": "c", "args": ["${input:k}"]}}}`)
	if out := must(t, []string{"import", "mcp.json", "--dry-run"}); strings.Count(out, "export HELVE_SECRET_k=") != 1 || strings.Count(out, "helve secrets set k") != 1 {
		t.Errorf("what two servers need is told twice:\n%s", out)
	}
	put(t, "app.yaml", "app: {app_id: x, name: X}\n")
	if os.Getuid() == 0 {
		if err := os.Chown("app.yaml", 1234, 1235); err != nil {
			t.Skip(err)
		}
		must(t, []string{"import", "mcp.json", "--app", "app.yaml"}, "3 of 3")
		for _, name := range []string{"app.yaml", "app.yaml" + clientconf.BackupSuffix} {
			if info, err := os.Stat(name); err != nil || owner(info) != [2]uint32{1234, 1235} {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
		return
	}
	if err := os.Chmod("app.yaml", 0o444); err != nil {
		t.Fatal(err)
	}
	if code, out := helve(t, "import", "mcp.json", "--app", "app.yaml"); code != 1 || !strings.Contains(out, "app.yaml: it cannot be written: permission denied") {
		t.Errorf("code %d\n%s", code, out)
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
