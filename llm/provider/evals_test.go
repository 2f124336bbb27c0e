package provider

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

// An exchange is one that was recorded, and what a parser of its own made of it.
type exchange struct {
	Cassette string `json:"cassette"`
	N        int    `json:"n"`
	API      string `json:"api"`
	Stream   bool   `json:"stream"`
	Host     string `json:"host"`
	Expect   *struct {
		Text     string `json:"text"`
		Finish   string `json:"finish"`
		Thinking int    `json:"thinking_chars"`
		Calls    []struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"arguments"`
		} `json:"tool_calls"`
	} `json:"expect"`
	kind string
	body []byte
}

// TestRecorded replays recorded exchanges in pieces of several sizes.
func TestRecorded(t *testing.T) {
	dir := os.Getenv("HELVE_EVALS")
	if dir == "" {
		t.Skip("set HELVE_EVALS to the folder of evaluation data")
	}
	dir = filepath.Join(dir, "llm")
	f, err := os.Open(filepath.Join(dir, "interactions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen, right, none := map[string]int{}, map[string]int{}, map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var x exchange
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		spec := recordedSpec(x.API)
		if x.Expect == nil || spec.Backend == "" {
			none[x.API]++
			continue
		}
		x.load(t, dir)
		for _, size := range []int{1, 7, 64} {
			row := fmt.Sprintf("%-16s stream=%-5v pieces of %d", x.API, x.Stream, size)
			seen[row]++
			if problem := x.replay(t, spec, size); problem != "" {
				t.Errorf("%s #%d (%s): %s", x.Cassette, x.N, row, problem)
			} else {
				right[row]++
			}
		}
	}
	var rows []string
	for row := range seen {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	for _, row := range rows {
		t.Logf("%s: %d of %d", row, right[row], seen[row])
	}
	for api, n := range none {
		t.Logf("%s: %d without an expectation or a backend", api, n)
	}
}

func recordedSpec(api string) Spec {
	s := Spec{Provider: "recorded", Model: "recorded"}
	switch api {
	case "openai-chat":
		s.Backend = "openai_compat"
	case "openai-responses":
		s.Backend, s.Config = "openai_compat", json.RawMessage(`{"api":"responses"}`)
	case "anthropic":
		s.Backend = "anthropic"
	case "bedrock": // whole answers are those of Anthropic
		s.Backend = "anthropic"
	case "google":
		s.Backend = "gemini"
	}
	if !slices.ContainsFunc(Backends(), func(b Backend) bool { return b.Name == s.Backend }) {
		s.Backend = ""
	}
	return s
}

func (x *exchange) load(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "cassettes", x.Cassette+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Interactions []struct {
			Response struct {
				Type   string `json:"content_type"`
				Body   string `json:"body"`
				Base64 bool   `json:"base64"`
			} `json:"response"`
		} `json:"interactions"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	r := c.Interactions[x.N].Response
	x.kind, x.body = r.Type, []byte(r.Body)
	if r.Base64 {
		if x.body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			t.Fatal(err)
		}
	}
}

// replay says in what an answer differs from what was expected; "": in nothing.
func (x *exchange) replay(t *testing.T, s Spec, size int) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", x.kind)
		for piece := range slices.Chunk(x.body, size) {
			if _, err := w.Write(piece); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}))
	defer srv.Close()
	s.BaseURL = srv.URL
	o, err := Open(s)
	if err != nil {
		return err.Error()
	}
	got, err := llm.Collect(o.Model.Generate(t.Context(), &llm.Request{Messages: []llm.Message{llm.Said(llm.User, "Hello")}}))
	if err != nil {
		return err.Error()
	}
	return x.compare(got)
}

func (x *exchange) compare(got *llm.Reply) string {
	if text := (&tool.Result{Content: got.Content}).JoinText(); text != x.Expect.Text {
		return fmt.Sprintf("text %q, want %q", text, x.Expect.Text)
	}
	if len(got.Calls) != len(x.Expect.Calls) {
		return fmt.Sprintf("%d calls, want %d", len(got.Calls), len(x.Expect.Calls))
	}
	for i, want := range x.Expect.Calls {
		c := got.Calls[i]
		if c.Name != want.Name || want.ID != "" && c.ID != want.ID || !sameJSON(c.Args, want.Args) {
			return fmt.Sprintf("call %s %s %s, want %s %s %s", c.ID, c.Name, c.Args, want.ID, want.Name, want.Args)
		}
	}
	if want := x.stop(); got.Stop != want {
		return fmt.Sprintf("stop %s, want %s", got.Stop, want)
	}
	thought := ""
	for _, t := range got.Thought {
		thought += t.Text
	}
	if thought == "" && x.Expect.Thinking > 0 { // not the other way round: the count leaves out summaries
		return fmt.Sprintf("no reasoning, want %d letters", x.Expect.Thinking)
	}
	if got.Usage.Input == 0 && bytes.Contains(x.body, []byte("okens\":")) {
		return "no usage"
	}
	return ""
}

// stop is what a recorded reason means.
func (x *exchange) stop() llm.Stop {
	switch f := strings.ToLower(x.Expect.Finish); {
	case f == "length" || f == "max_tokens":
		return llm.StopLength
	case len(x.Expect.Calls) > 0:
		return llm.StopCalls
	case f == "stop" || f == "end_turn" || f == "completed":
		return llm.StopEnd
	}
	return llm.StopOther
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
