package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/helve-ai/helve/audit"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("AUDIT_TEST_CHILD"); role != "" {
		os.Exit(child(role))
	}
	goleak.VerifyTestMain(m)
}

// noon is when tests happen, unless they turn their clock.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func clock(at *time.Time) func() time.Time { return func() time.Time { return *at } }

func open(t *testing.T, dir string, o audit.Options) *audit.Log {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return noon }
	}
	l, err := audit.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func appendCalls(t *testing.T, l *audit.Log, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if err := l.Append(&audit.Entry{Call: fmt.Sprint("c", i), Tool: "clock.now", Decision: "allow"}); err != nil {
			t.Fatal(err)
		}
	}
}

// filled makes a closed log of 9 lines in files of about 3.
func filled(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, audit.Options{MaxBytes: 800})
	appendCalls(t, l, 1, 9)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func records(t *testing.T, dir string, f audit.Filter) []audit.Record {
	t.Helper()
	var list []audit.Record
	for r, err := range audit.Query(dir, f) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func calls(list []audit.Record) string {
	var names []string
	for _, r := range list {
		if r.Kind == audit.Recovered {
			names = append(names, "("+r.Reason+")")
		} else {
			names = append(names, r.Call)
		}
	}
	return strings.Join(names, " ")
}

// wantClean fails unless the log is whole and has n lines.
func wantClean(t *testing.T, dir string, n int) {
	t.Helper()
	r, err := audit.Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) > 0 || r.Lines != n {
		t.Fatalf("got %d lines and problems %v; want %d lines and none", r.Lines, r.Problems, n)
	}
}

// wantProblems fails unless the problems are the wanted ones, each by a part of it.
func wantProblems(t *testing.T, dir string, want ...string) {
	t.Helper()
	r, err := audit.Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	ok := len(r.Problems) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.Contains(r.Problems[i].String(), want[i])
	}
	if !ok {
		t.Errorf("got problems %q\nwant %q", r.Problems, want)
	}
}

func path(dir string, n int) string {
	if n == 0 {
		return filepath.Join(dir, "audit-2026-11-20.jsonl")
	}
	return filepath.Join(dir, fmt.Sprintf("audit-2026-11-20.%d.jsonl", n))
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rewrite replaces a file's content, whatever its mode.
func rewrite(t *testing.T, file string, content []byte) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, content, 0o600), os.Chmod(file, info.Mode())); err != nil {
		t.Fatal(err)
	}
}

func TestLine(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{})
	for range 2 {
		if err := l.Append(sample()); err != nil {
			t.Fatal(err)
		}
	}
	lines := bytes.SplitAfter(read(t, path(dir, 0)), []byte("\n"))
	const want = `{"seq":1,"time":"2026-11-20T12:30:00.123456789Z","app":"coder","agent":"main","session":"s-01HV7Z",` +
		`"user":"ada","kind":"model","call":"call_8f2k1","parent":"call_8f2k0","via":["execute_tool"],` +
		`"tool":"filesystem.write","effect":"writes",` +
		`"args":{"path":"docs/naïve \"x\".md","content":"one\ntwo\nthree, and some more text to write","mode":420},` +
		`"decision":"allow","stage":"policy","reason":"granted by rule filesystem.write(path: \"docs/**\")",` +
		`"duration_ns":1500000,"result_bytes":812,"result_digest":"sha256:9f86d081884c7d65",` +
		`"cost":{"tokens":12,"money":"0.0001 USD"},"notes":["mode: \"420\" to 420"],` +
		`"prev":"0000000000000000000000000000000000000000000000000000000000000000"`
	sum := sha256.Sum256([]byte(want))
	if diff := cmp.Diff(want+`,"hash":"`+hex.EncodeToString(sum[:])+"\"}\n", string(lines[0])); diff != "" {
		t.Error(diff)
	}
	if prev := `"prev":"` + hex.EncodeToString(sum[:]) + `"`; !bytes.Contains(lines[1], []byte(prev)) {
		t.Errorf("second line %s lacks %s", lines[1], prev)
	}
	head := fmt.Sprintf("%020d %s %-32s\n", 2, records(t, dir, audit.Filter{})[1].Hash, filepath.Base(path(dir, 0)))
	if got := string(read(t, filepath.Join(dir, "head"))); got != head {
		t.Errorf("head is %q, want %q", got, head)
	}
}

func TestEntryComesBack(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{})
	e := sample()
	e.Error, e.Approver, e.Truncated, e.Via = "timeout", "ada", true, []string{"a", "b"}
	if err := l.Append(e); err != nil {
		t.Fatal(err)
	}
	want := *e
	var compact bytes.Buffer
	if err := json.Compact(&compact, e.Args); err != nil {
		t.Fatal(err)
	}
	want.Args = compact.Bytes()
	if diff := cmp.Diff(want, records(t, dir, audit.Filter{})[0].Entry); diff != "" {
		t.Error(diff)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}); n >= 5 {
		t.Errorf("Append allocates %v times, want fewer than 5", n)
	}
}

func TestRotation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "audit")
	now := noon
	l := open(t, dir, audit.Options{MaxBytes: 800, Now: clock(&now)})
	appendCalls(t, l, 1, 5)
	now = now.Add(12 * time.Hour)
	appendCalls(t, l, 6, 6)
	now = now.Add(-time.Hour) // the clock is set back
	appendCalls(t, l, 7, 7)
	now = now.Add(time.Hour)
	if err := l.Append(&audit.Entry{Call: "long", Reason: strings.Repeat("x", 2000)}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records(t, dir, audit.Filter{}) {
		got = append(got, fmt.Sprintf("%d %s %s", r.Seq, r.Call, r.File))
	}
	want := []string{
		"1 c1 audit-2026-11-20.jsonl", "2 c2 audit-2026-11-20.jsonl", "3 c3 audit-2026-11-20.jsonl",
		"4 c4 audit-2026-11-20.1.jsonl", "5 c5 audit-2026-11-20.1.jsonl",
		"6 c6 audit-2026-11-21.jsonl", "7 c7 audit-2026-11-21.jsonl",
		"8 long audit-2026-11-21.1.jsonl",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantClean(t, dir, 8)
	r, _ := audit.Verify(dir)
	if r.Files != 4 || !r.First.Equal(noon) || !r.Last.Equal(noon.Add(12*time.Hour)) {
		t.Errorf("report %+v", r)
	}
}

func TestTampering(t *testing.T) {
	edit := func(n int, change func(lines []string) []string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			lines := strings.SplitAfter(string(read(t, path(dir, n))), "\n")
			rewrite(t, path(dir, n), []byte(strings.Join(change(lines[:len(lines)-1]), "")))
		}
	}
	remove := func(name func(dir string) string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(name(dir)); err != nil {
				t.Fatal(err)
			}
		}
	}
	head := func(dir string) string { return filepath.Join(dir, "head") }
	rehash := func(line string) string {
		body := regexp.MustCompile(`,"hash":"[^"]*"}\n$`).ReplaceAllString(line, "")
		return fmt.Sprintf("%s,\"hash\":\"%x\"}\n", body, sha256.Sum256([]byte(body)))
	}
	other := func(line string) string { return strings.Replace(line, `"clock.now"`, `"clock.set"`, 1) }
	tests := []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   []string
	}{
		{"nothing", func(*testing.T, string) {}, nil},
		{"edited", edit(1, func(l []string) []string { l[1] = other(l[1]); return l }), []string{"audit-2026-11-20.1.jsonl:2: line 5 was edited"}},
		{"edited in its hash", edit(1, func(l []string) []string { l[1] = strings.Replace(l[1], `"hash":"`, `"hash":"x`, 1); return l }),
			[]string{".1.jsonl:2: is not a line", ".1.jsonl:3: lines 5 to 5 are missing"}},
		{"edited and hashed anew", edit(1, func(l []string) []string { l[1] = rehash(other(l[1])); return l }), []string{".1.jsonl:3: line 6 does not follow"}},
		{"last edited and hashed anew", edit(2, func(l []string) []string { l[2] = rehash(other(l[2])); return l }), []string{"head: names a line 9 that is not in the log"}},
		{"taken away", edit(1, func(l []string) []string { return append(l[:1], l[2]) }), []string{".1.jsonl:2: lines 5 to 5 are missing"}},
		{"first taken away", edit(0, func(l []string) []string { return l[1:] }), []string{"20.jsonl:1: lines 1 to 1 are missing"}},
		{"swapped", edit(1, func(l []string) []string { l[0], l[1] = l[1], l[0]; return l }),
			[]string{"lines 4 to 4 are missing", "line 4 stands after line 5", "lines 5 to 5 are missing"}},
		{"repeated", edit(1, func(l []string) []string { return append(l, l[2]) }), []string{".1.jsonl:4: line 6 stands after line 6"}},
		{"inserted", edit(1, func(l []string) []string { return append([]string{"{\"seq\":4}\n"}, l...) }), []string{".1.jsonl:1: is not a line"}},
		{"blank", edit(1, func(l []string) []string { return append([]string{"\n"}, l...) }), []string{".1.jsonl:1: is not a line"}},
		{"joined", edit(1, func(l []string) []string { l[1] = strings.TrimSuffix(l[1], "\n"); return l }), []string{".1.jsonl:2: line 5 was edited", "lines 6 to 6"}},
		{"cut", edit(2, func(l []string) []string { return l[:1] }), []string{"head: lines 8 to 9 are missing at the end"}},
		{"torn", edit(2, func(l []string) []string { l[2] = l[2][:50]; return l }), []string{".2.jsonl:3: is unfinished (50 bytes", "head: lines 9 to 9"}},
		{"emptied", edit(1, func([]string) []string { return nil }), []string{".2.jsonl:1: lines 4 to 6"}},
		{"file gone", remove(func(d string) string { return path(d, 1) }), []string{".2.jsonl:1: lines 4 to 6"}},
		{"first file gone", remove(func(d string) string { return path(d, 0) }), []string{".1.jsonl:1: lines 1 to 3"}},
		{"last file gone", remove(func(d string) string { return path(d, 2) }), []string{"head: lines 7 to 9 are missing at the end", ".2.jsonl: is missing"}},
		{"head gone", remove(head), []string{"head: is missing"}},
		{"head edited", func(t *testing.T, dir string) {
			rewrite(t, head(dir), bytes.Replace(read(t, head(dir)), []byte("9 "), []byte("8 "), 1))
		}, []string{"head: names a line 8"}},
		{"head cut", func(t *testing.T, dir string) { rewrite(t, head(dir), []byte("0000")) }, []string{"head: cannot be read"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filled(t)
			tt.damage(t, dir)
			wantProblems(t, dir, tt.want...)
		})
	}
}

// A log goes on after damage, and neither hides it nor lets it be hidden.
func TestRecovery(t *testing.T) {
	newest := func(dir string) string { return path(dir, 2) }
	tests := []struct {
		name     string
		damage   func(t *testing.T, dir string)
		want     string // calls from the seventh
		problems []string
	}{
		{"torn", func(t *testing.T, dir string) {
			rewrite(t, newest(dir), append(read(t, newest(dir)), `{"seq":10,"time":"2026`...))
		}, "c7 c8 c9 (dropped 22 bytes of an unfinished line at the end of audit-2026-11-20.2.jsonl) c10", nil},
		{"torn and long", func(t *testing.T, dir string) {
			rewrite(t, newest(dir), append(read(t, newest(dir)), bytes.Repeat([]byte("x"), 100_000)...))
		}, "c7 c8 c9 (dropped 100000 bytes of an unfinished line at the end of audit-2026-11-20.2.jsonl) c10", nil},
		{"without line feed", func(t *testing.T, dir string) {
			rewrite(t, newest(dir), bytes.TrimSuffix(read(t, newest(dir)), []byte("\n")))
		}, "c7 c8 c9 (ended line 9 of audit-2026-11-20.2.jsonl, which had no line feed) c10", nil},
		{"killed before the head", func(t *testing.T, dir string) {
			rewrite(t, filepath.Join(dir, "head"), fmt.Appendf(nil, "%020d %s %-32s\n", 8,
				records(t, dir, audit.Filter{})[7].Hash, filepath.Base(newest(dir))))
		}, "c7 c8 c9 c10", nil},
		{"cut", func(t *testing.T, dir string) {
			b := read(t, newest(dir))
			rewrite(t, newest(dir), b[:bytes.IndexByte(b, '\n')+1])
		}, "c7 (found lines 8 to 9 missing at the end: cut off, or lost in a power cut) c10", []string{".2.jsonl:2: lines 8 to 9 are missing"}},
		{"last file gone", func(t *testing.T, dir string) {
			if err := os.Remove(newest(dir)); err != nil {
				t.Fatal(err)
			}
		}, "(found lines 7 to 9 missing at the end: cut off, or lost in a power cut) c10", []string{"lines 7 to 9 are missing"}},
		{"head gone", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "head")); err != nil {
				t.Fatal(err)
			}
		}, "c7 c8 c9 (found the head missing or unreadable) c10", nil},
		{"last edited", func(t *testing.T, dir string) {
			rewrite(t, newest(dir), bytes.Replace(read(t, newest(dir)), []byte(`"c9"`), []byte(`"cX"`), 1))
		}, "c7 c8 cX (found altered or unreadable lines at the end: 1; found lines 9 to 9 missing at the end: cut off, or lost in a power cut) c10",
			[]string{".2.jsonl:3: line 9 was edited"}},
		{"empty next file", func(t *testing.T, dir string) {
			if err := os.WriteFile(path(dir, 3), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "c7 c8 c9 c10", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filled(t)
			tt.damage(t, dir)
			l := open(t, dir, audit.Options{})
			appendCalls(t, l, 10, 10)
			_, got, _ := strings.Cut(calls(records(t, dir, audit.Filter{})), "c6 ")
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			wantProblems(t, dir, tt.problems...)
		})
	}
}

// The same damage under an open log, which finds it at its next call.
func TestRecoveryWhileOpen(t *testing.T) {
	dir := t.TempDir()
	now := noon
	l := open(t, dir, audit.Options{Now: clock(&now)})
	appendCalls(t, l, 1, 3)
	b := read(t, path(dir, 0))
	rewrite(t, path(dir, 0), append(b, "{\"se"...))
	appendCalls(t, l, 4, 4)
	if got, want := calls(records(t, dir, audit.Filter{})), "c1 c2 c3 (dropped 4 bytes of an unfinished line at the end of audit-2026-11-20.jsonl) c4"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	wantClean(t, dir, 5)
	// The whole log is rolled back, head included, and even so leaves a gap.
	head := read(t, filepath.Join(dir, "head"))
	appendCalls(t, l, 5, 6)
	rewrite(t, path(dir, 0), b)
	rewrite(t, filepath.Join(dir, "head"), head)
	appendCalls(t, l, 7, 7)
	wantProblems(t, dir, "lines 4 to 7 are missing")
	// Renamed away: seen at the next look, a second later.
	if err := os.Rename(path(dir, 0), filepath.Join(dir, "stolen")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if err := l.Reserve(); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 8, 8)
	wantProblems(t, dir, "lines 1 to 9 are missing")
}

func TestManyLogsOneChain(t *testing.T) {
	dir := t.TempDir()
	const logs, each = 4, 100
	var wg sync.WaitGroup
	for i := range logs {
		l := open(t, dir, audit.Options{MaxBytes: 10_000})
		for j := range 2 {
			wg.Go(func() {
				for k := range each / 2 {
					if err := errors.Join(l.Reserve(), l.Append(&audit.Entry{Call: fmt.Sprintf("%d-%d", i, j*each/2+k)})); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	wantClean(t, dir, logs*each)
	seen := map[string]bool{}
	for _, r := range records(t, dir, audit.Filter{}) {
		seen[r.Call] = true
	}
	if len(seen) != logs*each {
		t.Errorf("%d different calls, want %d", len(seen), logs*each)
	}
}

func TestClose(t *testing.T) {
	l := open(t, t.TempDir(), audit.Options{})
	appendCalls(t, l, 1, 1)
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"Append": l.Append(&audit.Entry{}), "Reserve": l.Reserve()} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

func TestSyncEachLine(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{SyncEvery: -1})
	appendCalls(t, l, 1, 3)
	wantClean(t, dir, 3)
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct {
		name  string
		place func(dir string) error
		want  string
	}{
		{"file for a folder", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "move away what stands"},
		{"folder for a head", func(dir string) error { return os.MkdirAll(filepath.Join(dir, "head"), 0o700) }, "head: is not a regular file; move it away"},
		{"folder for a file", func(dir string) error { return os.MkdirAll(path(dir, 0), 0o700) }, "audit-2026-11-20.jsonl: is not a regular file; move it away"},
		{"link for a file", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Symlink(filepath.Join(dir, "elsewhere"), path(dir, 0)))
		}, "audit-2026-11-20.jsonl: is not a regular file; move it away"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "audit")
			if err := tt.place(dir); err != nil {
				t.Skip(err)
			}
			_, err := audit.Open(dir, audit.Options{Now: func() time.Time { return noon }})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want %q with %q", err, tt.want, dir)
			}
		})
	}
	for _, f := range []func(string) error{
		func(dir string) error { _, err := audit.Verify(dir); return err },
		func(dir string) error {
			for _, err := range audit.Query(dir, audit.Filter{}) {
				return err
			}
			return nil
		},
	} {
		if err := f(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a folder that is not there: %v", err)
		}
	}
}

func TestQuery(t *testing.T) {
	dir := t.TempDir()
	now := noon
	l := open(t, dir, audit.Options{MaxBytes: 700, Now: clock(&now)})
	for i, e := range []audit.Entry{
		{Tool: "filesystem.read", Decision: "allow", Session: "s1", App: "a", User: "ada"},
		{Tool: "filesystem.write", Decision: "deny", Session: "s1", App: "a", User: "bob", Reason: "Outside ROOT"},
		{Tool: "shell.run", Decision: "ask", Session: "s2", App: "b", User: "ada", Error: "timeout", Args: json.RawMessage(`{"command":"say \"Hi\""}`)},
		{Tool: "mcp/x.read", Decision: "allow", Session: "s2", App: "b", User: "bob", Error: "runtime_error", Notes: []string{"a to b"}},
	} {
		e.Call, e.Time = fmt.Sprint(i+1), noon.Add(time.Duration(i)*time.Hour)
		if err := l.Append(&e); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		filter audit.Filter
		want   string
	}{
		{audit.Filter{}, "1 2 3 4"},
		{audit.Filter{Newest: true}, "4 3 2 1"},
		{audit.Filter{Newest: true, Limit: 3}, "4 3 2"},
		{audit.Filter{Limit: 1}, "1"},
		{audit.Filter{Tool: "filesystem.*"}, "1 2"},
		{audit.Filter{Tool: "*read"}, "1 4"},
		{audit.Filter{Tool: "shell.ru?"}, "3"},
		{audit.Filter{Tool: "shell"}, ""},
		{audit.Filter{Tool: "*s*e*w*"}, "2"},
		{audit.Filter{Decision: "allow"}, "1 4"},
		{audit.Filter{Session: "s2"}, "3 4"},
		{audit.Filter{App: "a"}, "1 2"},
		{audit.Filter{User: "ada", Session: "s2"}, "3"},
		{audit.Filter{Error: "timeout"}, "3"},
		{audit.Filter{Error: "*"}, "3 4"},
		{audit.Filter{Since: noon.Add(time.Hour), Until: noon.Add(3 * time.Hour)}, "2 3"},
		{audit.Filter{Text: "outside root"}, "2"},
		{audit.Filter{Text: `SAY "hi"`}, "3"},
		{audit.Filter{Text: "A TO"}, "4"},
		{audit.Filter{Text: "decision"}, ""},
	}
	for _, tt := range tests {
		if got := calls(records(t, dir, tt.filter)); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.filter, got, tt.want)
		}
	}
}

func TestQueryDamaged(t *testing.T) {
	dir := filled(t)
	first := bytes.SplitAfter(read(t, path(dir, 0)), []byte("\n"))
	rewrite(t, path(dir, 0), bytes.Join([][]byte{first[0], []byte("rubbish\n"), first[1], first[2], []byte(`{"seq":`)}, nil))
	for _, newest := range []bool{false, true} {
		var got, bad []string
		for r, err := range audit.Query(dir, audit.Filter{Newest: newest}) {
			if err != nil {
				bad = append(bad, err.Error())
			} else {
				got = append(got, r.Call)
			}
		}
		want := fmt.Sprintf("audit-2026-11-20.jsonl: line at byte %d: ", len(first[0]))
		if len(got) != 9 || len(bad) != 1 || !strings.Contains(bad[0], want) {
			t.Errorf("newest %v: got %v and errors %q; want 9 records and %q", newest, got, bad, want)
		}
	}
}

// Long lines cross the buffers of both ways of reading.
func TestLongLines(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{})
	for i, n := range []int{0, 70_000, 3, 600_000, 65_536, 1} {
		if err := l.Append(&audit.Entry{Call: fmt.Sprint(i), Reason: strings.Repeat("x", n)}); err != nil {
			t.Fatal(err)
		}
	}
	wantClean(t, dir, 6)
	for newest, want := range map[bool]string{false: "0 1 2 3 4 5", true: "5 4 3 2 1 0"} {
		if got := calls(records(t, dir, audit.Filter{Newest: newest})); got != want {
			t.Errorf("newest %v: got %q, want %q", newest, got, want)
		}
	}
}
