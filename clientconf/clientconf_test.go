package clientconf

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// files are what clients write, with what makes them awkward.
var files = map[string]struct{ client, text string }{
	"claude.json": {"claude-code", `{
  "numStartups": 12,
  "mcpServers": {
    "github": {"type": "stdio", "command": "npx", "args": ["-y", "server-github"], "env": {"GITHUB_TOKEN": "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"}}
  },
  "projects": {
    "/home/a/one": {"mcpServers": {"db": {"command": "db-server", "args": ["--read-only"]}}, "history": [{"x": 1}]},
    "/home/a/two": {"mcpServers": {"db": {"command": "db-server", "args": ["--write"]}}, "disabledMcpServers": ["db"]},
    "/home/a/three": {"mcpServers": {}}
  }
}
`},
	"mcp.json":     {"claude-code", `{"mcpServers":{"api":{"type":"http","url":"${API_BASE:-https://api.example.com}/mcp","headers":{"Authorization":"Bearer ${API_KEY}"}}}}`},
	"desktop.json": {"claude-desktop", "{\r\n\t\"mcpServers\": {\r\n\t\t\"fs\": {\r\n\t\t\t\"command\": \"C:\\\\tools\\\\fs.exe\",\r\n\t\t\t\"args\": [\"C:\\\\data\"]\r\n\t\t}\r\n\t}\r\n}\r\n"},
	"cursor.json": {"cursor", `// my servers
{
    "mcpServers": {
        /* the first */ "one": { "command": "one", "cwd": "${workspaceFolder}/x", }, // its comment
        "two": { "url": "https://two.example.com/mcp", "headers": { "X-Api-Key": "${env:TWO_KEY}" }, "timeout": 5, },
    },
}`},
	"vscode.json": {"vscode", `{
	// asked for when it starts
	"inputs": [{"type": "promptString", "id": "perplexity-key", "password": true}],
	"servers": {
		"perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "server-perplexity"], "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}", "EMPTY": null}}
	}
}
`},
	"settings.json": {"vscode", `{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "a"}}}}`},
	"windsurf.json": {"windsurf", "\ufeff" + `{"mcpServers": {"remote": {"serverUrl": "https://r.example.com/sse", "disabled": true}, "none": {"note": 1}}}`},
	"gemini.json":   {"gemini", `{"theme": "x", "mcpServers": {"g": {"httpUrl": "https://g.example.com/mcp", "url": "https://old.example.com", "headers": {"Authorization": "Bearer $G_TOKEN"}, "trust": true}, "off": {"command": "off"}}, "mcp": {"excluded": ["off"]}}`},
	"config.toml": {"codex", `model = "gpt" # a comment
notify = ['a', "b\u00e9"]

[mcp_servers.docs]
command = "npx"
args = [
  "-y", # yes
  "docs-server",
]
env = { "DOCS_KEY" = "sk-live-1a2b3c4d5e6f7g8h9i0j", LEVEL = "3" }
startup_timeout_sec = 20

[mcp_servers."far.away"]
url = "https://far.example.com/mcp"
bearer_token_env_var = "FAR_TOKEN"
enabled = false

[mcp_servers."far.away".http_headers]
X-Region = 'eu'

[[profiles]]
name = """two
lines"""
`},
}

func TestRead(t *testing.T) {
	want := map[string][]Server{
		"claude.json": {
			{Name: "github", Command: "npx", Args: []string{"-y", "server-github"}, Env: map[string]string{"GITHUB_TOKEN": "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"}, Source: "claude.json:4:5"},
			{Name: "db", Command: "db-server", Args: []string{"--read-only"}, Source: "claude.json:7:36 (project /home/a/one)"},
			{Name: "db", Command: "db-server", Args: []string{"--write"}, Disabled: true, Source: "claude.json:8:36 (project /home/a/two)"},
		},
		"mcp.json":     {{Name: "api", URL: "${API_BASE:-https://api.example.com}/mcp", Headers: map[string]string{"Authorization": "Bearer ${API_KEY}"}, Source: "mcp.json:1:16"}},
		"desktop.json": {{Name: "fs", Command: `C:\tools\fs.exe`, Args: []string{`C:\data`}, Source: "desktop.json:3:3"}},
		"cursor.json": {
			{Name: "one", Command: "one", Cwd: "${workspaceFolder}/x", Source: "cursor.json:4:25"},
			{Name: "two", URL: "https://two.example.com/mcp", Headers: map[string]string{"X-Api-Key": "${env:TWO_KEY}"}, Source: "cursor.json:5:9"},
		},
		"vscode.json":   {{Name: "perplexity", Command: "npx", Args: []string{"-y", "server-perplexity"}, Env: map[string]string{"PERPLEXITY_API_KEY": "${input:perplexity-key}"}, Source: "vscode.json:5:3"}},
		"settings.json": {{Name: "a", Command: "a", Source: "settings.json:1:45"}},
		"windsurf.json": {{Name: "remote", URL: "https://r.example.com/sse", Disabled: true, Source: "windsurf.json:1:17"}},
		"gemini.json": {
			{Name: "g", URL: "https://g.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer $G_TOKEN"}, Source: "gemini.json:1:31"},
			{Name: "off", Command: "off", Disabled: true, Source: "gemini.json:1:176"},
		},
		"config.toml": {
			{Name: "docs", Command: "npx", Args: []string{"-y", "docs-server"}, Env: map[string]string{"DOCS_KEY": "sk-live-1a2b3c4d5e6f7g8h9i0j", "LEVEL": "3"}, Start: 20, Source: "config.toml:4:1"},
			{Name: "far.away", URL: "https://far.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer ${FAR_TOKEN}", "X-Region": "eu"}, Disabled: true, Source: "config.toml:13:1"},
		},
	}
	for name, f := range files {
		got, warnings, err := Read(name, []byte(f.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range got {
			got[i].file, got[i].path = "", nil
		}
		if !reflect.DeepEqual(got, want[name]) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want[name])
		}
		for _, w := range warnings {
			if strings.Contains(w.Text, "example.com") || w.Line == 0 {
				t.Errorf("%s: %v", name, w)
			}
		}
	}
	_, warnings, _ := Read("cursor.json", []byte(files["cursor.json"].text))
	if len(warnings) != 1 || warnings[0].String() != `cursor.json:5:9: "two": not taken over: timeout` {
		t.Errorf("warnings: %v", warnings)
	}
}

// What real files hold beside commands and addresses: tools that are switched
// off stay so, servers of a project run where the project is, and what only the
// client can fill in is told.
func TestReadRealLife(t *testing.T) {
	for text, want := range map[string]struct {
		server   Server
		warnings []string
	}{
		`{"mcpServers": {"w": {"serverUrl": "https://w.example.com/mcp", "disabledTools": ["drop"], "alwaysAllow": ["get"]}}}`: {
			Server{Name: "w", URL: "https://w.example.com/mcp", Hidden: []string{"drop"}}, []string{`"w": not taken over: alwaysAllow`}},
		`{"servers": {"v": {"command": "v", "envFile": "${workspaceFolder}/.env"}}}`: {
			Server{Name: "v", Command: "v"}, []string{`"v": not taken over: envFile`,
				`"v": its envFile is not read: name what the server needs of it under env, as {{secret.NAME}} or {{env.NAME}}`}},
		`{"mcpServers": {"g": {"command": "g", "excludeTools": ["a b", "c"], "includeTools": ["d"]}}}`: {
			Server{Name: "g", Command: "g", Hidden: []string{"a b", "c"}, Only: []string{"d"}}, nil},
		"[mcp_servers.t]\ncommand = 't'\nstartup_timeout_sec = 20.5\ntool_timeout_sec = 1e9\n":  {Server{Name: "t", Command: "t", Start: 21, Timeout: 3600}, nil},
		"[mcp_servers.m]\ncommand = 'm'\nstartup_timeout_ms = 15_000\ntool_timeout_sec = 'x'\n": {Server{Name: "m", Command: "m", Start: 15}, []string{`"m": not taken over: tool_timeout_sec`}},
		"[mcp_servers.e]\ncommand = 'e'\nenabled_tools = []\n":                                  {Server{Name: "e", Command: "e", Disabled: true}, nil},
		"[mcp_servers.f]\ncommand = 'f'\nenabled_tools = ['x', 'y']\n":                          {Server{Name: "f", Command: "f", Only: []string{"x", "y"}}, nil},
		`{"mcp": {"allowed": ["other"]}, "mcpServers": {"g": {"command": "g"}, "other": {"command": "o"}}}`: {
			Server{Name: "g", Command: "g", Disabled: true}, nil},
		"[mcp_servers.c]\ncommand = 'c'\ndisabled_tools = ['x']\nenv_vars = ['A', {name = 'B', source = 'local'}]\n": {
			Server{Name: "c", Command: "c", Env: map[string]string{"A": "${A}", "B": "${B}"}, Hidden: []string{"x"}}, nil},
		`{"projects": {"/home/a/one": {"mcpServers": {"s": {"command": "./bin/s"}}}}}`: {
			Server{Name: "s", Command: "./bin/s", Cwd: "/home/a/one"}, nil},
		`{"projects": {"/home/a/one": {"mcpServers": {"s": {"command": "node", "args": ["../s.js"], "cwd": "/srv"}}}}}`: {
			Server{Name: "s", Command: "node", Args: []string{"../s.js"}, Cwd: "/srv"}, nil},
		`{"projects": {"/home/a/one": {"mcpServers": {"s": {"command": "npx", "args": ["-y", "@a/b", "..."]}}}}}`: {
			Server{Name: "s", Command: "npx", Args: []string{"-y", "@a/b", "..."}}, nil},
		`{"servers": {"p": {"command": "${command:python.interpreterPath}", "args": ["${workspaceFolder}/x", "${input:a}", "${env:B}", "${workspaceFolderBasename}"]}}}`: {
			Server{Name: "p", Command: "${command:python.interpreterPath}", Args: []string{"${workspaceFolder}/x", "${input:a}", "${env:B}", "${workspaceFolderBasename}"}},
			[]string{`"p": only its client knows what ${command:python.interpreterPath} stands for; it stays as it is`,
				`"p": only its client knows what ${workspaceFolderBasename} stands for; it stays as it is`}},
	} {
		got, warnings, err := Read("f", []byte(text))
		got = slices.DeleteFunc(got, func(s Server) bool { return s.Name == "other" })
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %+v, %v", text, got, err)
		}
		got[0].file, got[0].path, got[0].Source = "", nil, ""
		if !reflect.DeepEqual(got[0], want.server) {
			t.Errorf("%s:\n got %+v\nwant %+v", text, got[0], want.server)
		}
		var said []string
		for _, w := range warnings {
			said = append(said, w.Text)
		}
		if !slices.Equal(said, want.warnings) {
			t.Errorf("%s: %q", text, said)
		}
	}
}

// A value of another kind than it should be is left out whole, and told.
func TestReadOddKinds(t *testing.T) {
	got, warnings, err := Read("f", []byte(`{"mcpServers": {"x": {"command": 5}, "y": {"command": "y", "args": ["a", null], "cwd": 1}, "z": {"url": true}, "w": 7}}`))
	if err != nil || len(got) != 1 || got[0].Command != "y" || got[0].Args != nil || got[0].Cwd != "" {
		t.Errorf("%+v, %v", got, err)
	}
	var said []string
	for _, w := range warnings {
		said = append(said, w.Text)
	}
	want := []string{`"x": not taken over: command`, `"x" has neither a command nor a url, and is left out`, `"y": not taken over: args, cwd`,
		`"z": not taken over: url`, `"z" has neither a command nor a url, and is left out`, `"w" is not an object, and is left out`}
	if !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "f: the file is empty",
		" \n":                        "f: the file is empty",
		"{\n  \"mcpServers\": {":     "f:2:18: a key in double quotes or } is wanted here",
		`{"a": 1} x`:                 "f:1:10: something follows the end of the object; remove it",
		`{"a": 1 "b": 2}`:            "f:1:9: a comma or } is wanted here",
		`{"a" 1}`:                    `f:1:6: a colon is wanted after the key "a"`,
		`{"é": tru}`:                 "f:1:7: a value is wanted here: a string in double quotes, a number, true, false, null, an object or a list",
		"{ /* open":                  "f:1:3: this comment is not closed by */",
		`{"mcpServers": []}`:         "f:1:16: mcpServers is not an object of servers",
		"{\"a\": \"b\n\"}":           "f:1:7: this string is not closed on its line",
		"\xff\xfe{\x00}\x00":         "f: the file holds NUL bytes; save it as UTF-8",
		"a = 1\na = 2\n":             "f:2:1: the key a is given twice",
		"a = \"x":                    "f:1:5: this string is not closed by \"",
		"[a\nb = 1":                  "f:1:3: ] is wanted after the name of the table",
		"a = 1 b = 2":                "f:1:7: the end of the line is wanted here",
		"a = \"\\q\"":                "f:1:5: \"\\\\q\" is no escape of TOML; write a backslash as \\\\, or the string in single quotes",
		"mcp_servers = 3":            "f:1:15: mcp_servers is not an object of servers",
		"a = {b = 1}\n[a.c]\n":       "f:2:1: a was given a value before, and cannot be a table",
		strings.Repeat(`{"a":`, 300): "f:1:1001: the file nests deeper than 200",
	} {
		if _, _, err := Read("f", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.40q:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestSecure(t *testing.T) {
	const token = "tok3n-Zq81xK2m9Lr47vB0"
	tests := []struct {
		name string
		in   Server
		want Server
		refs string
	}{
		{"variables", Server{Command: "a", Env: map[string]string{"A_KEY": token, "MAX_TOKENS": "4096", "DEBUG": "true", "PLAIN": "text", "ODD": token, "HOME_DIR": "${HOME}", "LEVEL": "${LEVEL:-low}"}},
			Server{Command: "a", Env: map[string]string{"A_KEY": "{{secret.S_A_KEY}}", "MAX_TOKENS": "4096", "DEBUG": "true", "PLAIN": "text", "ODD": "{{secret.S_A_KEY}}", "HOME_DIR": "{{env.HOME}}", "LEVEL": `{{env.LEVEL ?? "low"}}`}},
			"S_A_KEY"},
		{"headers", Server{URL: "https://x.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer " + token, "X-Token": "$X_TOKEN", "Accept": "a/b"}},
			Server{URL: "https://x.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer {{secret.S_AUTHORIZATION}}", "X-Token": "{{secret.X_TOKEN}}", "Accept": "a/b"}},
			"S_AUTHORIZATION"},
		{"commands of shells", Server{Command: "sh", Args: []string{"-c", "TOKEN=abc run", "x 'A_SECRET=\"a b\" run'", "-lc", `B_TOKEN='c d' run "$B_TOKEN"`}},
			Server{Command: "sh", Args: []string{"-c", "TOKEN={{secret.S_TOKEN}} run", "x 'A_SECRET=\"{{secret.S_A_SECRET}}\" run'", "-lc", `B_TOKEN='{{secret.S_B_TOKEN}}' run "$B_TOKEN"`}},
			"S_TOKEN S_A_SECRET S_B_TOKEN"},
		{"arguments", Server{Command: "a", Args: []string{"--api-key", "hunter2", "--token=abc", "-e", "DB_PASSWORD=x y", "--header", "X-Api-Key: k", "--port", "80", "sh -c 'MY_SECRET=s3 run'"}},
			Server{Command: "a", Args: []string{"--api-key", "{{secret.S_API_KEY}}", "--token={{secret.S_TOKEN}}", "-e", "DB_PASSWORD={{secret.S_DB_PASSWORD}}", "--header", "X-Api-Key: {{secret.S_X_API_KEY}}", "--port", "80", "sh -c 'MY_SECRET={{secret.S_MY_SECRET}} run'"}},
			"S_API_KEY S_TOKEN S_DB_PASSWORD S_X_API_KEY S_MY_SECRET"},
		{"addresses", Server{URL: "https://me:pw@x.example.com/s/" + token + "/mcp?api_key=k1&page=2"},
			Server{URL: "https://{{secret.S_USERINFO}}@x.example.com/s/{{secret.S_URL}}/mcp?api_key={{secret.S_API_KEY}}&page=2"},
			"S_USERINFO S_URL S_API_KEY"},
		{"addresses that let in who knows them", Server{URL: "https://0token@x.example.com/p/0f5cbd5e-8b1d-4b0f-9a9e-2f1c3d4e5f60/mcp?project=p1", Args: []string{"mcp-remote", "http://ann@y.example.com/1f5cbd5e-8b1d-4b0f-9a9e-2f1c3d4e5f61", "postgres://ann@db/x", "--project", "2f5cbd5e-8b1d-4b0f-9a9e-2f1c3d4e5f62"}},
			Server{URL: "https://{{secret.S_USERINFO}}@x.example.com/p/{{secret.S_URL}}/mcp?project=p1", Args: []string{"mcp-remote", "http://{{secret.S_USERINFO_2}}@y.example.com/{{secret.S_ARGS_2}}", "postgres://ann@db/x", "--project", "2f5cbd5e-8b1d-4b0f-9a9e-2f1c3d4e5f62"}},
			"S_USERINFO S_URL S_USERINFO_2 S_ARGS_2"},
		{"passwords behind names", Server{Command: "a", Args: []string{"-u", "bob:hunter2", "--user", "bob:${P}", "-u", "1000:1000", "-u", "node:node", "-u", "bob"}},
			Server{Command: "a", Args: []string{"-u", "bob:{{secret.S_PASSWORD}}", "--user", "bob:{{env.P}}", "-u", "1000:1000", "-u", "node:node", "-u", "bob"}},
			"S_PASSWORD"},
		{"where secrets are, not what they are", Server{Command: "a", Args: []string{"--private-key", "~/.keys/my.pem", "--key=./a/b.key", "--token", "/not/a-file"}, Env: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/home/a/p-1a2b3c4d5e6f7a8b9c0d.json", "MY_SECRET": `C:\s\x.txt`, "KEY": "ab/cd.json"}},
			Server{Command: "a", Args: []string{"--private-key", "~/.keys/my.pem", "--key=./a/b.key", "--token", "{{secret.S_TOKEN}}"}, Env: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/home/a/p-1a2b3c4d5e6f7a8b9c0d.json", "MY_SECRET": `C:\s\x.txt`, "KEY": "{{secret.S_KEY}}"}},
			"S_TOKEN S_KEY"},
		{"asked", Server{Command: "a", Args: []string{"${input:the-id}"}, Env: map[string]string{"K": "${input:the-id}"}},
			Server{Command: "a", Args: []string{"{{secret.the_id}}"}, Env: map[string]string{"K": "{{secret.the_id}}"}}, "the_id"},
		{"where no secrets may stand", Server{Command: "${input:the-id}", Cwd: "/x/${ROOT_TOKEN}", Env: map[string]string{"K": "${ROOT_TOKEN}"}},
			Server{Command: "{{env.HELVE_SECRET_the_id}}", Cwd: "/x/{{env.ROOT_TOKEN}}", Env: map[string]string{"K": "{{secret.ROOT_TOKEN}}"}}, "the_id"},
		{"a default that is a secret", Server{Command: "a", Env: map[string]string{"API_KEY": "${API_KEY:-hunter2}"}},
			Server{Command: "a", Env: map[string]string{"API_KEY": "{{secret.API_KEY}}"}}, ""},
		{"within texts", Server{Command: "a", Args: []string{"--config", `{"apiKey":"k1","n":1}`, "Server=db;Password=pw1;Port=1", "Authorization:${AUTH}"}, Env: map[string]string{"AUTH": "Bearer zzzz-yyyy", "HEADERS": `{"Authorization": "Bearer ntn_abc"}`}},
			Server{Command: "a", Args: []string{"--config", `{"apiKey":"{{secret.S_APIKEY}}","n":1}`, "Server=db;Password={{secret.S_PASSWORD}};Port=1", `Authorization:{{"${"}}AUTH}`}, Env: map[string]string{"AUTH": "Bearer {{secret.S_AUTH}}", "HEADERS": "{{secret.S_HEADERS}}"}},
			"S_APIKEY S_PASSWORD S_AUTH S_HEADERS"},
		{"no templates", Server{Command: "a", Args: []string{"{{x}}", "${1x}", "{${X}", "$HOME", "a@1.2", "img@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}},
			Server{Command: "a", Args: []string{`{{"{{"}}x}}`, `{{"${"}}1x}`, `{{"{"}}{{env.X}}`, "$HOME", "a@1.2", "img@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}, ""},
		{"the same elsewhere", Server{Command: "a", Args: []string{"run " + "hunter22"}, Env: map[string]string{"PASSWORD": "hunter22"}},
			Server{Command: "a", Args: []string{"run {{secret.S_PASSWORD}}"}, Env: map[string]string{"PASSWORD": "{{secret.S_PASSWORD}}"}}, "S_PASSWORD"},
	}
	p := Secrets{Key: func(s string) bool { return strings.EqualFold(s, "authorization") }}
	for _, test := range tests {
		got, refs := p.Secure(test.in, "s")
		test.want.Name = "s"
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", test.name, got, test.want)
		}
		var names []string
		for _, r := range refs {
			if r.Variable {
				if !strings.Contains(fmt.Sprint(got), r.written()) {
					t.Errorf("%s: %s is asked for, and not referred to", test.name, r.Name)
				}
				continue
			}
			names = append(names, r.Name)
		}
		if s := strings.Join(names, " "); s != test.refs {
			t.Errorf("%s: references %q, want %q", test.name, s, test.refs)
		}
	}
}

var two = []Server{
	{Name: "one", Command: "npx", Args: []string{"-y", "@scope/pkg", "yes", "1.0"}, Env: map[string]string{"LEVEL": "on"}},
	{Name: "two", URL: "https://two.example.com/mcp", Disabled: true},
}

const oneTwo = `one:
  command: npx
  args: ["-y", "@scope/pkg", "yes", "1.0"]
  env:
    LEVEL: "on"
two:
  url: "https://two.example.com/mcp"
  disabled: true
`

func indented(n int, s string) string {
	pad := strings.Repeat(" ", n)
	return pad + strings.TrimSuffix(strings.ReplaceAll(s, "\n", "\n"+pad), pad)
}

func TestMergePlaces(t *testing.T) {
	for name, test := range map[string]struct{ before, marked string }{
		"no tools":            {"app: {app_id: a} # c\n", "app: {app_id: a} # c\n\ntools:\n  mcp_servers:\n<4>"},
		"no end of line":      {"app: {app_id: a}", "app: {app_id: a}\n\ntools:\n  mcp_servers:\n<4->"},
		"end of document":     {"app: {app_id: a}\n...\n", "app: {app_id: a}\n\ntools:\n  mcp_servers:\n<4>...\n"},
		"tools":               {"tools:\n    # c\n    modules:\n        mcp: {}\n    # d\n\n# e\napp: {app_id: a}\n", "tools:\n    # c\n    modules:\n        mcp: {}\n    # d\n    mcp_servers:\n<6>\n# e\napp: {app_id: a}\n"},
		"servers":             {"tools:\n  mcp_servers:\n    x:\n      command: x\n    # y: off\n\n  capabilities: {}\n", "tools:\n  mcp_servers:\n    x:\n      command: x\n    # y: off\n<4>\n  capabilities: {}\n"},
		"empty servers":       {"tools:\n  mcp_servers: {} # none yet\n  capabilities: {}\n", "tools:\n  mcp_servers: # none yet\n<4>  capabilities: {}\n"},
		"null servers":        {"tools:\n  mcp_servers: # none\n    # still none\n  capabilities: {}\n", "tools:\n  mcp_servers: # none\n<4>    # still none\n  capabilities: {}\n"},
		"null tools":          {"tools: null\napp: {app_id: a}\n", "tools:\n  mcp_servers:\n<4>app: {app_id: a}\n"},
		"trailing blank text": {"tools:\n  mcp_servers:\n    x:\n      command: |+\n        x\n\n\napp: {app_id: a}\n", "tools:\n  mcp_servers:\n<4>    x:\n      command: |+\n        x\n\n\napp: {app_id: a}\n"},
	} {
		want := test.marked
		want = strings.ReplaceAll(want, "<4->", strings.TrimSuffix(indented(4, oneTwo), "\n"))
		want = strings.ReplaceAll(want, "<4>", indented(4, oneTwo))
		want = strings.ReplaceAll(want, "<6>", indented(6, oneTwo))
		for _, end := range []string{"\n", "\r\n"} {
			for _, lead := range []string{"", bom} {
				before := lead + strings.ReplaceAll(test.before, "\n", end)
				if end == "\r\n" && !strings.Contains(before, end) {
					continue
				}
				got, outcomes, _, err := Merge("f", []byte(before), two, Secrets{}, nil)
				if err != nil || string(got) != lead+strings.ReplaceAll(want, "\n", end) {
					t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, lead+strings.ReplaceAll(want, "\n", end))
					continue
				}
				if len(outcomes) != 2 || outcomes[0].Action != "added" {
					t.Errorf("%s: %+v", name, outcomes)
				}
				again, outcomes, _, err := Merge("f", got, two, Secrets{}, nil)
				if err != nil || string(again) != string(got) || outcomes[1].Action != "same" {
					t.Errorf("%s, a second time: %v %+v", name, err, outcomes)
				}
			}
		}
	}
}

func TestMergeFlowAndRefusal(t *testing.T) {
	for _, before := range []string{"{app: {app_id: é}, tools: {mcp_servers: {x: {command: x}}}} # c\n", "{app: {app_id: a}}\n", "tools: {modules: {}}\n", "tools: {mcp_servers: {}}\n"} {
		got, _, _, err := Merge("f", []byte(before), two, Secrets{}, nil)
		if err != nil {
			t.Errorf("%s: %v", before, err)
			continue
		}
		there, err := appServers("f", string(got))
		if err != nil || !there["one"].same(two[0]) || !there["two"].same(two[1]) || strings.Count(string(got), "\n") != 1 {
			t.Errorf("%s: %v\n%s", before, err, got)
		}
	}
	for _, before := range []string{"x: &x {modules: {}}\ntools: *x\n", "tools: 3\n", "tools:\n  mcp_servers: [a]\n", "b: &b\n  mcp_servers: {x: {command: x}}\ntools:\n  <<: *b\n"} {
		got, _, _, err := Merge("f", []byte(before), two, Secrets{}, nil)
		if err == nil {
			t.Errorf("%s became\n%s", before, got)
		}
	}
}

func TestMergeNames(t *testing.T) {
	servers := []Server{
		{Name: "a b__c.", Command: "x"},
		{Name: "git", Command: "git", Env: map[string]string{"TOKEN": "one"}},
		{Name: "git", Command: "git", Env: map[string]string{"TOKEN": "two"}},
		{Name: "git", Command: "git", Env: map[string]string{"TOKEN": "one"}},
		{Name: "helve", Command: "/usr/bin/helve", Args: []string{"mcp"}},
		{Name: "other", Command: "y"},
	}
	_, outcomes, refs, err := Merge("f", nil, servers, Secrets{}, func(n string) bool { return n == "other" })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range outcomes {
		got = append(got, o.Action+" "+o.As)
	}
	if s := strings.Join(got, ", "); s != "added a_b_c, added git, added git_2, same git, skipped , added other_2" {
		t.Error(s)
	}
	if len(refs) < 2 || refs[0].Name != "GIT_TOKEN" || refs[1].Name != "GIT_2_TOKEN" {
		t.Errorf("%+v", refs)
	}
}

var helve = Entry{Command: `C:\helve "x".exe`, Args: []string{"mcp", "--app", "/a b/é.yaml"}}

func TestInstallAndUninstall(t *testing.T) {
	for name, f := range files {
		c, _ := ClientOf(f.client)
		servers, _, err := Read(name, []byte(f.text))
		if err != nil {
			t.Fatal(err)
		}
		for _, replace := range [][]Server{nil, servers, servers[:1]} {
			out, err := c.Install(name, []byte(f.text), helve, replace)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			now, _, err := Read(name, out)
			if err != nil || len(now) != len(servers)-len(replace)+1 {
				t.Errorf("%s: %v, %d servers\n%s", name, err, len(now), out)
			}
			if replace == nil && len(out) <= len(f.text) {
				t.Errorf("%s: something was lost", name)
			}
			back, exact, err := c.Uninstall(name, out, []byte(f.text))
			if err != nil || !exact || string(back) != f.text {
				t.Errorf("%s: %v, exact %v\n%s", name, err, exact, out)
			}
			changed := strings.Replace(string(out), "example.com", "example.org", 1) + "\n"
			back, exact, err = c.Uninstall(name, []byte(changed), []byte(f.text))
			if err != nil || exact || c.Installed(name, back) {
				t.Errorf("%s, changed: %v, exact %v\n%s", name, err, exact, back)
			}
			left, _, err := Read(name, back)
			if err != nil || len(left) != len(servers)-len(replace) {
				t.Errorf("%s, changed: %v, %d servers\n%s", name, err, len(left), back)
			}
			renewed, err := c.Install(name, out, Entry{Command: "other"}, nil)
			if direct, _ := c.Install(name, []byte(f.text), Entry{Command: "other"}, replace); err != nil || string(renewed) != string(direct) {
				t.Errorf("%s, renewed: %v\n%s\nwant\n%s", name, err, renewed, direct)
			}
		}
	}
	for _, c := range Clients {
		out, err := c.Install("new", nil, helve, nil)
		if back, exact, uerr := c.Uninstall("new", out, nil); err != nil || uerr != nil || !exact || back != nil {
			t.Errorf("%s: %v %v %q", c.ID, err, uerr, back)
		}
	}
}

// Installing keeps every line that was there.
func TestInstallKeepsTheRest(t *testing.T) {
	c, _ := ClientOf("cursor")
	out, err := c.Install("f", []byte(files["cursor.json"].text), Entry{"helve", []string{"mcp"}}, nil)
	want := strings.Replace(files["cursor.json"].text, "\"mcpServers\": {\n", `"mcpServers": {
        "helve": {
            "command": "helve",
            "args": ["mcp"]
        },
`, 1)
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := c.Install("f", []byte("a = 1\n"), helve, nil); err == nil {
		t.Error("TOML was taken for a file of Cursor")
	}
	if _, err := c.Install("f", []byte(`{"mcpServers": 3}`), helve, nil); err == nil {
		t.Error("a number was taken for servers")
	}
	codex, _ := ClientOf("codex")
	if _, err := codex.Install("f", []byte("mcp_servers = {a = {command = 'a'}}\n"), helve, nil); err == nil {
		t.Error("an inline table was added to")
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	os.WriteFile(real, []byte("one"), 0o600)
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	f, err := Open(link)
	if err != nil {
		t.Fatal(err)
	}
	backup, err := f.Backup()
	if err != nil || backup != link+BackupSuffix {
		t.Fatal(backup, err)
	}
	if err := f.Replace([]byte("two")); err != nil {
		t.Fatal(err)
	}
	info, _ := os.Lstat(link)
	data, _ := os.ReadFile(real)
	saved, _ := os.ReadFile(backup)
	mode, _ := os.Stat(real)
	if info.Mode()&os.ModeSymlink == 0 || string(data) != "two" || string(saved) != "one" || mode.Mode().Perm()&0o077 != 0 {
		t.Error(info.Mode(), string(data), string(saved), mode.Mode())
	}
	if _, err := f.Backup(); err != nil {
		t.Fatal(err)
	}
	if older, _ := os.ReadFile(backup + ".1"); string(older) != "one" {
		t.Error("the earlier backup was lost")
	}
	os.WriteFile(real, []byte("theirs"), 0o600)
	if err := f.Replace([]byte("three")); err == nil || !strings.Contains(err.Error(), "changed by another program") {
		t.Error(err)
	}
	if data, _ := os.ReadFile(real); string(data) != "theirs" {
		t.Error("their change was lost")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Error(left)
	}
	os.Remove(real)
	if _, err := Open(link); err == nil {
		t.Error("a link to nothing was opened")
	}
	if _, err := Open(dir); err == nil {
		t.Error("a folder was opened")
	}
}

func FuzzFile(f *testing.F) {
	for _, file := range files {
		f.Add([]byte(file.text))
	}
	f.Add([]byte(`{"mcpServers":{"a":{"command":"a"},/*x*/"helve":{"command":"b"}}}`))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		servers, _, err := Read("f", data)
		if err != nil {
			return
		}
		for _, s := range servers {
			Secrets{}.Secure(s, validName(s.Name))
		}
		for _, c := range Clients {
			for _, replace := range [][]Server{nil, servers} {
				out, err := c.Install("f", data, helve, replace)
				if err != nil {
					continue
				}
				back, exact, err := c.Uninstall("f", out, data)
				if err != nil || !exact || string(back) != string(data) {
					t.Fatalf("%s: %v %v\n%q\nbecame\n%q", c.ID, exact, err, data, out)
				}
			}
		}
	})
}

// What stands under the name of a credential is never written.
func FuzzSecure(f *testing.F) {
	for _, s := range []string{"hunter2", "Bearer abc", "{{x", "a${b", "basic x y", "x;y=z", "BAsiC\n", "bearer"} {
		f.Add(s)
	}
	written := regexp.MustCompile(`^(?i:(?:bearer|basic|token|apikey|digest)[ \t]+)?\{\{secret\.[A-Z0-9_]+\}\}$`)
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "$") || plain.MatchString(s) || !word.MatchString(scheme.ReplaceAllString(s, "")) {
			t.Skip()
		}
		got, refs := Secrets{}.Secure(Server{Command: "a", Env: map[string]string{"API_TOKEN": s}, Args: []string{"--password=" + s}}, "s")
		if !written.MatchString(got.Env["API_TOKEN"]) || len(refs) == 0 {
			t.Errorf("%q became %q", s, got.Env["API_TOKEN"])
		}
		if body := scheme.ReplaceAllString(s, ""); len(body) > 5 && !strings.Contains("--password={{secret.S_API_TOKEN}}", body) && strings.Contains(got.Args[0], body) {
			t.Errorf("%q became %q", s, got.Args[0])
		}
	})
}
