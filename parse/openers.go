package parse

// The usual tags of reasoning.
var thinkTags = []opener{reasoning("<think>", "</think>"), reasoning("<thinking>", "</thinking>")}

// closesThink are the ends of reasoning that the prompt may have opened.
var closesThink = []string{"</think>"}

// join puts lists of openers together.
func join(lists ...[]opener) (out []opener) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// afterCall returns openers of strings that mean nothing after a call and are
// text before the first.
func afterCall(tags ...string) (out []opener) {
	for _, t := range tags {
		out = append(out, opener{tag: t, read: func(e *env) verdict {
			if !e.m.called {
				return not
			}
			e.n = len(t)
			return took
		}})
	}
	return out
}

// comment reads a comment of HTML that is closed: nobody is shown it, and calls
// in it were taken out of use.
var comment = opener{tag: "<!--", read: func(e *env) verdict {
	e.look = max(e.look, len("<!--"))
	i, _ := e.find("-->")
	if i < 0 {
		return more
	}
	e.n = i + len("-->")
	return not
}}
