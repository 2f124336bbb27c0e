package anthropic

import (
	"encoding/base64"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
	"github.com/helve-ai/helve/tool"
)

// messages writes the conversation. Roles alternate: what the same one says in
// several messages is one.
func (m *Model) messages(all []llm.Message) []any {
	var out []any
	var blocks []any
	role := ""
	flush := func() {
		if len(blocks) > 0 {
			out = append(out, object{"role": role, "content": blocks})
		}
		blocks = nil
	}
	for i := range all {
		msg := &all[i]
		next := "user"
		if msg.Role == llm.Assistant {
			next = "assistant"
		}
		said := m.blocks(msg)
		if len(said) == 0 {
			continue
		}
		if next != role {
			flush()
			role = next
		}
		blocks = append(blocks, said...)
	}
	flush()
	markLast(out)
	return out
}

// markLast marks the ends of the last two messages of the user, so that the
// next request finds what this one has written.
func markLast(all []any) {
	marked := 0
	for i := len(all) - 1; i >= 0 && marked < 2; i-- {
		if msg := all[i].(object); msg["role"] == "user" {
			blocks := msg["content"].([]any)
			blocks[len(blocks)-1].(object)["cache_control"] = kept
			marked++
		}
	}
}

func (m *Model) blocks(msg *llm.Message) (all []any) {
	switch {
	case len(msg.Answers) > 0:
		for _, a := range msg.Answers {
			all = append(all, result(&a))
		}
	case msg.Role == llm.Assistant:
		return m.said(msg)
	default:
		return contents(msg.Content)
	}
	return all
}

// said writes what the model thought, said and called. Thoughts of others are
// left out.
func (m *Model) said(msg *llm.Message) (all []any) {
	for _, t := range msg.Thought {
		if t.From == m.From() && t.Opaque != nil {
			all = append(all, t.Opaque)
		}
	}
	text, _ := wire.Parts(msg.Content)
	if text = strings.TrimRight(text, " \t\r\n"); text != "" { // a blank text, or a blank end, is an error
		all = append(all, object{"type": "text", "text": text})
	}
	for _, c := range msg.Calls {
		all = append(all, object{"type": "tool_use", "id": wire.ID(c.ID, 64), "name": wire.Name(c.Name), "input": wire.Object(c.Args)})
	}
	if text == "" && len(msg.Calls) == 0 {
		return nil
	}
	return all
}

func result(a *llm.Answer) object {
	o := object{"type": "tool_result", "tool_use_id": wire.ID(a.CallID, 64)}
	if blocks := contents(a.Content); len(blocks) > 0 {
		o["content"] = blocks
	}
	if a.Failed {
		o["is_error"] = true
	}
	return o
}

func contents(all []tool.Content) (out []any) {
	text, images := wire.Parts(all)
	if strings.TrimSpace(text) != "" {
		out = append(out, object{"type": "text", "text": text})
	}
	for _, c := range images {
		out = append(out, object{"type": "image", "source": object{"type": "base64", "media_type": c.MIME, "data": base64.StdEncoding.EncodeToString(c.Data)}})
	}
	return out
}
