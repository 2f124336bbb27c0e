package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cut sends part of an answer and breaks the connection.
func cut(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		chunks(events...)(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func times(n int, h http.HandlerFunc) (all []http.HandlerFunc) {
	for range n {
		all = append(all, h)
	}
	return all
}

const soon = "0.01" // of Retry-After

// What a provider answers decides how a run ends: what may pass is asked for
// again, and of the rest is said what can be done.
func TestBrainsThatFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		code    int
		says    string // on standard error, or as the answer
	}{
		"wrong key":            {[]http.HandlerFunc{fails(401, `{"error":{"message":"Incorrect API key provided: sk-very-secret-key","code":"invalid_api_key"}}`)}, 2, "check the brain's credential or its config.api_key"},
		"wrong key, as a 400":  {[]http.HandlerFunc{fails(400, `{"error":{"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`)}, 2, "check the brain's credential or its config.api_key"},
		"not allowed":          {[]http.HandlerFunc{fails(403, `{"error":{"message":"Your project may not use it"}}`)}, 2, "Your project may not use it"},
		"no such model":        {[]http.HandlerFunc{fails(404, `{"error":{"message":"gone"}}`)}, 2, `the model "gpt-test"`},
		"too many, soon":       {[]http.HandlerFunc{fails(429, `{"error":{"message":"slow down"}}`, "Retry-After", soon), says("Here I am.")}, 0, "Here I am."},
		"too many, for long":   {[]http.HandlerFunc{fails(429, `{"error":{"message":"slow down"}}`, "Retry-After", "3600")}, 2, "it can be asked again in 1h0m0s (that is too long to wait for)"},
		"overloaded":           {[]http.HandlerFunc{fails(529, `{"error":{"message":"Overloaded"}}`, "Retry-After", soon), says("Here I am.")}, 0, "Here I am."},
		"broken for good":      {times(4, fails(500, `{"error":{"message":"it broke"}}`, "Retry-After", soon)), 2, "500 Internal Server Error: it broke; it can be asked again in 10ms (it was asked 4 times)"},
		"overloaded for good":  {times(4, fails(529, `{"error":{"message":"Overloaded"}}`, "Retry-After", soon)), 2, "openai: 529: Overloaded"},
		"broken, then limited": {[]http.HandlerFunc{fails(500, `oops`, "Retry-After", soon), fails(429, ``, "Retry-After", soon), says("Here I am.")}, 0, "Here I am."},
		"a web page":           {[]http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!DOCTYPE html><p>Welcome") }}, 2, "is a web page, not the API: check base_url"},
		"refused":              {[]http.HandlerFunc{chunks(`{"choices":[{"delta":{"refusal":"I will not."},"finish_reason":"stop"}]}`, "[DONE]")}, 3, "the model or its provider would not answer"},
		"cut off":              {[]http.HandlerFunc{chunks(`{"choices":[{"delta":{"content":"Half of"},"finish_reason":"length"}]}`, "[DONE]")}, 0, "longer than the brain's max_tokens allow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, c.answers...)
			out, errs, code := run(t, folder(t, "app.yaml", s.app("")), "", "run", "app.yaml", "Hello")
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", code, c.code, c.says, out, errs)
			}
			if got := len(s.requests()); got != len(c.answers) {
				t.Errorf("%d requests, want %d", got, len(c.answers))
			}
			if strings.Contains(out+errs, "sk-very-secret-key") {
				t.Errorf("the key is shown:\n%s%s", out, errs)
			}
			if c.code != 0 && !strings.Contains(errs, "helve run app.yaml \"…\" --session ") {
				t.Errorf("how to go on is not said:\n%s", errs)
			}
		})
	}
}

const appending = `,"runtime":{"tool_injection":"direct"},"tools":{"modules":{"filesystem":{}},"capabilities":{"grant":["filesystem.append"]}}`

// Of an answer that broke off no call is run, and what was run is not run
// again, neither by retries nor when the session is taken up again.
func TestNothingHappensTwice(t *testing.T) {
	t.Parallel()
	const args = `{"path":"log.txt","content":"once\n"}`
	call := `{"choices":[{"delta":{"content":"I write.","tool_calls":[{"index":0,"id":"c1","function":{"name":"filesystem__append","arguments":"{\"path\":\"log.txt\",\"content\":\"never\\n\"}"}}]}}]}`
	s := newScripted(t,
		cut(call),                             // all of the call came, but not the end of the answer
		chunks(call, `{"choices":[{"delta":`), // an event that cannot be read
		callsTool("c2", "filesystem__append", args),
		fails(500, `{"error":{"message":"it broke"}}`, "Retry-After", soon), fails(500, `{}`, "Retry-After", soon), fails(500, `{}`, "Retry-After", soon), fails(401, `{"error":{"message":"revoked"}}`),
		says("It is written."))
	dir := folder(t, "app.yaml", s.app(appending), "log.txt", "")
	out, errs, code := run(t, dir, "", "run", "app.yaml", "Write it down")
	if code != 2 || !strings.Contains(errs, "revoked") || strings.Contains(out, "I write.") {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	_, rest, _ := strings.Cut(errs, "--session ")
	session := strings.Fields(rest)[0]
	if out = must(t, dir, "run", "app.yaml", "Go on", "--session", session); !strings.Contains(out, "It is written.") {
		t.Errorf("taken up again: %s", out)
	}
	if got := contents(t, dir)["log.txt"]; got != "once\n" {
		t.Errorf("the file holds %q", got)
	}
	if lines := audited(t, dir, "--app", "app.yaml"); len(lines) != 1 || lines[0].Tool != "filesystem.append" {
		t.Errorf("the audit: %+v", lines)
	}
	last := s.requests()[len(s.requests())-1]
	if strings.Count(last, `"c2`) < 2 || !strings.Contains(last, "Go on") || strings.Contains(last, "never") {
		t.Errorf("the model is told:\n%s", last)
	}
}

// A person who interrupts a run does not wait for the provider; the provider
// is left at once, and the session stays.
func TestInterruptedWhileItSpeaks(t *testing.T) {
	needsUnix(t)
	t.Parallel()
	left := make(chan struct{})
	s := newScripted(t, func(w http.ResponseWriter, r *http.Request) {
		chunks(`{"choices":[{"delta":{"content":"Well, "}}]}`)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	}, says("As I said."))
	dir := folder(t, "app.yaml", s.app(""))
	cmd := exec.CommandContext(t.Context(), raced, "run", "--json", "app.yaml", "Speak")
	cmd.Dir, cmd.Env = dir, environ()
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "Well, ") {
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out)
	for lines.Scan() {
		rest = append(rest, lines.Bytes()...)
	}
	_ = cmd.Wait()
	<-left
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s%s", code, rest, &errs)
	}
	if sessions := must(t, dir, "sessions", "--app", "app.yaml"); !strings.Contains(sessions, "Speak") {
		t.Errorf("the sessions: %s", sessions)
	}
	if out := must(t, dir, "run", "app.yaml", "Go on", "--session", "20"); !strings.Contains(out, "As I said.") {
		t.Errorf("taken up again: %s", out)
	}
}

// A provider that says nothing is given up when the brain's time is over.
func TestBrainThatIsSilent(t *testing.T) {
	t.Parallel()
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	s := newScripted(t, hang)
	dir := folder(t, "app.yaml", strings.Replace(s.app(""), `"model":"gpt-test"`, `"model":"gpt-test","timeout":1`, 1))
	out, errs, code := run(t, dir, "", "run", "app.yaml", "Hello")
	if code != 2 || !strings.Contains(errs, "did not answer within 1s") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// An answer by which nothing can be gone on is not the last word: the model is
// told what was wrong with it, as often as it may be, and the run fails then.
func TestAnswersInVain(t *testing.T) {
	t.Parallel()
	const used = `,"tools":{"modules":{"filesystem":{}}}`
	const list = "<tool_call>\n{\"name\": \"filesystem.list\", \"arguments\": {}}\n</tool_call>"
	const unknown = "<tool_call>\n{\"name\": \"filesystem.lst\", \"arguments\": {}}\n</tool_call>"
	for name, c := range map[string]struct {
		more     string
		answers  []http.HandlerFunc
		code     int
		says     string
		told     string // to the model, in the request after the first answer
		requests int
	}{
		"unknown tool": {used, []http.HandlerFunc{says(unknown), says(list), says("One file.")}, 0, "One file.", "did you mean filesystem.list", 3},
		"cut off":      {used, []http.HandlerFunc{says(list[:50]), says(list), says("One file.")}, 0, "One file.", "a call was cut off", 3},
		"one of two":   {used, []http.HandlerFunc{says(list + "\n" + unknown), says("One file.")}, 0, "One file.", "[note] no tool named", 2},
		"for good":     {used, times(3, says(unknown)), 2, "3 answers in a row held calls that cannot be read", "did you mean filesystem.list", 3},
		"of the form": {used + `,"runtime":{"mode":"one_shot","output":{"type":"object","required":["name"]}}`, []http.HandlerFunc{says(`{"name":"it","arguments":{}}`)},
			0, `{"name":"it","arguments":{}}`, "", 1},
		"of the form, fenced": {used + `,"runtime":{"mode":"one_shot","output":{"type":"object","required":["name"]}}`, []http.HandlerFunc{says("```json\n{\"name\":\"it\"}\n```")},
			0, "\x00{\"name\":\"it\"}\n", "", 1},
		"empty":          {used, []http.HandlerFunc{says(""), says("Here I am.")}, 0, "Here I am.", "Your last answer was empty", 2},
		"empty for good": {used, times(3, says(" \n")), 2, "the model said nothing, 3 times in a row", "Your last answer was empty", 3},
		"only thought of": {used, []http.HandlerFunc{chunks(`{"choices":[{"delta":{"reasoning_content":"Hm."},"finish_reason":"length"}]}`, "[DONE]")},
			2, "cut off before anything was said", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, c.answers...)
			app := strings.Replace(s.app(c.more), `"brain":{`, `"brain":{"native_tool_use":false,`, 1)
			out, errs, code := run(t, folder(t, "app.yaml", app), "", "run", "app.yaml", "What is here?")
			if code != c.code || !strings.Contains("\x00"+out+errs, c.says) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", code, c.code, c.says, out, errs)
			}
			asked := s.requests()
			if len(asked) != c.requests {
				t.Fatalf("%d requests, want %d", len(asked), c.requests)
			}
			if len(asked) > 1 && !strings.Contains(asked[1], c.told) {
				_, messages, _ := strings.Cut(asked[1], `"role":"system"`)
				t.Errorf("the model is not told %q: %s", c.told, messages)
			}
		})
	}
}

// A model that writes its calls and goes on with what they might answer is
// asked to stop there, where that costs it no stops of its own; what it says
// all the same neither counts nor is called.
func TestMadeUpResults(t *testing.T) {
	t.Parallel()
	call := func(path string) string {
		return "<tool_call>\n{\"name\": \"filesystem.write\", \"arguments\": {\"path\": \"" + path + "\", \"content\": \"x\"}}\n</tool_call>\n"
	}
	madeUp := call("a.txt") + "<tool_response>\nwritten\n</tool_response>\nNow the other.\n" + call("b.txt")
	byOllama := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"message":{"content":%s},"done":true,"done_reason":"stop"}`+"\n", encode(t, text))
		}
	}
	for name, c := range map[string]struct {
		says  func(string) http.HandlerFunc
		brain func(url string) string
		stops bool
	}{
		"openai_compat": {says, func(url string) string {
			return `"provider":"mine","native_tool_use":false,"config":{"base_url":"` + url + `/v1","api_key":"x"}`
		}, true},
		"ollama": {byOllama, func(url string) string { return `"provider":"ollama","config":{"base_url":"` + url + `"}` }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, c.says(madeUp), c.says("One is written."))
			dir := folder(t, "app.yaml", `{"app":{"app_id":"m","name":"M"},"agents":[{"id":"a","brain":{"model":"qwen2.5",`+c.brain(s.URL)+`}}],
				"tools":{"modules":{"filesystem":{}},"capabilities":{"grant":["filesystem.write"]}}}`)
			out, errs, code := run(t, dir, "", "run", "app.yaml", "Write two files")
			asked := s.requests()
			if code != 0 || len(asked) != 2 || !exists(filepath.Join(dir, "a.txt")) || exists(filepath.Join(dir, "b.txt")) {
				t.Fatalf("exit code %d, %d requests\n%s%s", code, len(asked), out, errs)
			}
			if got := strings.Contains(asked[0], `"stop":["\n<tool_response>"]`); got != c.stops || got != strings.Contains(asked[0], `"stop":`) {
				t.Errorf("asked: %s", asked[0])
			}
			if strings.Contains(asked[1], "Now the other") || !strings.Contains(asked[1], "a result that no tool gave") {
				t.Errorf("told: %s", asked[1])
			}
		})
	}
}

// A model that calls by the API may still write a call in the tags of its own
// format, which its server did not read. It is one, unless it is quoted or the
// model calls by the API as well.
func TestEnvelopesOfNativeModels(t *testing.T) {
	t.Parallel()
	const args = `{"path":"b.txt","content":"x"}`
	tagged := "I write.\n<tool_call>\n{\"name\": \"filesystem__append\", \"arguments\": " + args + "}\n</tool_call>"
	both := chunks(`{"choices":[{"delta":{"content":`+encode(t, tagged)+`,"tool_calls":[{"index":0,"id":"c1","function":{"name":"filesystem__list","arguments":"{}"}}]}}]}`,
		`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")
	for name, c := range map[string]struct {
		answer   http.HandlerFunc
		written  bool
		requests int
	}{
		"tags":           {says(tagged), true, 2},
		"tokens":         {says("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>filesystem__append<｜tool▁sep｜>" + args + "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"), true, 2},
		"quoted":         {says("So it is written:\n```\n" + tagged + "\n```\nIs that clear?"), false, 1},
		"JSON":           {says(`{"name": "filesystem__append", "arguments": ` + args + `}`), false, 1},
		"not offered":    {says(strings.Replace(tagged, "append", "apend", 1)), false, 1},
		"by the API too": {both, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := []http.HandlerFunc{c.answer, says("Done.")}[:c.requests]
			s := newScripted(t, answers...)
			dir := folder(t, "app.yaml", s.app(appending))
			out, errs, code := run(t, dir, "", "run", "app.yaml", "Write it down")
			if code != 0 || exists(filepath.Join(dir, "b.txt")) != c.written || len(s.requests()) != c.requests {
				t.Errorf("exit code %d, written: %v, %d requests\n%s%s", code, exists(filepath.Join(dir, "b.txt")), len(s.requests()), out, errs)
			}
		})
	}
}

// Who reads along sees that an answer did not count, and where the next begins.
func TestAskedAgainInChat(t *testing.T) {
	t.Parallel()
	s := newScripted(t, says("<tool_call>\n{\"name\": \"nothing\", \"arguments\": {}}\n</tool_call>"), says(""), says("Then so."))
	app := strings.Replace(s.app(""), `"brain":{`, `"brain":{"native_tool_use":false,`, 1)
	out, errs, code := run(t, folder(t, "app.yaml", app), "Go\n", "chat", "app.yaml")
	const want = "</tool_call>\n· nothing was called; the model is asked again\n· the answer was empty; the model is asked again\nThen so.\n"
	if code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want %q in\n%s%s", code, want, out, errs)
	}
}
