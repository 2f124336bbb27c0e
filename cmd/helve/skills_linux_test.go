package main

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// While a skill is loaded, and no longer, commands of its agent reach the
// network and see the variables that it declares; credentials never.
func TestSkillsGrantToCommands(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash: apt-get install bash")
	}
	eachMachine(t, func(t *testing.T, m machine) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		run := fmt.Sprintf(`{tool: shell.run, args: {profile: unrestricted, cmd: "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d && echo reached || echo cut off' 2>&1; echo vars=$SKILL_REGION,$SKILL_API_TOKEN,$LD_TRACE."}}`, l.Addr().(*net.TCPAddr).Port)
		call := "{calls: [" + run + "]}"
		agents := `
dev: {skill_folders: [skills]}
agents:
  - id: one
    brain: {backend: script, config: {turns: [` + call + `, {calls: [{tool: skills.research}]}, ` + call + `, {calls: [{tool: use_skill, args: {name: ""}}]}, ` + call + `, {say: end}]}}
`
		dir := folder(t, "app.yaml", unasked("require")+agents, filepath.Join("skills", "research", "SKILL.md"),
			"---\ndescription: Looks things up.\nneeds_network: true\npass_env: [SKILL_REGION, SKILL_API_TOKEN, LD_TRACE]\n---\nLook it up.\n")
		cmd := m.command(t, dir, "run", "app.yaml", "Go", "--json")
		cmd.Env = append(cmd.Env, "SKILL_REGION=north", "SKILL_API_TOKEN=s3cret", "LD_TRACE=loaded")
		out, err := cmd.CombinedOutput()
		results := regexp.MustCompile(`(?m)^\{"type":"result".*$`).FindAllString(string(out), -1)
		got := regexp.MustCompile(`reached|cut off|vars=[^.]*`).FindAllString(strings.Join(results, "\n"), -1)
		want := []string{"cut off", "vars=,,", "reached", "vars=north,,", "cut off", "vars=,,"}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, want %q; %v\n%s", got, want, err, out)
		}
	})
}
