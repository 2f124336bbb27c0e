package mcpbridge_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// skillScenarios are the suite's about skills, with how many checks each makes.
var skillScenarios = map[string]int{"sep-2640-skills-enumeration": 32, "sep-2640-skills-manifest": 6, "sep-2640-skills-directory": 7}

// The app's own skills, as helve serve serves them, and those of an upstream
// server that are passed on, hold to the suite: every check succeeds, and none
// is skipped but of what an older revision does not have.
func TestConformanceSkills(t *testing.T) {
	command := conformance24(t)
	theirs := newShelf(true)
	theirs.add("skill://acme/billing/refunds", map[string]string{"SKILL.md": skillMD("refunds", "Pays back.", "See tools."), "tools/x.md": "x"})
	h, _ := gateway(t, nil, rename(serveHTTP(t, theirs.server, true), "theirs"))
	for name, url := range map[string]string{
		"own":       serveApp(t, everythingServer(t), false),
		"passed on": h.http(t, "").URL,
	} {
		for _, version := range []string{"2026-07-28", "2025-11-25"} {
			for scenario, want := range skillScenarios {
				t.Run(name+"/"+version+"/"+scenario, func(t *testing.T) {
					dir := t.TempDir()
					out, _ := exec.CommandContext(t.Context(), command[0], command[1], "server", "--url", url, "--scenario", scenario,
						"--spec-version", version, "--force", "-o", dir).CombinedOutput() // what failed is in the file
					files, _ := filepath.Glob(filepath.Join(dir, "server-*", "checks.json"))
					if len(files) != 1 {
						t.Fatalf("%d scenarios ran\n%s", len(files), out)
					}
					data, err := os.ReadFile(files[0])
					var checks []check
					if err == nil {
						err = json.Unmarshal(data, &checks)
					}
					if err != nil || len(checks) != want {
						t.Errorf("%d checks, want %d: %v", len(checks), want, err)
					}
					for _, c := range checks {
						older := version < "2026-07-28" && strings.HasSuffix(c.ID, "-cache-attributes")
						if c.Status != "SUCCESS" && !(older && c.Status == "SKIPPED") {
							t.Errorf("%s: %s: %s", c.ID, c.Status, c.ErrorMessage)
						}
					}
				})
			}
		}
	}
}
