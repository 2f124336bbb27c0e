package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

// Stop returns the texts at which a provider is to end an answer in the format:
// the beginning of a result. A model that writes it makes up what its calls
// answer. Nil: results begin as answers may.
func (f *Format) Stop() []string {
	tag, at := f.resultTag()
	switch {
	case tag == "" || tag == "<response>":
		return nil
	case at == lineStart:
		return []string{"\n" + tag}
	}
	return []string{tag}
}

// resultTag returns the text with which the format's results begin, whatever
// is in them, and where it counts: what is no token of its own counts at the
// beginning of a line. "": calls may begin so, too.
func (f *Format) resultTag() (string, place) {
	one, two := tool.Call{ID: "0", Name: "a", Args: []byte("{}")}, tool.Call{ID: "1", Name: "b", Args: []byte("{}")}
	tag := f.Result(one, "x")
	for other := f.Result(two, "{"); !strings.HasPrefix(other, tag); {
		tag = tag[:len(tag)-1]
	}
	tag = strings.TrimRight(tag, " \n")
	if i := strings.IndexAny(tag, "\n \""); i > 0 && tag[0] == '<' {
		tag = tag[:i]
	}
	if f.render == nil || strings.Contains(f.Calls([]tool.Call{one, two}), tag) {
		return "", anywhere
	}
	if tag[0] == '[' || strings.ContainsAny(tag, "|｜") || strings.HasPrefix(tag, "<start_function") {
		return tag, anywhere
	}
	return tag, lineStart
}

// madeUp reads the beginning of a result after a call: what the model says from
// there on rests on an answer that nobody gave.
func madeUp(e *env) verdict {
	if !e.m.called {
		return not
	}
	return e.invented(len(e.opener.tag))
}

// invented ends the message with a result that begins with what was read.
func (e *env) invented(n int) verdict {
	e.n = n
	e.m.over = true
	e.note("the message went on with a result that no tool gave: it was left out, with all that followed; stop after calls")
	return took
}
