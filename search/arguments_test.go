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
		"what is 3pm in Tokyo, or 15:30?":  "what is time in Tokyo, or time",
		"à 9h, 10am, 8:15am":               "à time time time",
		"4h30 24/7 5th 3px 99:99 13g":      "time 24/7 5th 3px 99:99 13g",
		"ping 10.0.0.1":                    `ping "ip address"`,
		"close ABC-123 and A-1 or x-2":     `close "issue ABC-123" and A-1 or x-2`,
	} {
		if got := withKinds(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
