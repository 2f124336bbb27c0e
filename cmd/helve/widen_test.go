package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loose is an app that lets everything run, but for what cannot be let.
func loose(more string) string {
	return `app: {app_id: any, name: Any}
tools:
  modules: {filesystem: {}, workspace: {}, checkpoint: {}, tasks: {}, shell: {config: {profile: unrestricted}}}
  capabilities:
    default_policy: auto
    max_risk_level: high
    grant: ["*"]
    approve: [filesystem.stat]
    approval_wait: always
` + more
}

// archive returns a ZIP file with these entries.
func archive(t testing.TB, entries map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range entries {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Whatever tools may do, none changes policy, ignore files, questions or the
// state, by any way that leads there.
func TestNoToolWidensRights(t *testing.T) {
	policy := map[string]string{
		"conf/app.yaml": loose("dev: {include: [rules.yaml]}\n"), "conf/rules.yaml": "tools: {capabilities: {deny: [http.post]}}\n",
		".helveignore": "dark/\n/deep/shade\n", ".helveprotect": "kept/\n", "deep/shade/x": "s3cret",
		".git/config": "[core]\n", ".git/hooks/pre-commit": "#!/bin/sh\n", "sub/.git/config": "[core]\n",
	}
	var files []string
	for name, text := range policy {
		files = append(files, name, text)
	}
	dir := folder(t, append(files, "a.txt", "x", "sub/x", "x",
		"evil.zip", archive(t, map[string]string{"app.yaml": "x", "rules.yaml": "x", ".helveignore": "x", ".helveprotect": "x", "helve.db": "x"}))...)
	link(t, dir, "conf", "way")
	link(t, dir, "conf/app.yaml", "one")
	link(t, dir, ".helve", "state")
	app := []string{"--app", "conf/app.yaml", "--root", "."}
	s := stdio(t, dir, app...)
	inBackground(t, s, "filesystem.stat", object{"path": "a.txt"})
	q := asked(t, dir, app...)

	targets := []string{"conf/app.yaml", "conf/rules.yaml", "conf/../conf/rules.yaml", "way/app.yaml", "way/rules.yaml", "one", ".helveignore", ".helveprotect",
		".helve/helve.db", "state/helve.db", ".helve/audit/x", filepath.Join(dir, "conf/app.yaml"),
		".git/config", ".git/hooks/pre-commit", ".git/hooks/post-checkout", "sub/.git/config", ".GIT/config", ".helveIGNORE", "./.helveprotect", "deep/../.helveignore", "deep/shade/x"}
	for _, at := range targets {
		for name, args := range map[string]object{
			"filesystem.write":         {"path": at, "content": "x"},
			"filesystem.append":        {"path": at, "content": "x"},
			"filesystem.edit":          {"path": at, "old": "any", "new": "x"},
			"filesystem.delete":        {"path": at},
			"filesystem.move":          {"from": "a.txt", "to": at, "overwrite": true},
			"workspace.edit":           {"path": at, "old": "any", "new": "x"},
			"workspace.write_artifact": {"path": at, "content": "x"},
			"workspace.delete":         {"path": at},
		} {
			if at == "one" && (name == "filesystem.delete" || name == "workspace.delete") || at == "one" && name == "filesystem.move" {
				continue // the link itself is nobody's
			}
			if r := call(t, s, name, args); !r.IsError && !strings.HasPrefix(name, "workspace.") { // which has a folder of its own
				t.Errorf("%s %v: %+v", name, args, r)
			}
		}
	}
	for _, c := range []struct {
		name string
		args object
	}{
		{"filesystem.move", object{"from": "conf", "to": "conf2"}},
		{"filesystem.move", object{"from": "conf/rules.yaml", "to": "r.yaml"}},
		{"filesystem.move", object{"from": ".helve", "to": "h"}},
		{"filesystem.move", object{"from": "deep", "to": "light"}},
		{"filesystem.move", object{"from": "deep/shade", "to": "light"}},
		{"filesystem.move", object{"from": "sub", "to": "light"}},
		{"filesystem.move", object{"from": ".git", "to": "light"}},
		{"filesystem.move", object{"from": "a.txt", "to": "sub/.git/hooks/pre-commit"}},
		{"filesystem.delete", object{"path": "deep", "recursive": true}},
		{"filesystem.extract_zip", object{"path": "evil.zip", "to": ".git/hooks", "overwrite": true}},
		{"filesystem.read", object{"path": "deep/shade/x"}},
		{"filesystem.delete", object{"path": "conf", "recursive": true}},
		{"filesystem.delete", object{"path": ".helve", "recursive": true}},
		{"filesystem.extract_zip", object{"path": "evil.zip", "to": "conf", "overwrite": true}},
		{"filesystem.extract_zip", object{"path": "evil.zip", "to": "way", "overwrite": true}},
		{"filesystem.extract_zip", object{"path": "evil.zip", "to": ".", "overwrite": true}},
		{"filesystem.extract_zip", object{"path": "evil.zip", "to": ".helve", "overwrite": true}},
		{"filesystem.read", object{"path": ".helve/helve.db"}},
		{"filesystem.read", object{"path": "state/helve.db"}},
	} {
		if r := call(t, s, c.name, c.args); !r.IsError {
			t.Errorf("%s %v: %+v", c.name, c.args, r)
		}
	}
	unchanged := func(after string) {
		t.Helper()
		for name, want := range policy {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s is now %q, %v, after %s", name, got, err, after)
			}
		}
	}
	unchanged("tools for files")
	for _, profile := range []string{"passive", "full", "unrestricted"} {
		for _, cmd := range []string{
			"mv conf conf3", "mv deep light", "mv deep/shade shadow", "mv .git light", "mv .helveignore x", "mv a.txt .helveignore", "mv -f a.txt conf/app.yaml", "mv conf/rules.yaml .",
			"cp a.txt .helveignore", "cp a.txt way/rules.yaml", "cp -r sub conf", "ln -f a.txt .helveprotect", "ln conf/app.yaml hard", "ln -s conf soft", "ln -sf a.txt conf/app.yaml",
			"rm -rf conf", "rm -rf .helve", "rm .helveignore", "rm -rf deep", "touch .git/hooks/post-checkout", "chmod 777 conf/app.yaml", "truncate -s 0 conf/app.yaml", "sed -i s/deny/grant/ conf/rules.yaml",
			"echo x > .helveignore", "echo x >> conf/rules.yaml", "echo x > soft/app.yaml", "echo x > hard", "echo x > one", "tee conf/app.yaml < a.txt", "dd if=a.txt of=.helveprotect", "unzip -o evil.zip -d conf", "tar -xf evil.tar -C conf",
			"git config core.pager evil", "git -C sub config core.fsmonitor evil", "git config --file conf/app.yaml a.b c", "git apply evil.patch", "git mv conf conf3", "git checkout -- .",
			"python3 -c \"open('.helveignore','w')\"", "cat deep/shade/x", "helve approvals approve " + q.ID + " --app conf/app.yaml --root .", "sqlite3 .helve/helve.db 'delete from data'",
		} {
			r := call(t, s, "shell.run", object{"profile": profile, "cmd": cmd})
			unchanged(profile + ": " + cmd)
			if strings.Contains(r.Text, "s3cret") {
				t.Errorf("%s: %+v", cmd, r)
			}
		}
	}
	call(t, s, "shell.run", object{"profile": "unrestricted", "cmd": fmt.Sprintf(
		`for f in conf/app.yaml conf/rules.yaml way/rules.yaml .helveignore .helveprotect .helve/helve.db; do echo x > $f; rm -f $f; mv $f gone; done; mv conf conf3; rm -rf conf .helve; helve approvals approve %s --app conf/app.yaml --root .`, q.ID)})
	unchanged("all at once")
	for _, gone := range []string{"conf2", "conf3", "r.yaml", "h", "light", "shadow/x", ".git/hooks/post-checkout"} {
		if exists(filepath.Join(dir, gone)) {
			t.Errorf("%s was made", gone)
		}
	}
	if still := asked(t, dir, app...); still.ID != q.ID || still.State != "waiting" {
		t.Errorf("the question is now %+v", still)
	}
	must(t, dir, append([]string{"approvals", "deny", q.ID}, app...)...)
	verified(t, dir, app...)
}

// What a file was before it became the app file is not restored by tools.
func TestRestoringIsNoWayToPolicies(t *testing.T) {
	dir := folder(t, "app.yaml", loose(""))
	write := func(text string) {
		args, err := json.Marshal(object{"path": "next.yaml", "content": text})
		if err != nil {
			t.Fatal(err)
		}
		must(t, dir, "tools", "call", "filesystem.write", string(args), "--yes", "--app", "app.yaml")
	}
	strict := strings.Replace(loose(""), "approve: [filesystem.stat]", "deny: [filesystem.mkdir]", 1)
	write(loose("")) // a model's
	write(strict)    // and what the operator made of it
	s := stdio(t, dir, "--app", "next.yaml")
	var all []struct{ ID int }
	if err := json.Unmarshal([]byte(must(t, dir, "checkpoints", "--json", "--app", "app.yaml")), &all); err != nil || len(all) != 2 {
		t.Fatalf("checkpoints: %+v, %v", all, err)
	}
	for _, cp := range all {
		for _, args := range []object{{"id": cp.ID}, {"id": cp.ID, "path": "next.yaml"}, {"id": cp.ID, "since": true, "force": true}} {
			if r := call(t, s, "checkpoint.restore", args); !r.IsError && !strings.Contains(r.Text, "not restored: next.yaml: it belongs to Helve's configuration") {
				t.Errorf("%v: %+v", args, r)
			}
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "next.yaml")); err != nil || string(got) != strict {
		t.Errorf("the app file is now %q, %v", got, err)
	}
}

// A grant of commands holds for a compound command only if it covers each part
// of it, and paths are matched where they lead (SPEC A1).
func TestGrantsCoverEveryPart(t *testing.T) {
	const text = `app: {app_id: any, name: Any}
tools:
  modules: {filesystem: {}, tasks: {}, shell: {config: {profile: unrestricted}}}
  capabilities:
    grant: ['shell.run(command: "echo *")', 'filesystem.write(path: "free/**")']
security: {sandbox: off}
`
	dir := folder(t, "app.yaml", text, "free/x", "x", "other/x", "x")
	link(t, dir, "../other", "free/way")
	s := stdio(t, dir, "--app", "app.yaml")
	shell := func(cmd string) object { return object{"cmd": cmd, "profile": "unrestricted"} }
	path := func(p string) object { return object{"path": p, "content": "x"} }
	for _, test := range []struct {
		tool string
		args object
		runs bool
	}{
		{"shell.run", shell("echo hello"), true},
		{"shell.run", shell("echo a && echo b"), true},
		{"shell.run", shell("echo a && touch made"), false},
		{"shell.run", shell("echo a; touch made"), false},
		{"shell.run", shell("echo a | tee made"), false},
		{"shell.run", shell("echo $(touch made)"), false},
		{"shell.run", shell("echo `touch made`"), false},
		{"shell.run", shell("echo a > made"), false},
		{"shell.run", shell("echo a\ntouch made"), false},
		{"shell.run", shell("echo <(touch made)"), false},
		{"shell.run", shell("echoes"), false},
		{"filesystem.write", path("free/a"), true},
		{"filesystem.write", path("./other/../free/b"), true},
		{"filesystem.write", path("free/../made"), false},
		{"filesystem.write", path("free/way/made"), false},
		{"filesystem.write", path("other/made"), false},
	} {
		for _, way := range []string{"straight", "execute_tool", "run_parallel"} {
			var r reply
			switch way {
			case "straight":
				r = call(t, s, test.tool, test.args)
			case "execute_tool":
				r = call(t, s, "execute_tool", object{"name": test.tool, "params": test.args})
			case "run_parallel":
				r = call(t, s, "run_parallel", object{"actions": []object{{"name": test.tool, "params": test.args}}})
				r.IsError = strings.Contains(r.Text, `"success":false`)
			}
			if refused := strings.Contains(r.Text, "approval_denied") || strings.Contains(r.Text, "permission_denied"); refused == test.runs || r.IsError == test.runs {
				t.Errorf("%s %v (%s): %+v", test.tool, test.args, way, r)
			}
		}
		args, err := json.Marshal(test.args)
		if err != nil {
			t.Fatal(err)
		}
		if out, errs, code := run(t, dir, "", "tools", "call", test.tool, string(args), "--app", "app.yaml"); (code == 0) != test.runs || !test.runs && code != 3 {
			t.Errorf("helve tools call %s %s: %d %s%s", test.tool, args, code, out, errs)
		}
	}
	for _, made := range []string{"made", "free/made", "other/made"} {
		if exists(filepath.Join(dir, made)) {
			t.Errorf("%s was made", made)
		}
	}
}
