package search

import "testing"

func TestWithKinds(t *testing.T) {
	for text, want := range map[string]string{
		"summarise report.pdf":             "summarise file pdf ",
		"open https://www.example.org/a?b": `open website url "example"`,
		"öffne example.org":                `öffne website url "example"`,
		"mail to ann@example.org, please":  "mail to email address please",
		"list ~/notes":                     "list path",
		"read /tmp/a.csv":                  "read file csv ",
		"call filesystem.read":             "call filesystem.read",
		"Node.js or and/or 3.5 e.g. a.b":   "Node.js or and/or 3.5 e.g. a.b",
		"把这段文字保存为 report.md":               "把这段文字保存为 file md markdown",
		`copy C:\data\x.xlsx` + "\n  now":  "copy file xlsx excel spreadsheet\n  now",
		"...":                              "...",
	} {
		if got := withKinds(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
