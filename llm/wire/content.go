package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

// isImage reports whether a content is an image that models can be shown.
func isImage(c tool.Content) bool {
	return len(c.Data) > 0 && strings.HasPrefix(c.MIME, "image/")
}

// DataURL returns a content's data as an address.
func DataURL(c tool.Content) string {
	return "data:" + c.MIME + ";base64," + base64.StdEncoding.EncodeToString(c.Data)
}

// Parts divides contents into the texts and what is not shown in place of
// them, and the images.
func Parts(all []tool.Content) (text string, images []tool.Content) {
	var rest []tool.Content
	for _, c := range all {
		if isImage(c) {
			images = append(images, c)
		} else {
			rest = append(rest, c)
		}
	}
	return (&tool.Result{Content: rest}).JoinText(), images
}

// Object returns a call's arguments for APIs that take nothing but objects:
// what is none is told in one.
func Object(args json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	if json.Unmarshal(args, &m) == nil && m != nil {
		return args
	}
	out, _ := tool.Encode(map[string]string{"_unreadable": string(args)})
	return out
}

// ID returns a call's id as an API takes it: with letters, digits, _ and - only
// and at most so long. One that cannot stay is replaced by one made of it.
func ID(id string, most int) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, id)
	if plain == id && id != "" && len(id) <= most {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	text := "call" + hex.EncodeToString(sum[:16])
	return text[:min(len(text), most)]
}

// Name returns the name of a call as all APIs take it: models also call what
// there is not, by names that no tool may have, and those that call in their
// text write other forms. Who refused such a name would refuse the conversation
// from then on.
func Name(name string) string {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return tool.Wire(name)
		}
	}
	if name == "" || len(name) > tool.MaxWire {
		return tool.Wire(name)
	}
	return name
}

// Turn returns the index of the first message after what the user said last:
// those from there on are the turn that is under way.
func Turn(all []llm.Message) int {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Role == llm.User {
			return i + 1
		}
	}
	return 0
}

// NotShown tells of images that the user is shown in a message of their own.
func NotShown(n int, id string) string {
	return fmt.Sprintf("[%d image(s) of %s]", n, id)
}

// Local reports whether an address is one of this machine.
func Local(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// A Text is a string of which nothing depends: anything else in its place is
// none, and no error.
type Text string

// UnmarshalJSON reads a string.
func (t *Text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = Text(s)
	}
	return nil
}

// Source is a chunk that says where an answer comes from.
func Source(id, model Text) llm.Chunk {
	return llm.Chunk{Source: &llm.Source{ID: string(id), Model: string(model)}}
}
