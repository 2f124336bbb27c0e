package tool

import (
	"encoding/json"
	"strings"

	"github.com/helve-ai/helve/schema"
)

// Invalid returns the error for arguments that do not suit t: each problem at
// its place, and an example of arguments that would (SPEC X3).
func Invalid(t *Tool, problems []schema.Problem) *Error {
	var b strings.Builder
	b.WriteString("the arguments of " + t.Name + " are not right:")
	for _, p := range problems {
		b.WriteString("\n- " + orElse(p.Pointer, "(arguments)") + ": " + p.Message)
	}
	example := t.Input.Example()
	if len(t.Examples) > 0 {
		example = t.Examples[0]
	}
	if len(example) > 0 {
		b.WriteString("\nA valid example: ")
		b.Write(example)
	}
	if raw := t.Input.Raw(); len(raw) <= maxShownSchema {
		b.WriteString("\nThe schema of the arguments: ")
		b.Write(raw)
	} else {
		b.WriteString("\nThe schema of the arguments is long: get_tool with {\"name\": \"" + t.Name + "\"} shows it.")
	}
	return Errorf(CodeValidation, "%s", b.String()).With(struct {
		Problems []schema.Problem `json:"problems"`
		Example  json.RawMessage  `json:"example,omitempty"`
	}{problems, example})
}

// maxShownSchema is the size up to which the message repeats the whole schema:
// a caller that was shown a compact listing learns it here (SPEC I3).
const maxShownSchema = 8000
