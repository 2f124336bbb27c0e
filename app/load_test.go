package app_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

var update = flag.Bool("update", false, "write the messages of testdata/bad anew")

// standIn returns a module that offers actions and does nothing.
func standIn[C any](name string, config C, tools ...*tool.Tool) *module.Module {
	return module.New(name, "Stands in for "+name+".", config, func(context.Context, *module.Host, C) (*module.Toolset, error) {
		return &module.Toolset{Tools: tools}, nil
	})
}

func action(name, moduleName, input string, aliases ...string) *tool.Tool {
	return &tool.Tool{Definition: tool.Definition{Name: name, Module: moduleName, Description: "Do " + name + ".",
		Input: schema.Must(input), Effect: tool.Reads, Aliases: aliases}}
}

func actions(moduleName, input string, names ...string) []*tool.Tool {
	var out []*tool.Tool
	for _, n := range names {
		out = append(out, action(moduleName+"."+n, moduleName, input))
	}
	return out
}

const (
	pathInput    = `{"type":"object","properties":{"path":{"type":"string","x-helve-role":"path.write"}}}`
	commandInput = `{"type":"object","properties":{"cmd":{"type":"string","x-helve-role":"command"}}}`
	urlInput     = `{"type":"object","properties":{"url":{"type":"string","x-helve-role":"url"}}}`
)

type noConfig struct{}

type filesystemConfig struct {
	MaxBytes    int `json:"max_bytes" min:"1" jsonschema:"the longest file that is read"`
	Constraints struct {
		MaxWrites int `json:"max_writes" min:"0" jsonschema:"how many files may be written"`
	} `json:"constraints"`
}

type shellConfig struct {
	Profile string   `json:"profile" enum:"passive,full,unrestricted"`
	PassEnv []string `json:"pass_env"`
}

func (c shellConfig) Validate() error {
	for _, name := range c.PassEnv {
		if strings.Contains(name, "=") {
			return &tool.Error{Code: tool.CodeValidation, Message: "pass_env: " + name + " holds a ="}
		}
	}
	return nil
}

// standIns are modules with the names and actions of the real ones.
func standIns() []*module.Module {
	var discovery []*tool.Tool
	for _, n := range []string{"search_tools", "get_tool", "execute_tool", "list_categories", "browse_category"} {
		discovery = append(discovery, action(n, "discovery", `{"type":"object"}`))
	}
	return []*module.Module{
		standIn("discovery", noConfig{}, discovery...),
		standIn("filesystem", filesystemConfig{MaxBytes: 1 << 20}, actions("filesystem", pathInput, "read", "write", "edit", "append", "list", "glob", "grep", "move", "delete", "mkdir", "stat", "extract_zip")...),
		standIn("http", noConfig{}, actions("http", urlInput, "get", "head", "post", "put", "patch", "delete")...),
		standIn("results", noConfig{}, actions("results", `{"type":"object"}`, "read")...),
		standIn("shell", shellConfig{Profile: "passive"}, actions("shell", commandInput, "run")...),
		standIn("tasks", noConfig{}, action("run_parallel", "tasks", `{"type":"object"}`)),
		standIn("workspace", noConfig{}, append(actions("workspace", pathInput, "write_artifact", "edit", "glob", "grep", "delete"), action("workspace.read", "workspace", pathInput, "WsRead"))...),
		standIn("mcp", noConfig{}, actions("mcp", `{"type":"object"}`, "list_servers", "list_resources", "read_resource", "list_prompts", "get_prompt", "health")...),
	}
}

func options() app.LoadOptions {
	env := map[string]string{"USER_NAME": "ada", "SNEAKY": "{{secret.KEY}}", "BRACES": "{{x}}", "PORT": "8080", "YAML": "a: [1]\nb: 2"}
	return app.LoadOptions{
		Modules: standIns(),
		Env:     func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Workdir: filepath.FromSlash("/srv/work"),
		Vars:    map[string]string{"given": "from outside", "raw": "{{env.PORT}}"},
	}
}

func TestBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.bad.yaml")
	if err != nil || len(files) < 45 {
		t.Fatalf("%d cases, %v; want at least 45", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".bad.yaml"), func(t *testing.T) {
			_, err := app.Load(filepath.ToSlash(file), options())
			if err == nil {
				t.Fatal("no problem was found")
			}
			got := strings.ReplaceAll(err.Error(), "testdata/bad/", "") + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s\n(if the change is meant: go test ./app -run TestBad -update)", got, want)
			}
			for _, p := range app.ProblemsOf(func() error { _, err := app.Load(file, options()); return err }()) {
				if p.File == "" || p.Line < 1 || p.Column < 1 || p.Message == "" {
					t.Errorf("%+v has no place", p)
				}
			}
		})
	}
}

func TestGood(t *testing.T) {
	files, _ := filepath.Glob("testdata/good/*.yaml")
	if len(files) < 8 {
		t.Fatalf("%d cases", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := app.Load(file, options()); err != nil {
				t.Error(err)
			}
		})
	}
}
