package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// faulty is an app in which some writes are granted, some asked about, and
// some denied.
const faulty = `app: {app_id: faults, name: Faults}
tools:
  modules: {filesystem: {}, checkpoint: {}}
  capabilities:
    approval_wait: always
    grant: ['filesystem.write(path: "open/**")', checkpoint.*]
    approve: ['filesystem.write(path: "asked/**")']
    deny: ['filesystem.write(path: "closed/**")']
`

// A faults is what clients and an approver know of a daemon that is killed
// again and again.
type faults struct {
	dir string

	mu       sync.Mutex
	sent     map[string]bool   // texts of granted writes, and what was there before
	done     map[string]string // by text the path of each write that was acknowledged
	refused  map[string]bool   // texts of writes whose refusal was acknowledged
	agreed   map[string]bool   // paths for which an approval was sent
	answered map[string]string // by id the state after each answer that was acknowledged
	quota    int               // writes and answers until the daemon is killed
	enough   chan struct{}
}

// acknowledged notes what is known now, and counts it.
func (f *faults) acknowledged(note func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	note()
	if f.quota--; f.quota == 0 {
		close(f.enough)
	}
}

const faultsToken = "the-operators-own-token"

// try sends a request until the daemon is gone.
func (f *faults) try(method, url, body string) (status int, answer []byte, ok bool) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, false
	}
	req.Header.Set("Authorization", "Bearer "+faultsToken)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, false
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err == nil
}

// writes writes unique texts to paths until the daemon is gone.
func (f *faults) writes(t *testing.T, d *daemon, who string, path func(i int) string) {
	for i := 0; ; i++ {
		text, to := fmt.Sprintf("%s-%d", who, i), path(i)
		f.mu.Lock()
		f.sent[text] = true
		f.mu.Unlock()
		_, answer, ok := f.try("POST", d.URL+"/mcp", fmt.Sprintf(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.write","arguments":{"path":%q,"content":%q}}}`, to, text))
		switch {
		case !ok || !strings.Contains(string(answer), `"result"`):
			return
		case strings.Contains(string(answer), `"isError":true`):
			if strings.HasPrefix(to, "open/") || strings.HasSuffix(to, "yes.txt") {
				t.Errorf("%s: %s", to, answer)
			}
			f.mu.Lock()
			f.refused[text] = true // there are many at once: they do not count
			f.mu.Unlock()
		default:
			if strings.HasPrefix(to, "closed/") || strings.HasSuffix(to, "no.txt") {
				t.Errorf("%s: %s", to, answer)
			}
			f.acknowledged(func() { f.done[text] = to })
		}
	}
}

// approves answers questions, as the names of the files say, until the daemon is gone.
func (f *faults) approves(t *testing.T, d *daemon) {
	for {
		_, body, ok := f.try("GET", d.URL+"/api/approvals?wait=5", "")
		var l struct{ Questions []waiting }
		if !ok {
			return
		}
		if err := json.Unmarshal(body, &l); err != nil {
			t.Errorf("%v: %s", err, body)
			return
		}
		for _, q := range l.Questions {
			var args struct{ Path string }
			if err := json.Unmarshal(q.Args, &args); err != nil {
				t.Error(err)
			}
			answer, state := "deny", "denied"
			if strings.HasSuffix(args.Path, "yes.txt") {
				answer, state = "approve", "approved"
				f.mu.Lock()
				f.agreed[args.Path] = true
				f.mu.Unlock()
			}
			if status, _, ok := f.try("POST", d.URL+"/api/approvals/"+q.ID, `{"answer":"`+answer+`"}`); ok && status == 200 {
				f.acknowledged(func() { f.answered[q.ID] = state })
			}
		}
	}
}

// run has a daemon work until it is killed.
func (f *faults) run(t *testing.T, round int) {
	d := serveEnv(t, f.dir, []string{"HELVE_TOKEN=" + faultsToken}, "--app", "app.yaml")
	f.enough, f.quota = make(chan struct{}), 1+rand.IntN(60)
	who := func(what string) string { return fmt.Sprintf("%d-%s", round, what) }
	var all sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		all.Go(func() {
			f.writes(t, d, who(name), func(i int) string { return []string{"open/a.txt", "open/new/b.txt"}[i%2] })
		})
		all.Go(func() {
			f.writes(t, d, who("asked"+name), func(i int) string {
				return fmt.Sprintf("asked/%s-%d-%s.txt", who(name), i, []string{"yes", "no"}[i%2])
			})
		})
	}
	all.Go(func() { f.writes(t, d, who("closed"), func(int) string { return "closed/c.txt" }) })
	all.Go(func() { f.approves(t, d) })
	<-f.enough
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.wait()
	all.Wait()
}

// holds looks at the files after a kill.
func (f *faults) holds(t *testing.T) {
	t.Helper()
	now := contents(t, f.dir)
	for name, text := range now {
		hidden := strings.HasPrefix(filepath.Base(name), ".helve-tmp-") // which a killed process was writing
		switch {
		case hidden || text == "folder" || name == "app.yaml":
		case strings.HasPrefix(name, "open/"):
			if !f.sent[text] {
				t.Fatalf("%s holds %q, which nobody wrote", name, text)
			}
		case !strings.HasPrefix(name, "asked/") || !f.agreed[name] || !f.sent[text]:
			t.Fatalf("%s holds %q: nobody approved it", name, text)
		}
	}
	for text, path := range f.done {
		if strings.HasPrefix(path, "asked/") && now[path] != text {
			t.Fatalf("%s was approved, written and acknowledged, and holds %q", path, now[path])
		}
	}
}

// A daemon that is killed at random points of granted, approved and denied
// writes has lost nothing that it acknowledged, and done nothing that was not
// granted or approved: files are as before or as after, and the audit, the
// answers and the checkpoints are there.
func TestFaults(t *testing.T) {
	needsUnix(t)
	t.Parallel()
	runs := 5
	if n, err := strconv.Atoi(os.Getenv("HELVE_TEST_KILLS")); err == nil && n > 0 {
		runs = n
	}
	f := &faults{dir: folder(t, "open/a.txt", "first", "app.yaml", faulty), sent: map[string]bool{"first": true}, done: map[string]string{},
		refused: map[string]bool{}, agreed: map[string]bool{}, answered: map[string]string{}}
	before := contents(t, f.dir)
	for round := 0; round < runs || len(f.done)*len(f.refused)*len(f.answered) == 0 && round < runs+20; round++ {
		f.run(t, round)
		f.holds(t)
	}
	t.Logf("%d runs: %d writes, %d refusals and %d answers were acknowledged", runs, len(f.done), len(f.refused), len(f.answered))
	if len(f.done) == 0 || len(f.refused) == 0 || len(f.answered) == 0 {
		t.Fatal("nothing was tried")
	}

	recorded := map[string]string{}
	for _, l := range audited(t, f.dir, "--tool", "filesystem.write", "--app", "app.yaml") {
		var args struct{ Content string }
		if err := json.Unmarshal(l.Args, &args); err != nil {
			t.Fatal(err)
		}
		recorded[args.Content] = l.Decision
	}
	for text := range f.done {
		if recorded[text] != "allow" && recorded[text] != "approve" {
			t.Errorf("the write of %q was acknowledged, and its record says %q", text, recorded[text])
		}
	}
	for text := range f.refused {
		if recorded[text] != "deny" {
			t.Errorf("the write of %q was refused, and its record says %q", text, recorded[text])
		}
	}
	states := map[string]string{}
	for _, q := range waitingIn(t, f.dir, "--all", "--app", "app.yaml") {
		states[q.ID] = q.State
	}
	for id, state := range f.answered {
		if states[id] != state {
			t.Errorf("the answer to %s was acknowledged as %s, and is %q", id, state, states[id])
		}
	}
	var all []struct{ ID int64 }
	if err := json.Unmarshal([]byte(must(t, f.dir, "checkpoints", "--json", "--limit", "0", "--app", "app.yaml")), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < len(f.done) {
		t.Errorf("%d writes were acknowledged, and there are %d checkpoints", len(f.done), len(all))
	}
	must(t, f.dir, "checkpoints", "restore", fmt.Sprint(all[len(all)-1].ID), "--since", "--yes", "--app", "app.yaml")
	got := contents(t, f.dir)
	maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasPrefix(filepath.Base(name), ".helve-tmp-") })
	if !maps.Equal(got, before) {
		t.Errorf("after all was taken back: %v, want %v", got, before)
	}
	verified(t, f.dir, "--app", "app.yaml")
}
