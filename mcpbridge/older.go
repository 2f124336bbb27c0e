package mcpbridge

import (
	"encoding/json"

	"github.com/helve-ai/helve/tool"
)

// Clients check what they are sent against their own revision of the protocol,
// and drop a whole answer for one block of a kind that it does not have. So
// they are sent what their revision has, with all that the block held.
const (
	firstAudio = "2025-03-26" // the first revision with blocks of this type
	firstLinks = "2025-06-18"
)

// blockFor returns a block in a form that the revision has. "": the revision
// is not known; the block is left as it is.
func blockFor(version string, raw json.RawMessage) json.RawMessage {
	if version == "" || version >= firstLinks {
		return raw
	}
	var b contentBlock
	if json.Unmarshal(raw, &b) != nil {
		return raw
	}
	switch c := content(raw); {
	case b.Type == "resource_link":
		text := c.String()
		return encodeBlock(contentBlock{Type: "text", Text: &text, Annotations: b.Annotations})
	case b.Type == "audio" && version < firstAudio:
		return encodeBlock(contentBlock{Type: "resource", Annotations: b.Annotations,
			Resource: &resource{URI: ourBlob, MIME: c.MIME, Blob: &c.Data}})
	}
	return raw
}

// messagesFor does so with the contents of a prompt's messages. What cannot be
// read is left as it is.
func messagesFor(version string, raw json.RawMessage) json.RawMessage {
	if version == "" || version >= firstLinks {
		return raw
	}
	var all []map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return raw
	}
	for _, m := range all {
		if m["content"] != nil {
			m["content"] = blockFor(version, m["content"])
		}
	}
	data, err := tool.Encode(all)
	if err != nil {
		return raw
	}
	return data
}
