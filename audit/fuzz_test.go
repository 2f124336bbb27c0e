package audit_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/helve-ai/helve/audit"
)

// utf8Of is s with U+FFFD for each byte that is not UTF-8.
func utf8Of(s string) string { return string([]rune(s)) }

func decode(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return v
}

// Whatever is appended is one line of JSON that decodes to what was appended.
func FuzzAppend(f *testing.F) {
	for _, args := range []string{
		``, `null`, `{}`, ` { "a" : [ 1 , -0.5e+3 , true , null , "\u00e9\ud800" ] } `, "{\"a\":\"\x00\"}", "[\"\xff\x7f\u0085\u2028\"]",
		`{"a":1,}`, `[01]`, `[1.]`, `[-]`, `[1e]`, `"open`, `"\x"`, `{"a" 1}`, `[1 2]`, `tru`, `{} {}`, "\xff", `{"a":1}}`, `[[[[]]]]`, `"\u12"`, "1", "-", "0x1",
	} {
		f.Add("a\"\\\n\x00\xff\u0085\U0001F600", []byte(args), int64(5))
	}
	f.Fuzz(func(t *testing.T, text string, args []byte, n int64) {
		dir := t.TempDir()
		l, err := audit.Open(dir, audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		e := audit.Entry{
			Time: time.Unix(n%4e10, n).UTC(), App: text, Agent: text, Session: text, User: text, Kind: text, Call: text, Parent: text,
			Via: []string{text, ""}, Tool: text, Effect: text, Args: args, Decision: text, Stage: text, Reason: text, Approver: text,
			Duration: time.Duration(n), ResultBytes: int(n), ResultDigest: text, Error: text,
			Cost: audit.Cost{Tokens: int(n), Money: text}, Notes: []string{text, text}, Truncated: n%2 == 0,
		}
		if err := l.Append(&e); err != nil {
			t.Fatal(err)
		}
		got := records(t, dir, audit.Filter{})
		if r, err := audit.Verify(dir); len(got) != 1 || err != nil || len(r.Problems) > 0 {
			t.Fatal(got, r, err)
		}
		checkArgs(t, args, got[0].Args)
		u := utf8Of(text)
		want := audit.Entry{
			Time: e.Time, App: u, Agent: u, Session: u, User: u, Kind: u, Call: u, Parent: u, Via: []string{u, ""}, Tool: u, Effect: u,
			Decision: u, Stage: u, Reason: u, Approver: u, Duration: e.Duration, ResultBytes: e.ResultBytes, ResultDigest: u, Error: u,
			Cost: audit.Cost{Tokens: int(n), Money: u}, Notes: []string{u, u}, Truncated: e.Truncated,
		}
		have := got[0].Entry
		if have.Args = nil; !reflect.DeepEqual(have, want) {
			t.Fatalf("got  %+v\nwant %+v", have, want)
		}
	})
}

func checkArgs(t *testing.T, args, got []byte) {
	t.Helper()
	if len(args) == 0 {
		if len(got) > 0 {
			t.Fatalf("no arguments became %q", got)
		}
		return
	}
	if !json.Valid(args) || bytes.Count(args, []byte("["))+bytes.Count(args, []byte("{")) > 500 {
		var text string
		if err := json.Unmarshal(got, &text); err == nil && text == utf8Of(string(args)) {
			return
		}
		if !json.Valid(args) {
			t.Fatalf("%q is not JSON, and became %q", args, got)
		}
	}
	if a, b := decode(t, args), decode(t, got); !reflect.DeepEqual(a, b) {
		t.Fatalf("%q became %q", args, got)
	}
}

// Any change of a file is found, and the log can be read and goes on after it.
func FuzzDamage(f *testing.F) {
	f.Add(uint16(0), uint16(0), []byte("x"))
	f.Add(uint16(100), uint16(1), []byte("y"))
	f.Add(uint16(200), uint16(300), []byte{})
	f.Add(uint16(0), uint16(5000), []byte("\n\n{}\n"))
	f.Add(uint16(5000), uint16(0), []byte("{\"seq\":4,\"time\":\"\""))
	f.Add(uint16(5000), uint16(0), []byte(strings.Repeat("\"}\n", 100)))
	f.Fuzz(func(t *testing.T, at, cut uint16, insert []byte) {
		dir := t.TempDir()
		l := open(t, dir, audit.Options{})
		appendCalls(t, l, 1, 3)
		l.Close()
		whole := read(t, path(dir, 0))
		from := min(int(at), len(whole))
		to := min(from+int(cut), len(whole))
		damaged := slices.Concat(whole[:from], insert, whole[to:])
		rewrite(t, path(dir, 0), damaged)
		r, err := audit.Verify(dir)
		if err != nil || (len(r.Problems) == 0) != bytes.Equal(whole, damaged) {
			t.Fatalf("%q: %v %v", damaged, r, err)
		}
		l = open(t, dir, audit.Options{})
		appendCalls(t, l, 4, 4)
		for r, err := range audit.Query(dir, audit.Filter{Newest: true, Limit: 1}) {
			if err != nil || r.Call != "c4" {
				t.Fatal(r, err)
			}
		}
	})
}
