package mcpbridge

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/tool"
)

var emptyObject = json.RawMessage(`{"type":"object"}`)

// A listing is a view as it is sent: the same bytes for the same tools.
type listing struct {
	key        string // whose it is; "": everybody's
	digest     string
	pages      []json.RawMessage // JSON arrays of tools
	structured map[string]bool   // the tools that are listed with an output schema
}

// listings keeps what was listed lately, so that a client that is halfway
// through a list when it changes can read it to its end.
type listings struct {
	mu        sync.Mutex
	view      []inject.Item // of the newest listing
	recent    []*listing    // newest last
	announced string        // the digest that clients know of; "": nobody has listed anything
}

// keptListings bounds how many older lists can still be read on.
const keptListings = 4

// news notes that clients are to be told of a listing, and reports whether
// they did not know it.
func (ls *listings) news(digest string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.announced == "" || ls.announced == digest {
		return false
	}
	ls.announced = digest
	return true
}

// known reports whether clients know of a listing.
func (ls *listings) known() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.announced != ""
}

// empty reports whether no listing has been made yet.
func (ls *listings) empty() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.recent) == 0
}

func sameItems(a, b []inject.Item) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// listing returns the view as it now is.
func (e *endpoint) listing() (*listing, error) {
	items := e.s.opts.View(e.mode).Items
	ls := &e.list
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.recent) > 0 && sameItems(items, ls.view) {
		return ls.recent[len(ls.recent)-1], nil
	}
	l, err := newListing(items, e.s.opts.PageSize)
	if err != nil {
		return nil, err
	}
	for i, old := range ls.recent {
		if old.digest == l.digest {
			ls.recent = append(ls.recent[:i], ls.recent[i+1:]...)
			break
		}
	}
	if ls.recent = append(ls.recent, l); len(ls.recent) > keptListings {
		ls.recent = ls.recent[1:]
	}
	ls.view = items
	return l, nil
}

func newListing(items []inject.Item, size int) (*listing, error) {
	l := &listing{structured: map[string]bool{}}
	hash := sha256.New()
	for first := true; first || len(items) > 0; first = false {
		n := min(size, len(items))
		page := make([]listedTool, n)
		for i, it := range items[:n] {
			page[i] = listed(it)
			if page[i].OutputSchema != nil {
				l.structured[it.Tool.Name] = true
			}
		}
		data, err := tool.Encode(page)
		if err != nil {
			return nil, err
		}
		hash.Write(data)
		l.pages = append(l.pages, data)
		items = items[n:]
	}
	l.digest = base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:12])
	return l, nil
}

// A listedTool is a tool as clients see it.
type listedTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  annotations     `json:"annotations"`
}

// annotations are what the protocol lets a server say of a tool's effect.
type annotations struct {
	ReadOnly    bool  `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	OpenWorld   bool  `json:"openWorldHint"`
}

func listed(it inject.Item) listedTool {
	t := listedTool{Name: it.Name, Description: it.Description, InputSchema: objectSchema(it.Input)}
	if it.Tool != nil {
		t.Title = it.Tool.Title
		t.Annotations = annotate(it.Tool)
		if it.Full {
			t.OutputSchema = outputSchema(it.Tool)
		}
	}
	return t
}

// objectSchema returns a schema that clients accept as that of arguments: many
// refuse the whole list if one does not say that it describes an object.
func objectSchema(raw json.RawMessage) json.RawMessage {
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil || len(top) == 0 {
		return emptyObject // true, or {}: everything is accepted
	}
	if top["type"] != nil {
		return raw
	}
	at := bytes.IndexByte(raw, '{') + 1
	return slices.Concat(raw[:at], json.RawMessage(`"type":"object",`), raw[at:])
}

// outputSchema returns the schema of the structured results, nil if there are
// none. Clients of all revisions but the newest accept objects only.
func outputSchema(t *tool.Tool) json.RawMessage {
	if t.Output == nil {
		return nil
	}
	raw := t.Output.Raw()
	var s struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(raw, &s) != nil || string(s.Type) != `"object"` {
		return nil
	}
	return raw
}

// annotate says what is known of a tool's effect. A tool that makes calls for
// its caller does whatever those do.
func annotate(t *tool.Tool) annotations {
	a := annotations{OpenWorld: t.Needs.Has(tool.NeedsNetwork)}
	yes, no := true, false
	switch {
	case t.Targets != nil:
		a.Destructive, a.OpenWorld = &yes, true
	case t.Effect == tool.Reads:
		a.ReadOnly = true // which makes the other hints meaningless, and they cost tokens
	case t.Effect == tool.Writes:
		a.Destructive = &no
	default:
		a.Destructive = &yes
	}
	return a
}

// A listResult is the answer to tools/list.
type listResult struct {
	mcp.ResultBase
	ResultType string          `json:"resultType,omitempty"`
	TTL        *int            `json:"ttlMs,omitempty"`
	Scope      string          `json:"cacheScope,omitempty"`
	NextCursor string          `json:"nextCursor,omitempty"`
	Tools      json.RawMessage `json:"tools"`
}

func (e *endpoint) listTools(req *mcp.ServerRequest[*mcp.ListToolsParams]) (mcp.Result, error) {
	l, err := e.listing()
	if err != nil {
		return nil, err
	}
	page := 0
	if req.Params != nil && req.Params.Cursor != "" {
		if l, page, err = e.list.at(req.Params.Cursor); err != nil {
			return nil, err
		}
	}
	e.list.listed(l)
	res := &listResult{Tools: l.pages[page]}
	if page+1 < len(l.pages) {
		res.NextCursor = l.digest + "." + strconv.Itoa(page+1)
	}
	if version := req.ProtocolVersion(); version >= firstStateless {
		res.ResultType, res.TTL, res.Scope = complete(version), new(int), "private"
	}
	return res, nil
}

// listed notes that somebody knows a listing.
func (ls *listings) listed(l *listing) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.announced == "" {
		ls.announced = l.digest
	}
}

// promises reports whether clients were told that a tool answers structured.
func (ls *listings) promises(name string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.recent {
		if l.structured[name] {
			return true
		}
	}
	return false
}

// at returns the page at which a cursor points.
func (ls *listings) at(cursor string) (*listing, int, error) {
	digest, number, _ := strings.Cut(cursor, ".")
	page, err := strconv.Atoi(number)
	if err != nil || page < 1 || strconv.Itoa(page) != number {
		return nil, 0, invalidParams("cursor %.60q: not one of this server's", cursor)
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.recent {
		if l.digest == digest && page < len(l.pages) {
			return l, page, nil
		}
	}
	return nil, 0, invalidParams("cursor %.60q: the list has changed since; list them from the start", cursor)
}
