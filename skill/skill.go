// Package skill reads skills as MCP's skills extension lists them: a SKILL.md, the files beside it, and what vouches for both.
//
// https://modelcontextprotocol.io/seps/2640-skills-extension
package skill

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// File is the name of the file that makes a folder a skill.
const File = "SKILL.md"

// The limits up to which every host must load a skill.
const (
	MaxFiles = 512
	MaxSize  = 16 << 20 // bytes of all its files
)

// An Entry is a skill as a server lists it.
type Entry struct {
	URI         string          // of its SKILL.md
	Frontmatter json.RawMessage // of its SKILL.md, as an object
	Files       []Resource      // all of them, its SKILL.md included; nil: they are made on demand, and nothing vouches for them

	Name, Description string // in Frontmatter
}

// A Resource is a file of a skill.
type Resource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // sha256: and 64 hexadecimal digits
	Size   int64  `json:"size"`   // in bytes
}

// dynamic stands where the files of a skill would be that are made on demand.
const dynamic = `"dynamic"`

type wire struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   json.RawMessage `json:"resources"`
}

// MarshalJSON returns the entry as servers list it.
func (e *Entry) MarshalJSON() ([]byte, error) {
	files := json.RawMessage(dynamic)
	if e.Files != nil {
		var err error
		if files, err = tool.Encode(e.Files); err != nil {
			return nil, err
		}
	}
	return tool.Encode(wire{e.URI, e.Frontmatter, files})
}

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)
	digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// maxName is how many characters the name of a skill may have.
const maxName = 64

// Named reports whether skills may have a name.
func Named(name string) bool { return len(name) <= maxName && nameForm.MatchString(name) }

// Parse reads an entry of a list. The error says what of it the extension
// forbids: what is forbidden is not to be shown, and not to be loaded.
func Parse(raw json.RawMessage) (*Entry, error) {
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("it is no entry of a skill: %w", err)
	}
	e := &Entry{URI: w.URI, Frontmatter: w.Frontmatter}
	if err := plainURI(e.URI); err != nil {
		return nil, err
	}
	if e.Root() == "" {
		return nil, fmt.Errorf("its address %.200q does not end in /%s", e.URI, File)
	}
	var front struct{ Name, Description *string }
	if err := json.Unmarshal(w.Frontmatter, &front); err != nil || front.Name == nil || front.Description == nil || *front.Description == "" {
		return nil, errors.New("its frontmatter has no name or no description")
	}
	e.Name, e.Description = *front.Name, *front.Description
	switch {
	case !Named(e.Name):
		return nil, fmt.Errorf("its name %.100q is none for a skill: small letters and digits, single - between them, %d at most", e.Name, maxName)
	case path.Base(e.Root()) != e.Name:
		return nil, fmt.Errorf("its address %.200q does not lie in a folder of its name %s", e.URI, e.Name)
	}
	return e, e.readFiles(w.Resources)
}

func (e *Entry) readFiles(raw json.RawMessage) error {
	if string(bytes.TrimSpace(raw)) == dynamic {
		return nil
	}
	var files []struct {
		URI, Digest *string
		Size        *int64
	}
	if err := json.Unmarshal(raw, &files); err != nil || files == nil {
		return fmt.Errorf("its resources are neither a list of {uri, digest, size} nor %s", dynamic)
	}
	seen := map[string]bool{}
	for i, f := range files {
		if f.URI == nil || f.Digest == nil || f.Size == nil || *f.Size < 0 || !digestForm.MatchString(*f.Digest) {
			return fmt.Errorf("resources[%d] is no {uri, digest: sha256:…, size}", i)
		}
		if err := plainURI(*f.URI); err != nil {
			return fmt.Errorf("resources[%d]: %w", i, err)
		}
		switch {
		case !strings.HasPrefix(*f.URI, e.Root()+"/"):
			return fmt.Errorf("resources[%d]: %.200q lies outside the skill", i, *f.URI)
		case seen[*f.URI]:
			return fmt.Errorf("resources[%d]: %.200q is listed twice", i, *f.URI)
		}
		seen[*f.URI] = true
		e.Files = append(e.Files, Resource{*f.URI, *f.Digest, *f.Size})
	}
	if !seen[e.URI] {
		return fmt.Errorf("its resources lack its own %s", File)
	}
	return nil
}

// plainURI refuses addresses that do not say plainly where they lead.
func plainURI(uri string) error {
	_, rest, ok := strings.Cut(uri, "://")
	if !ok || strings.ContainsAny(uri, "?#\\") || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }) {
		return fmt.Errorf("the address %.200q is none of a file of a skill", uri)
	}
	rest = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/").Replace(rest)
	for i, segment := range strings.Split(rest, "/") {
		if segment == "." || segment == ".." || segment == "" && i > 0 {
			return fmt.Errorf("the address %.200q does not say plainly where it leads", uri)
		}
	}
	return nil
}

// Root returns the address of the skill's folder; "": it has none.
func (e *Entry) Root() string {
	root, ok := strings.CutSuffix(e.URI, "/"+File)
	if !ok {
		return ""
	}
	return root
}

// Within reports whether an address is that of the skill's folder, or lies in it.
func (e *Entry) Within(uri string) bool {
	return uri == e.Root() || strings.HasPrefix(uri, e.Root()+"/")
}

// TooLarge says by how much the skill exceeds what hosts must load; nil: it
// does not.
func (e *Entry) TooLarge() error {
	var size int64
	for _, f := range e.Files {
		if size += f.Size; size > MaxSize || f.Size > MaxSize {
			return fmt.Errorf("its files have more than %d MiB together", MaxSize>>20)
		}
	}
	if len(e.Files) > MaxFiles {
		return fmt.Errorf("it has %d files; %d is the most", len(e.Files), MaxFiles)
	}
	return nil
}

// Verify returns why data is not what the entry says of the file at uri. Of
// skills that are made on demand it says nothing.
func (e *Entry) Verify(uri string, data []byte) error {
	if e.Files == nil {
		if !e.Within(uri) {
			return fmt.Errorf("%.200q lies outside the skill", uri)
		}
		return nil
	}
	for _, f := range e.Files {
		switch {
		case f.URI != uri:
		case int64(len(data)) != f.Size:
			return fmt.Errorf("%.200q has %d bytes, and is listed with %d", uri, len(data), f.Size)
		case Digest(data) != f.Digest:
			return fmt.Errorf("%.200q is not what is listed: its digest is %s, and not %s", uri, Digest(data), f.Digest)
		default:
			return nil
		}
	}
	return fmt.Errorf("%.200q is no file of the skill: it is not listed", uri)
}

// Instructions returns what a SKILL.md says below its front matter, once it is
// found to be what the entry says, the front matter field by field.
func (e *Entry) Instructions(data []byte) (string, error) {
	if err := e.Verify(e.URI, data); err != nil {
		return "", err
	}
	front, body, err := Split(data)
	if err != nil {
		return "", fmt.Errorf("its %s %w", File, err)
	}
	field := differ(front, e.Frontmatter)
	if field != "" { // others take the line break before the closing dashes for a part of the last value
		if front, _, err = split(data, "\n"); err == nil && differ(front, e.Frontmatter) == "" {
			field = ""
		}
	}
	if field != "" {
		return "", fmt.Errorf("its %s says something else under %q than it is listed with", File, field)
	}
	return strings.TrimSpace(string(body)), nil
}

// Digest returns the digest of a file.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
