package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/schema"
)

func fileSchema(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Parse(app.JSONSchema(standIns()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	return s
}

// yamlAsJSON reads a file as an editor would, without anything of ours.
func yamlAsJSON(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchemaAcceptsGoodFiles(t *testing.T) {
	s := fileSchema(t)
	good, _ := filepath.Glob("testdata/good/*.yaml")
	examples, _ := filepath.Glob("../examples/*.yaml")
	for _, file := range slices.Concat(good, examples) {
		for _, p := range s.Validate(yamlAsJSON(t, file)) {
			t.Errorf("%s: %s", file, p)
		}
	}
}

func TestSchemaRejectsBadForms(t *testing.T) {
	s := fileSchema(t)
	for _, name := range []string{"missing-app", "missing-keys", "nothing-under-app", "unknown-top-key", "unknown-keys", "wrong-types",
		"yes-is-no-boolean", "version-number", "app-id", "enums", "bounds", "hook-form", "channel-form", "skill-form", "many",
		"modules", "module-config", "constraints", "setup", "brains", "rules", "agent-modules", "overrides", "not-a-map"} {
		if len(s.Validate(yamlAsJSON(t, "testdata/bad/"+name+".bad.yaml"))) == 0 {
			t.Errorf("the schema accepts %s", name)
		}
	}
}

func TestSchemaIsDeterministic(t *testing.T) {
	a, modules := app.JSONSchema(standIns()), standIns()
	slices.Reverse(modules)
	if b := app.JSONSchema(modules); !bytes.Equal(a, b) {
		t.Error("two runs give two schemas")
	}
	var top struct {
		Schema string `json:"$schema"`
		Defs   map[string]json.RawMessage
	}
	if err := json.Unmarshal(bytes.Replace(a, []byte(`"$defs"`), []byte(`"defs"`), 1), &top); err != nil {
		t.Fatal(err)
	}
	if top.Schema != "https://json-schema.org/draft/2020-12/schema" || top.Defs["Brain"] == nil || top.Defs["Rule"] == nil {
		t.Errorf("$schema %q, $defs %d", top.Schema, len(top.Defs))
	}
}

// Every key says what it is for.
func TestEveryKeyIsDescribed(t *testing.T) {
	type property struct {
		Description string
	}
	var top struct {
		Defs map[string]struct{ Properties map[string]property } `json:"$defs"`
	}
	if err := json.Unmarshal(app.JSONSchema(nil), &top); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Info", "Runtime", "Context", "Agent", "Pool", "Brain", "Tools", "ModuleBlock", "SetupStep", "Capabilities", "Rule", "MCPServer", "Override", "Security", "Dev"} {
		if len(top.Defs[name].Properties) == 0 {
			t.Errorf("there is no %s", name)
		}
		for key, p := range top.Defs[name].Properties {
			if p.Description == "" {
				t.Errorf("%s.%s has no description", name, key)
			}
		}
	}
}

// known is every key of the reference of app files, by where it stands.
var known = map[string]string{
	"":                                     "schema_version app runtime agents tools security dev",
	"app":                                  "app_id name version description author tags icon category",
	"runtime":                              "mode entry_agent max_turns timeout workdir workdir_mode direct_modules tool_injection max_active_tools context hooks middleware repetition max_mistakes watchers scheduler triggers max_sessions_per_user input output payload_schema",
	"runtime/context":                      "max_tokens output_reserved strategy keep_recent compression_trigger",
	"runtime/hooks/0":                      "id on condition action cooldown max_fires priority enabled timeout",
	"agents/0":                             "id role brain system_prompt plan_first specialty delegate_to capabilities modules profile pool hooks",
	"agents/0/pool":                        "max_workers",
	"agents/0/brain":                       "provider model provider_id backend config credential temperature max_tokens top_p timeout native_tool_use context fallback",
	"agents/0/brain/config":                "api_key base_url",
	"agents/0/brain/credential":            "ref scope",
	"agents/0/brain/fallback":              "provider model fallback",
	"tools":                                "modules capabilities mcp_servers search channels",
	"tools/modules/filesystem":             "config setup constraints middleware overrides credential",
	"tools/modules/filesystem/setup/0":     "action params",
	"tools/modules/filesystem/constraints": "allowed_actions blocked_actions max_writes",
	"tools/capabilities":                   "default_policy max_risk_level grant approve deny hidden hidden_modules approval_timeout rate_limits budgets",
	"tools/capabilities/grant/0":           "module actions reason pattern",
	"tools/mcp_servers/s":                  "command args env cwd url headers oauth trusted eager idle_timeout overrides timeout disabled",
	"tools/mcp_servers/s/overrides/t":      "effect risk roles hidden",
	"tools/search":                         "lexicon model embeddings query_timeout query_prefix document_prefix",
	"tools/search/embeddings":              "base_url model api api_key dimensions batch timeout",
	"tools/channels/c":                     "type config",
	"security":                             "sandbox taint credentials allow_hosts",
	"dev":                                  "skills variables include",
	"dev/skills/0":                         "command description path",
}

// Every key of the reference is known: whatever else is wrong with a file that
// has it, it is not that the key is unknown.
func TestEveryKeyIsKnown(t *testing.T) {
	for at, keys := range known {
		for _, key := range append(strings.Fields(keys), "no_such_key") {
			text := fmt.Sprintf("{%q: {}}", key)
			parts := strings.Split(at, "/")
			for i := len(parts) - 1; i >= 0 && at != ""; i-- {
				if parts[i] == "0" {
					text = "[" + text + "]"
				} else {
					text = fmt.Sprintf("{%q: %s}", parts[i], text)
				}
			}
			_, err := app.Parse("x.yaml", []byte(text), options())
			unknown := err != nil && strings.Contains(err.Error(), fmt.Sprintf("unknown key %q", key))
			if unknown != (key == "no_such_key") {
				t.Errorf("%s in %q: unknown is %v: %v", key, at, unknown, err)
			}
		}
	}
}

func TestDescribeModule(t *testing.T) {
	for _, m := range standIns() {
		doc, err := app.DescribeModule(t.Context(), m)
		if err != nil || doc.Name != m.Name || len(doc.Actions) == 0 {
			t.Errorf("%s: %+v, %v", m.Name, doc, err)
		}
		for _, a := range doc.Actions {
			if a.Name == "" || a.Description == "" || a.Risk != "low" || a.Effect != "reads" || !json.Valid(a.Parameters) {
				t.Errorf("%s: %+v", m.Name, a)
			}
		}
		if !json.Valid(doc.Config) || !json.Valid(doc.Constraints) {
			t.Errorf("%s: config %s, constraints %s", m.Name, doc.Config, doc.Constraints)
		}
		if m.Name == "filesystem" && (bytes.Contains(doc.Config, []byte("max_writes")) || !bytes.Contains(doc.Constraints, []byte("max_writes"))) {
			t.Errorf("the module's own constraint stands in its config: %s", doc.Config)
		}
	}
}

// FuzzParse holds that whatever the file, Parse returns, and either an app or
// problems that each have a place and say something.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.yaml")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && len(data) < 4000 {
			f.Add(string(data))
		}
	}
	o := options()
	f.Fuzz(func(t *testing.T, text string) {
		c, err := app.Parse("fuzz.yaml", []byte(text), o)
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
		if err == nil {
			if _, err := json.Marshal(c); err != nil {
				t.Fatal(err)
			}
			return
		}
		ps := app.ProblemsOf(err)
		if len(ps) == 0 {
			t.Fatalf("no problems: %v", err)
		}
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029") + 1
		for _, p := range ps {
			if p.File == "" || p.Line < 1 || p.Line > lines || p.Column < 1 || p.Message == "" {
				t.Errorf("%+v of %d lines", p, lines)
			}
			if strings.Contains(p.Message, "cannot be decoded") {
				t.Errorf("what passed the schema did not decode: %v", p)
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	data, err := os.ReadFile("testdata/good/full.yaml")
	if err != nil {
		b.Fatal(err)
	}
	o := options()
	for b.Loop() {
		if _, err := app.Parse("full.yaml", data, o); err != nil {
			b.Fatal(err)
		}
	}
}
