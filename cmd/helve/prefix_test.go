package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Over a long session each request begins as the one before it: the prompt and
// the tools are the same to the byte, whatever is remembered and planned, and
// what was said stays as it was told, so that providers need not read it anew
// (SPEC I9). New tools come behind the others. A process that takes the session
// up again tells the memory as it is then, and the rest as it was.
func TestRequestsBeginAsTheLast(t *testing.T) {
	t.Parallel()
	const turns = 60 // of each of the processes
	for _, mode := range []string{"direct", "discovery", "text"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			calls := []struct{ tool, args string }{
				{"filesystem.read", `{"path":"a.txt"}`},
				{"filesystem.write", `{"path":"new-%d.txt","content":"line\n"}`},
				{"memory.remember", `{"text":"The harbour of town %d is deep."}`},
				{"filesystem.glob", `{"pattern":"*.txt"}`},
				{"filesystem.read", `{"path":"gone-%d.txt"}`},
				{"agents.plan", `{"items":[{"text":"Step %d","status":"doing"}]}`},
				{"memory.recall", `{"query":"harbour"}`},
			}
			var answers []http.HandlerFunc
			for range 2 {
				for i := range turns {
					c := calls[i%len(calls)]
					args, id := c.args, fmt.Sprintf("c%d", len(answers))
					if strings.Contains(args, "%d") {
						args = fmt.Sprintf(args, len(answers))
					}
					wire := strings.ReplaceAll(c.tool, ".", "__")
					switch {
					case mode == "direct":
						answers = append(answers, callsTool(id, wire, args))
					case mode == "text":
						answers = append(answers, says(`<tool_call>{"name":"`+wire+`","arguments":`+args+`}</tool_call>`))
					case i%5 == 1:
						answers = append(answers, callsTool(id, "search_tools", `{"query":"`+c.tool+`"}`))
					default:
						answers = append(answers, callsTool(id, "execute_tool", `{"name":"`+c.tool+`","params":`+args+`}`))
					}
				}
				answers = append(answers, says("Done so far."))
			}
			s := newScripted(t, answers...)
			injection, brain := mode, ""
			if mode == "text" {
				injection, brain = "direct", `"native_tool_use":false,`
			}
			dir := folder(t, "a.txt", "hello\n", "app.yaml", strings.Replace(s.app(`,"runtime":{"tool_injection":"`+injection+`","max_turns":200,"max_mistakes":200},
				"tools":{"modules":{"filesystem":{},"memory":{},"agents":{}},"capabilities":{"default_policy":"auto","max_risk_level":"high"}}`), `"brain":{`, `"brain":{`+brain, 1))
			var session string
			for _, task := range []string{"Begin", "Go on"} {
				args := []string{"run", "app.yaml", task, "--json"}
				if session != "" {
					args = append(args, "--session", session)
				}
				out, errs, code := run(t, dir, "", args...)
				if code != 0 {
					t.Fatalf("exit code %d\n%s%s", code, out, errs)
				}
				var first struct{ Session string }
				if line, _, _ := strings.Cut(out, "\n"); json.Unmarshal([]byte(line), &first) != nil || first.Session == "" {
					t.Fatalf("no session: %s", out)
				}
				session = first.Session
			}
			type request struct{ Tools, Messages []json.RawMessage }
			var last request
			all := s.requests()
			if len(all) != len(answers) {
				t.Fatalf("%d requests, want %d; the last: %s", len(all), len(answers), all[len(all)-1])
			}
			for i, body := range all {
				var now request
				if err := json.Unmarshal([]byte(body), &now); err != nil || (len(now.Tools) == 0) != (mode == "text") || len(now.Messages) < 2 {
					t.Fatalf("request %d: %v %.300s", i, err, body)
				}
				if at := begins(now.Tools, last.Tools); at >= 0 {
					t.Errorf("request %d: tool %d was %s", i, at, last.Tools[at])
				}
				if i == turns+1 { // of the second process
					if !strings.Contains(string(now.Messages[0]), "The harbour of town") || !strings.Contains(string(now.Messages[0]), "Step ") {
						t.Errorf("not told of the memory: %s", now.Messages[0])
					}
					last.Messages[0] = now.Messages[0]
				}
				if at := begins(now.Messages, last.Messages); at >= 0 {
					t.Fatalf("request %d: message %d was\n%s\nand is\n%s", i, at, last.Messages[at], now.Messages[min(at, len(now.Messages)-1)])
				}
				last = now
			}
			if want := 2*turns + 2; len(last.Messages) < want {
				t.Errorf("the last request tells %d messages, want %d at least", len(last.Messages), want)
			}
		})
	}
}

// begins returns the place of the first of those that all does not begin with; -1: it does.
func begins(all, with []json.RawMessage) int {
	for i := range with {
		if i >= len(all) || string(all[i]) != string(with[i]) {
			return i
		}
	}
	return -1
}
