package gemini

import (
	"encoding/base64"
	"encoding/json"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
	"github.com/helve-ai/helve/tool"
)

// contents writes the conversation: what the same one says in several messages
// is one.
func (m *Model) contents(all []llm.Message) []any {
	out := []any{}
	var last object
	for i := range all {
		role, parts := "user", []any(nil)
		switch msg := &all[i]; {
		case len(msg.Answers) > 0:
			parts = results(msg.Answers, callsBefore(all[:i]), m.From())
		case msg.Role == llm.Assistant:
			role, parts = "model", m.said(msg)
		default:
			parts = contents(msg.Content)
		}
		switch {
		case len(parts) == 0:
		case last != nil && last["role"] == role:
			last["parts"] = append(last["parts"].([]any), parts...)
		default:
			last = object{"role": role, "parts": parts}
			out = append(out, last)
		}
	}
	return out
}

func contents(all []tool.Content) (parts []any) {
	text, images := wire.Parts(all)
	if text != "" {
		parts = append(parts, object{"text": text})
	}
	for _, c := range images {
		parts = append(parts, object{"inlineData": object{"mimeType": c.MIME, "data": base64.StdEncoding.EncodeToString(c.Data)}})
	}
	return parts
}

// own is what of a part is given back as it was.
type own struct {
	Signature string `json:"thoughtSignature,omitempty"`
	ID        string `json:"id,omitempty"`
}

// unsigned stands for the signature of a call that another model has made:
// models of the third generation want one, and the protocol names this one.
const unsigned = "skip_thought_signature_validator"

// said writes what the model said and called. Of what it thought only the
// signatures are given back.
func (m *Model) said(msg *llm.Message) (parts []any) {
	if text, _ := wire.Parts(msg.Content); text != "" {
		parts = append(parts, object{"text": text})
	}
	for _, t := range msg.Thought {
		if signed := ownOf(t.Opaque, t.From, m.From()); signed.Signature != "" {
			parts = append(parts, object{"text": "", "thoughtSignature": signed.Signature})
		}
	}
	for i, c := range msg.Calls {
		mine := ownOf(c.Opaque, c.From, m.From())
		call := object{"name": wire.Name(c.Name), "args": wire.Object(c.Args)}
		if mine.ID != "" {
			call["id"] = mine.ID
		}
		part := object{"functionCall": call}
		switch {
		case mine.Signature != "":
			part["thoughtSignature"] = mine.Signature
		case i == 0 && c.From != m.From() && third(m.Client.Model):
			part["thoughtSignature"] = unsigned
		}
		parts = append(parts, part)
	}
	return parts
}

func ownOf(opaque json.RawMessage, from, me string) (o own) {
	if from == me && opaque != nil {
		_ = json.Unmarshal(opaque, &o) // written here
	}
	return o
}

// callsBefore returns the calls that the message after these answers.
func callsBefore(all []llm.Message) []llm.Call {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1].Calls
}

// results writes what calls came to. Images follow them: not all models take
// them within.
func results(answers []llm.Answer, calls []llm.Call, me string) (parts []any) {
	var images []any
	for _, a := range answers {
		text, shown := wire.Parts(a.Content)
		key := "output"
		if a.Failed {
			key = "error"
		}
		if len(shown) > 0 {
			note := wire.NotShown(len(shown), a.Name)
			text += "\n" + note
			images = append(images, object{"text": note})
			images = append(images, contents(shown)...)
		}
		r := object{"name": wire.Name(a.Name), "response": object{key: text}}
		for _, c := range calls {
			if mine := ownOf(c.Opaque, c.From, me); c.ID == a.CallID {
				r["name"] = wire.Name(c.Name)
				if mine.ID != "" {
					r["id"] = mine.ID
				}
			}
		}
		parts = append(parts, object{"functionResponse": r})
	}
	return append(parts, images...)
}
