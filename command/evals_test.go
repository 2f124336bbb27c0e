package command_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/helve-ai/helve/command"
)

// TestEvals measures the allowlist against commands that were labelled by
// others. No command that must be refused may pass, and nine of ten that are
// provably read-only must.
func TestEvals(t *testing.T) {
	dir := os.Getenv("HELVE_EVALS")
	if dir == "" {
		t.Skip("set HELVE_EVALS to a folder with the evaluation data to run this")
	}
	file, err := os.Open(filepath.Join(dir, "safety", "shell.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rules := command.Rules{Profile: command.Passive, Compound: true, Resolve: under}
	allowed, allow, refuse := 0, 0, 0
	for rows := bufio.NewScanner(file); rows.Scan(); {
		var row struct{ Cmd, Expect, Why string }
		if err := json.Unmarshal(rows.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		line, err := command.Parse(row.Cmd)
		if err == nil {
			err = rules.Judge(line)
		}
		switch {
		case row.Expect == "refuse":
			refuse++
			if err == nil {
				t.Errorf("%q passes, but must be refused: %s", row.Cmd, row.Why)
			}
		case err == nil:
			allow, allowed = allow+1, allowed+1
		default:
			allow++
			t.Logf("%q: %v", row.Cmd, err)
		}
	}
	t.Logf("%d of %d allowed; %d rows to refuse", allowed, allow, refuse)
	if allow == 0 || refuse == 0 || allowed*10 < allow*9 {
		t.Errorf("%d of %d harmless commands are allowed; at least 9 of 10 are wanted", allowed, allow)
	}
}
