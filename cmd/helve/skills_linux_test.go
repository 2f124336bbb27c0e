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

// An agent that is set to work has of what its skills grant what the one above
// has as well: nothing is passed down, and nothing is had beyond that.
func TestGrantsOfSkillsIntersect(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash: apt-get install bash")
	}
	eachMachine(t, func(t *testing.T, m machine) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		call := fmt.Sprintf(`{calls: [{tool: shell.run, args: {profile: unrestricted, cmd: "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d && echo reached || echo cut off' 2>&1; echo vars=$SKILL_REGION,$SKILL_SHELF."}}]}`, l.Addr().(*net.TCPAddr).Port)
		spawn := func(id string) string {
			return `{calls: [{tool: agents.spawn, args: {tasks: [{agent: ` + id + `, task: Go}]}}]}`
		}
		use := func(skill string) string { return `{calls: [{tool: use_skill, args: {name: "` + skill + `"}}]}` }
		agent := func(id, more string, turns ...string) string {
			return "  - {id: " + id + ", delegate_to: [plain, able], " + more + "brain: {backend: script, config: {turns: [" + strings.Join(turns, ", ") + `, {say: "[[last]]"}]}}}` + "\n"
		}
		dir := folder(t, "app.yaml", unasked("require")+"\ndev: {skill_folders: [skills]}\nagents:\n"+
			agent("none", "", spawn("able"))+
			agent("loads", "", use("research"), spawn("plain"), spawn("able"), use(""), spawn("able"))+
			agent("other", "capabilities: [part], ", spawn("able"))+
			agent("plain", "", call)+
			agent("able", "capabilities: [research], ", call),
			filepath.Join("skills", "research", "SKILL.md"), "---\ndescription: Looks things up.\nneeds_network: true\npass_env: [SKILL_REGION, SKILL_SHELF]\n---\nLook it up.\n",
			filepath.Join("skills", "part", "SKILL.md"), "---\ndescription: Less.\npass_env: [SKILL_SHELF]\n---\nLook it up.\n")
		for id, want := range map[string][]string{
			"able":  {"reached", "vars=north,3"},
			"none":  {"cut off", "vars=,"},
			"loads": {"cut off", "vars=,", "reached", "vars=north,3", "cut off", "vars=,"},
			"other": {"cut off", "vars=,3"},
		} {
			cmd := m.command(t, dir, "run", "app.yaml", "Go", "--json", "--agent", id)
			cmd.Env = append(cmd.Env, "SKILL_REGION=north", "SKILL_SHELF=3")
			out, err := cmd.CombinedOutput()
			results := regexp.MustCompile(`(?m)^\{"type":"result".*$`).FindAllString(string(out), -1)
			got := regexp.MustCompile(`reached|cut off|vars=[^.]*`).FindAllString(strings.Join(results, "\n"), -1)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q; %v\n%s", id, got, want, err, out)
			}
		}
	})
}
