package gen

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/helve-ai/helve/parse"
	"github.com/helve-ai/helve/tool"
)

const dialectsHead = `# Dialects: tool calls in text

Generated from the table of formats. To change it, change the formats in ` + "`parse/`" + ` and run ` + "`go test ./internal/gen -update`" + `.

Models without native tool calls write them into their text, each family in its own way. Helve reads all of them with one incremental parser, and one table says for each format how calls are read, how a prompt asks for them, and how earlier calls and results are shown again. Try it:

` + "```sh" + `
helve parse --format auto --tools tools.json --json < answer.txt
` + "```" + `

What holds for every format:

- **However the text is cut** into pieces, the result is the same, byte by byte too.
- **Only tools that were offered** are called. Another name stays text, with a note that says which tool may have been meant. Without ` + "`--tools`" + ` every name counts as offered.
- **Quoted code is not searched**: neither fenced blocks nor code spans, unless the whole reply is one fenced block; nor are comments of HTML.
- **Reasoning is not searched.** Where a chat template opens the reasoning itself, only its end is in the text: what came before counts as reasoning as soon as that end is seen. If reasoning is never closed and nothing but calls follows in it, they count.
- **Arguments without types** (elements of XML) are typed by the tool's schema, and are strings where it says nothing.
- **Values may show calls**: what is opened and closed within a value, in the words of the format, belongs to the value.
- **Repairs are noted**: trailing commas, single quotes, Python's constants, raw line breaks in strings, missing closers, arguments as a string of JSON. What was cut off within the arguments is never called; it stays text, with a note.
- **Results that the model makes up** after its calls end the message: neither they nor what follows count, with a note. Providers are asked to end answers there (not Ollama, where that would take the place of the model's own stops). Messages that Harmony writes in another's name are taken out by themselves.
- **JSON and Python lists without any tag** count, in ` + "`auto`" + `, only on lines of their own, and only as calls of offered tools with nothing else in them.

Which format a model writes follows from its name (` + "`helve parse --model NAME`" + `).

| format | models | what it is |
|---|---|---|
`

// dialects describes the formats in which calls are read from text.
func dialects() []byte {
	var b bytes.Buffer
	b.WriteString(dialectsHead)
	cell := func(s string) string {
		return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(s)
	}
	for _, f := range parse.Formats() {
		name := "[" + f.Name + "](#" + f.Name + ")"
		if f == parse.Auto {
			name = f.Name
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, cell(f.Models), cell(f.Doc))
	}
	b.WriteString("\n## Model names\n\nThe first pattern that matches the lower-case name counts; a model that none matches is asked for hermes and read by auto.\n\n| pattern | format |\n|---|---|\n")
	for _, r := range parse.ModelRules() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.Pattern, r.Format.Name)
	}
	b.WriteString("\n## How each writes a call\n\nTwo calls: `get_weather` with a string and a number, and `now` without arguments.\n")
	calls := []tool.Call{{ID: "0", Name: "get_weather", Args: []byte(`{"city": "Paris", "days": 3}`)}, {ID: "1", Name: "now"}}
	for _, f := range parse.Formats() {
		if f == parse.Auto {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n````\n%s\n````\n", f.Name, f.Calls(calls))
	}
	return b.Bytes()
}
