package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

const (
	dsCalls, dsCallsEnd = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
	dsCall, dsCallEnd   = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
	dsSep               = "<｜tool▁sep｜>"
)

var deepSeekOpeners = join([]opener{
	{tag: dsCall, call: true, read: readDeepSeek},
	{tag: plainBars(dsCall), call: true, read: readDeepSeek},
	{tag: "<｜tool▁outputs▁begin｜>", read: func(e *env) verdict { return e.swallow("<｜tool▁outputs▁end｜>") }},
}, thinkTags, dropped(dsCalls, dsCallsEnd, plainBars(dsCalls), plainBars(dsCallsEnd), "<|end▁of▁sentence|>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>", "<｜end▁of▁sentence｜>"))

// swallow takes out everything up to a tag: results that a model made up.
func (e *env) swallow(close string) verdict {
	i, _ := e.find(close)
	if i < 0 && !e.eof {
		return more
	}
	if i < 0 {
		return not
	}
	e.n = i + len(close)
	e.note("results of tools that the model made up were taken out")
	return took
}

// DeepSeekV3 is a type, a name and fenced JSON between tokens.
var DeepSeekV3 = &Format{
	Name:    "deepseek_v3",
	Doc:     "\"function\", a name and fenced JSON between tool-call tokens.",
	Models:  "DeepSeek V3, R1",
	grammar: grammar{openers: deepSeekOpeners, implied: closesThink},
	render: around(dsCalls, each(func(c tool.Call) string {
		return dsCall + "function" + dsSep + c.Name + "\n```json\n" + string(c.Args) + "\n```" + dsCallEnd
	}, "\n"), dsCallsEnd),
	result: deepSeekResult,
}

func deepSeekResult(_, _, content string) string {
	return "<｜tool▁output▁begin｜>" + content + "<｜tool▁output▁end｜>"
}

// readDeepSeek reads one call: NAME<sep>{json}, or function<sep>NAME and fenced JSON.
func readDeepSeek(e *env) verdict {
	open, end, all := e.opener.tag, dsCallEnd, dsCallsEnd
	if open != dsCall {
		end, all = plainBars(end), plainBars(all)
	}
	if e.look == 0 {
		e.look = len(open)
	}
	i, tag := e.outside(end, all, open)
	if i < 0 && !e.eof {
		return more
	}
	if i < 0 {
		if i = strings.Index(e.s, end); i < 0 {
			return e.cutDeepSeek()
		}
		tag = end
	}
	n := i
	if tag == end {
		n += len(tag)
	}
	e.deepSeekCall(e.s[len(open):i], e.s[:n])
	return e.done(n)
}

// plainBars returns a token as it is written where the full-width bar is missing.
func plainBars(token string) string { return strings.ReplaceAll(token, "｜", "|") }

func (e *env) cutDeepSeek() verdict {
	if body := trimPartial(e.s[len(e.opener.tag):], dsCallEnd); strings.Contains(body, dsSep) && endsComplete(strings.TrimSuffix(strings.TrimSpace(body), "```")) {
		e.deepSeekCall(body, e.s)
	} else {
		e.wasCut(dsCallEnd)
	}
	return e.done(len(e.s))
}

func (e *env) deepSeekCall(body, raw string) {
	kind, rest, _ := strings.Cut(strings.Replace(body, plainBars(dsSep), dsSep, 1), dsSep)
	kind, rest = strings.TrimSpace(kind), strings.TrimSpace(rest)
	if name, fenced, ok := strings.Cut(rest, "\n```"); kind == "function" && ok {
		_, args, _ := strings.Cut(fenced, "\n")
		args = strings.TrimSuffix(strings.TrimSpace(args), "```")
		e.jsonCall(textCall(strings.TrimSpace(name), args, raw))
		return
	}
	if rest != "" && rest[0] != '{' {
		e.note("what should be a call has no JSON arguments: it was left as text")
		return
	}
	e.jsonCall(textCall(kind, rest, raw))
}
