package mcpbridge

import (
	"strings"
	"unicode"

	"github.com/helve-ai/helve/tool"
)

// The verbs that tell what a tool without annotations does (SPEC T2). Any
// other verb writes.
var (
	destroyVerbs = wordSet("delete drop destroy remove kill")
	readVerbs    = wordSet("get list search read describe count fetch check view show status ping")
	// writeVerbs end the search for a verb: what follows is the object, as in
	// update_status or create_view. The list need not be complete: a word
	// that is not known makes nothing riskier or safer.
	writeVerbs = wordSet(`accept activate add allow append apply approve archive assign attach authorize backup ban
		block book build bulk buy call cancel change clear click clone close comment commit compile complete configure
		connect convert copy create deactivate decline define deny deploy detach disable disconnect dismiss download
		drag edit emit enable encrypt enqueue evaluate exec execute export fill finish fix force forget fork format
		generate grant hide hover import increment init insert install invite invoke join launch leave link lock log
		login logout make manage mark merge modify mount move mute navigate notify open order overwrite pan patch
		pause pay perform pin play post press print process promote provision publish pull purge push put quit
		rebase reboot record redo refresh register reject release reload rename reopen repair replace reply reset
		resize resolve restart restore resume retry revert revoke rollback rotate run save scale schedule scroll
		select send set share sign sort spawn start stop store submit subscribe switch sync tag terminate toggle
		train transfer trigger truncate type unassign unblock uninstall unlink unlock unmute unpin unsubscribe
		update upgrade upload upsert use vote wait wipe write`)
	// prefixes say nothing: API-get-user reads.
	prefixes = wordSet("api mcp tool tools")
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// words splits a name at everything that is neither letter nor digit, and at
// the humps of camelCase.
func words(name string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || // getUser
			i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1])): // HTTPStatus
			flush()
		}
		word = append(word, r)
	}
	flush()
	return out
}

// verbEffect returns the effect that a tool's name tells, and the verb that
// told it ("": none did). Words that name the server do not count.
func verbEffect(server, name string) (tool.Effect, string) {
	all := words(name)
	own := wordSet(strings.Join(words(server), " "))
	for len(all) > 1 && (prefixes[all[0]] || own[all[0]] && !isVerb(all[0])) {
		all = all[1:]
	}
	for i, w := range all {
		if !isVerb(w) && !(i == 0 && verbLike(w)) {
			continue
		}
		effect := effectOf(w)
		for j := i + 1; j+1 < len(all); j++ { // get_or_delete does both
			if all[j] == "and" || all[j] == "or" || all[j] == "then" {
				effect = max(effect, effectOf(all[j+1]))
			}
		}
		return effect, w
	}
	return tool.Writes, ""
}

func isVerb(w string) bool { return destroyVerbs[w] || readVerbs[w] || writeVerbs[w] }

func effectOf(verb string) tool.Effect {
	switch {
	case destroyVerbs[verb]:
		return tool.Destroys
	case readVerbs[verb]:
		return tool.Reads
	}
	return tool.Writes
}

// verbLike reports whether a word has the form of a verb, so that what follows
// it is taken for its object: frobnicate_status does not read.
func verbLike(w string) bool {
	for _, end := range []string{"ate", "ify", "ize", "ise"} {
		if strings.HasSuffix(w, end) {
			return true
		}
	}
	return false
}

// hints are an upstream tool's annotations; nil means that they do not say.
type hints struct {
	Title       string `json:"title"`
	ReadOnly    *bool  `json:"readOnlyHint"`
	Destructive *bool  `json:"destructiveHint"`
	OpenWorld   *bool  `json:"openWorldHint"`
}

func says(hint *bool, value bool) bool { return hint != nil && *hint == value }

// effect returns a tool's effect by its name and annotations. Those of a
// server that the operator does not trust can only make it worse (SPEC T2).
func (h hints) effect(server, name string, trusted bool) tool.Effect {
	verb, _ := verbEffect(server, name)
	stated := tool.Unknown
	switch {
	case says(h.Destructive, true) && !(trusted && says(h.ReadOnly, true)): // it means nothing of one that only reads
		stated = tool.Destroys
	case says(h.ReadOnly, true):
		stated = tool.Reads
	case says(h.Destructive, false):
		stated = tool.Writes
	case says(h.ReadOnly, false):
		// Many libraries say this where the author said nothing.
		return max(verb, tool.Writes)
	default:
		return verb
	}
	if trusted {
		return stated
	}
	return max(verb, stated)
}

// apply settles effect and risk by the operator's word, which wins.
func (o Override) apply(d *tool.Definition) {
	switch {
	case o.Effect != tool.Unknown:
		d.Effect = o.Effect
	case o.Risk != tool.Unstated && o.Risk < d.Effect.Risk():
		// A risk below what the effect implies says that the effect is another.
		d.Effect = map[tool.Risk]tool.Effect{tool.Low: tool.Reads, tool.Medium: tool.Writes}[o.Risk]
	}
	d.Risk = o.Risk
}
