package poison_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helve-ai/helve/poison"
)

func definition(t *testing.T, description string) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"name": "a_tool", "description": description})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// rows calls visit for each line of a file of evaluation data, as JSON.
func rows(t *testing.T, name string, visit func(row map[string]json.RawMessage)) {
	t.Helper()
	dir := os.Getenv("HELVE_EVALS")
	if dir == "" {
		t.Skip("set HELVE_EVALS to a folder with the evaluation data to run this")
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var row map[string]json.RawMessage
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		visit(row)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestEvalsPoisoned(t *testing.T) {
	right, wrong, missed, clean := 0, 0, 0, 0
	rows(t, "safety/tool-poisoning.jsonl", func(row map[string]json.RawMessage) {
		raw := row["tool"]
		if raw == nil {
			raw = json.RawMessage(`{"description":` + string(row["description"]) + `}`)
		}
		found := poison.Definition(raw)
		switch malicious := string(row["label"]) == `"malicious"`; {
		case malicious && len(found) > 0:
			right++
		case malicious:
			missed++
			t.Logf("missed: %s", raw)
		case len(found) > 0:
			wrong++
			t.Logf("wrong: %s: %v", raw, found)
		default:
			clean++
		}
	})
	precision, recall := float64(right)/float64(right+wrong), float64(right)/float64(right+missed)
	t.Logf("precision %.3f, recall %.3f, false positives %.3f of %d", precision, recall, float64(wrong)/float64(wrong+clean), wrong+clean)
	if precision < 0.9 || recall < 0.6 {
		t.Errorf("precision %.3f and recall %.3f; want 0.9 and 0.6", precision, recall)
	}
}

func TestEvalsRealTools(t *testing.T) {
	all, flagged, severe := 0, 0, 0
	rows(t, "mcp/scale-catalogue.jsonl", func(row map[string]json.RawMessage) {
		raw, err := json.Marshal(map[string]json.RawMessage{"name": row["tool"], "description": row["description"], "inputSchema": row["parameters"]})
		if err != nil {
			t.Fatal(err)
		}
		all++
		if found := poison.Definition(raw); len(found) > 0 {
			flagged++
			if poison.Severe(found) {
				severe++
			}
			t.Logf("%s: %v", row["name"], found)
		}
	})
	t.Logf("of %d real tools %d are flagged, %d severely", all, flagged, severe)
	if flagged*100 > all {
		t.Errorf("%d of %d real tools are flagged; want 1 %% at most", flagged, all)
	}
}

// Time grows with a text, and not with its square, whatever it repeats.
func BenchmarkRepeated(b *testing.B) {
	for name, unit := range map[string]string{"lines": "\n", "blanks": " ", "bidi": "\u202e", "words": "ignore ", "digits": "QUJD"} {
		text := strings.Repeat(unit, 256<<10/len(unit))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				poison.Text("text", text)
			}
		})
	}
}

func TestPaddingAtTheEnd(t *testing.T) {
	blanks := strings.Repeat(" \n", 300)
	if found := poison.Text("text", "a"+blanks); len(found) > 0 {
		t.Errorf("blanks with nothing behind them: %v", found)
	}
	if found := poison.Text("text", "a"+blanks+"b"); len(found) != 1 || found[0].Kind != poison.Hidden {
		t.Errorf("blanks with text behind them: %v", found)
	}
}
