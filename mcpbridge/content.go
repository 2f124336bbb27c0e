package mcpbridge

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// A contentBlock is a part of a result as the protocol has it.
type contentBlock struct {
	Type     string    `json:"type"`
	Text     *string   `json:"text,omitempty"`
	Data     *[]byte   `json:"data,omitempty"`
	MIME     string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Resource *resource `json:"resource,omitempty"`

	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// A resource is one embedded in a result, or a part of what was read.
type resource struct {
	URI  string  `json:"uri"`
	MIME string  `json:"mimeType,omitempty"`
	Text *string `json:"text,omitempty"`
	Blob *[]byte `json:"blob,omitempty"`
}

func textBlock(s string) json.RawMessage { return encodeBlock(contentBlock{Type: "text", Text: &s}) }

func encodeBlock(b contentBlock) json.RawMessage {
	data, err := tool.Encode(b)
	if err != nil { // there is nothing in it that cannot be encoded
		panic(err)
	}
	return data
}

// block returns the content in the protocol's form: as the upstream server
// sent it where it did, and nobody changed it since.
func block(c tool.Content) json.RawMessage {
	if c.Raw != nil && saysSame(c.Raw, c.Text) {
		return c.Raw
	}
	switch {
	case c.Link:
		name := c.Name
		if name == "" {
			name = c.URI
		}
		return encodeBlock(contentBlock{Type: "resource_link", URI: c.URI, Name: name, MIME: c.MIME})
	case c.URI != "":
		r := &resource{URI: c.URI, MIME: c.MIME}
		if c.Data != nil {
			r.Blob = &c.Data
		} else {
			r.Text = &c.Text
		}
		return encodeBlock(contentBlock{Type: "resource", Resource: r})
	case c.Data == nil:
		return textBlock(c.Text)
	}
	switch kind, _, _ := strings.Cut(c.MIME, "/"); kind {
	case "image", "audio":
		return encodeBlock(contentBlock{Type: kind, Data: &c.Data, MIME: c.MIME})
	}
	return encodeBlock(contentBlock{Type: "resource",
		Resource: &resource{URI: ourBlob, MIME: c.MIME, Blob: &c.Data}})
}

// ourBlob is the address of what has none.
const ourBlob = "helve:result"

// saysSame reports whether a block still holds the text. A guard that changed
// the text and forgot the block must not be undone.
func saysSame(raw json.RawMessage, text string) bool {
	var b struct {
		Text     string `json:"text"`
		Resource struct {
			Text string `json:"text"`
		} `json:"resource"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return false
	}
	had := b.Text + b.Resource.Text
	return had == text || had == "" && strings.HasPrefix(text, unreadable)
}

// unreadable begins the text that stands for what only the block can tell.
const unreadable = "[content "

// content returns what an upstream server's block holds, with the block itself
// unless it is none: clients would choke on it.
func content(raw json.RawMessage) tool.Content {
	c := tool.Content{Raw: raw}
	var b contentBlock
	err := json.Unmarshal(raw, &b)
	if err == nil && b.Type == "" {
		err = errors.New("it has no type")
	}
	if err != nil {
		return tool.Content{Text: unreadable + "that cannot be read: " + err.Error() + "]"}
	}
	c.MIME = b.MIME
	switch {
	case b.Type == "resource_link":
		c.Link, c.URI, c.Name = true, b.URI, b.Name
	case b.Type == "resource" && b.Resource != nil:
		c = b.Resource.content()
		c.Raw = raw
	case b.Data != nil:
		c.Data = *b.Data
	case b.Text != nil:
		c.Text = *b.Text
	default:
		c.Text = unreadable + "of an unknown kind: " + printable(b.Type) + "]"
	}
	return c
}

// content returns the resource as an embedded one.
func (r *resource) content() tool.Content {
	c := tool.Content{URI: r.URI, MIME: r.MIME}
	switch {
	case r.Blob != nil:
		c.Data = *r.Blob
	case r.Text != nil:
		c.Text = *r.Text
	}
	return c
}
