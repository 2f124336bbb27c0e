package agent

import (
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/parse"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// inText returns messages as a model reads them that calls in its text: calls
// are written in its own words, and their results are told by the user.
// Reasoning is not given back.
func inText(f *parse.Format, all []llm.Message) []llm.Message {
	out := make([]llm.Message, 0, len(all))
	for i := range all {
		m := &all[i]
		switch {
		case m.Role == llm.Results:
			out = append(out, llm.Message{Role: llm.User, Content: results(f, m.Answers)})
		case len(m.Calls) > 0:
			said := strings.TrimSpace(strings.TrimSpace(m.Text()) + "\n" + f.Calls(written(m.Calls)))
			out = append(out, llm.Said(llm.Assistant, said))
		default:
			out = append(out, llm.Message{Role: m.Role, Content: m.Content})
		}
	}
	return out
}

func written(calls []llm.Call) []tool.Call {
	out := make([]tool.Call, len(calls))
	for i, c := range calls {
		out[i] = tool.Call{ID: c.ID, Name: c.Name, Args: arguments(c.Args)}
	}
	return out
}

// results writes the answers to calls; images stay images.
func results(f *parse.Format, all []llm.Answer) []tool.Content {
	var texts []string
	var images []tool.Content
	for _, a := range all {
		call := tool.Call{ID: a.CallID, Name: a.Name}
		texts = append(texts, f.Result(call, (&tool.Result{Content: a.Content}).JoinText()))
		for _, c := range a.Content {
			if strings.HasPrefix(c.MIME, "image/") && c.Data != nil {
				images = append(images, c)
			}
		}
	}
	return append([]tool.Content{{Text: strings.Join(texts, "\n")}}, images...)
}

// unfence returns the text of an answer that is one fenced block.
func unfence(text string) string {
	text = strings.TrimSpace(text)
	rest, fenced := strings.CutPrefix(text, "```")
	if !fenced {
		return text
	}
	_, rest, _ = strings.Cut(rest, "\n")
	rest, closed := strings.CutSuffix(strings.TrimSpace(rest), "```")
	if !closed || strings.Contains(rest, "```") {
		return text
	}
	return strings.TrimSpace(rest)
}

// conforms returns what is wrong with a value by a schema; "": nothing.
func conforms(s *schema.Schema, raw []byte) string {
	var all []string
	for _, p := range s.Validate(raw) {
		all = append(all, p.String())
	}
	return strings.Join(all, "; ")
}
