package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

// skillParams and skillAnswer are those of all methods of the extension.
type skillParams struct {
	mcp.ParamsBase
	URI    string `json:"uri,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

type skillAnswer struct {
	mcp.ResultBase
	Skills    []json.RawMessage `json:"skills,omitempty"`
	Skill     json.RawMessage   `json:"skill,omitempty"`
	Resources []json.RawMessage `json:"resources,omitempty"`
	Next      string            `json:"nextCursor,omitempty"`
	TTL       *int              `json:"ttlMs,omitempty"`
	Scope     string            `json:"cacheScope,omitempty"`
	Type      string            `json:"resultType,omitempty"`
}

const (
	listSkills = "skills/list"
	getSkill   = "skills/get"
	readFolder = "resources/directory/read"
)

// A shelf is what a server has of skills: the files by their addresses.
type shelf struct {
	server    *mcp.Server
	entries   []string // JSON
	pageSize  int
	folders   bool
	asked     chan string // the methods of requests, if anybody wants to know
	listsOnce chan struct{}
}

func (sh *shelf) note(what string) {
	select {
	case sh.asked <- what:
	default:
	}
}

// skillMD returns a SKILL.md.
func skillMD(name, description, text string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n%s\n", name, description, text)
}

// entryOf returns the entry of a skill, the files of which are named from its root.
func entryOf(root string, files map[string]string) string {
	front, _, err := skill.Split([]byte(files["SKILL.md"]))
	if err != nil {
		panic(err)
	}
	e := skill.Entry{URI: root + "/SKILL.md", Frontmatter: front, Files: []skill.Resource{}}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		e.Files = append(e.Files, skill.Resource{URI: root + "/" + name, Digest: skill.Digest([]byte(files[name])), Size: int64(len(files[name]))})
	}
	raw, err := json.Marshal(&e)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// newShelf returns a server with skills.
func newShelf(folders bool) *shelf {
	sh := &shelf{folders: folders, pageSize: 2, asked: make(chan string, 1000)}
	caps := &mcp.ServerCapabilities{Resources: &mcp.ResourceCapabilities{}}
	settings := map[string]any{}
	if folders {
		settings["directoryRead"] = true
	}
	caps.AddExtension("io.modelcontextprotocol/skills", settings)
	sh.server = mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, &mcp.ServerOptions{Capabilities: caps})
	sh.answer(listSkills, func(ctx context.Context, p *skillParams) (*skillAnswer, error) {
		if sh.listsOnce != nil {
			select {
			case <-sh.listsOnce:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		var at int
		fmt.Sscan(p.Cursor, &at)
		res := &skillAnswer{Skills: []json.RawMessage{}, TTL: new(int), Scope: "public", Type: "complete"}
		for _, e := range sh.entries[at:min(at+sh.pageSize, len(sh.entries))] {
			res.Skills = append(res.Skills, json.RawMessage(e))
		}
		if at+sh.pageSize < len(sh.entries) {
			res.Next = fmt.Sprint(at + sh.pageSize)
		}
		return res, nil
	})
	sh.answer(getSkill, func(_ context.Context, p *skillParams) (*skillAnswer, error) {
		for _, e := range sh.entries {
			if strings.HasPrefix(e, fmt.Sprintf(`{"uri":%q,`, p.URI)) {
				return &skillAnswer{Skill: json.RawMessage(e), TTL: new(int), Scope: "public", Type: "complete"}, nil
			}
		}
		return nil, &jsonrpc.Error{Code: -32002, Message: "no such skill"}
	})
	if folders {
		sh.answer(readFolder, func(_ context.Context, p *skillParams) (*skillAnswer, error) {
			if strings.HasSuffix(p.URI, ".md") {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no folder"}
			}
			return &skillAnswer{Type: "complete", Resources: []json.RawMessage{json.RawMessage(`{"uri":"` + p.URI + `/live.md","name":"live.md"}`),
				json.RawMessage(`{"uri":"` + p.URI + `/deep","name":"deep","mimeType":"inode/directory"}`)}}, nil
		})
	}
	return sh
}

func (sh *shelf) answer(method string, f func(context.Context, *skillParams) (*skillAnswer, error)) {
	err := mcp.AddReceivingCustomMethod(sh.server, method, func(ctx context.Context, _ *mcp.ServerSession, p *skillParams) (*skillAnswer, error) {
		sh.note(method)
		if p == nil {
			p = &skillParams{}
		}
		return f(ctx, p)
	})
	if err != nil {
		panic(err)
	}
}

// add puts a skill on the shelf; its files can be read.
func (sh *shelf) add(root string, files map[string]string) {
	sh.entries = append(sh.entries, entryOf(root, files))
	for name, text := range files {
		sh.file(root+"/"+name, text)
	}
}

func (sh *shelf) file(uri, text string) {
	about := &mcp.Resource{Name: "f", URI: uri, MIMEType: "text/markdown"}
	var front struct{ Name, Description string }
	if raw, _, err := skill.Split([]byte(text)); err == nil && json.Unmarshal(raw, &front) == nil {
		about.Name, about.Description = front.Name, front.Description
	}
	sh.server.AddResource(about,
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			sh.note("read " + r.Params.URI)
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/markdown", Text: text}}}, nil
		})
}

// askSkills calls a method of the extension.
func askSkills(t testing.TB, s *mcp.ClientSession, method string, p skillParams) (*skillAnswer, error) {
	t.Helper()
	return mcp.CallCustomMethod[*skillParams, *skillAnswer](t.Context(), s, method, &p)
}

// knowing lets clients call the methods of the extension.
func knowing(t testing.TB, h *house, version string, overHTTP bool) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "0"}, nil)
	for _, m := range []string{listSkills, getSkill, readFolder} {
		if err := mcp.AddSendingCustomMethod[*skillParams, *skillAnswer](c, m); err != nil {
			t.Fatal(err)
		}
	}
	if overHTTP {
		s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.http(t, "").URL}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	return h.pipeOf(t, "", c, version)
}

func allSkills(t testing.TB, s *mcp.ClientSession) (all []string, raw string) {
	t.Helper()
	for cursor := ""; ; {
		res, err := askSkills(t, s, listSkills, skillParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range res.Skills {
			var e struct{ URI string }
			json.Unmarshal(one, &e)
			all = append(all, e.URI)
			raw += string(one) + "\n"
		}
		if cursor = res.Next; cursor == "" {
			return all, raw
		}
	}
}

func wantCode(t testing.TB, what string, err error, code int64, says string) {
	t.Helper()
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code != code || !strings.Contains(wire.Message, says) {
		t.Errorf("%s: %v; want %d …%s…", what, err, code, says)
	}
}

// Skills of servers pass through, all pages of all servers. Where two have
// something under one address both are told apart, with all files.
func TestSkillsOfTwoServers(t *testing.T) {
	a, b := newShelf(true), newShelf(false)
	a.add("skill://refunds", map[string]string{"SKILL.md": skillMD("refunds", "Of a.", "A"), "tools/x.md": "x of a"})
	a.add("skill://only-a", map[string]string{"SKILL.md": skillMD("only-a", "D.", "A")})
	a.add("skill://acme/billing", map[string]string{"SKILL.md": skillMD("billing", "D.", "A")})
	b.add("skill://refunds", map[string]string{"SKILL.md": skillMD("refunds", "Of b.", "B"), "tools/x.md": "x of b", "tools/y/z.md": "z"})
	b.add("git://host/only-b", map[string]string{"SKILL.md": skillMD("only-b", "D.", "B"), "r/f.md": "f"})
	h, _ := gateway(t, func(o *mcpbridge.ServerOptions) { o.PageSize = 2 }, rename(serveHTTP(t, a.server, false), "a"), rename(serveHTTP(t, b.server, true), "b"))
	for _, version := range versions {
		for _, overHTTP := range []bool{false, true} {
			s := knowing(t, h, version, overHTTP)
			ext, ok := s.InitializeResult().Capabilities.Extensions["io.modelcontextprotocol/skills"].(map[string]any)
			if !ok || ext["directoryRead"] != true || s.InitializeResult().Capabilities.Resources == nil {
				t.Errorf("%s: declared %v", version, s.InitializeResult().Capabilities)
			}
			want := []string{"helve:a/skill://refunds/SKILL.md", "skill://only-a/SKILL.md", "skill://acme/billing/SKILL.md",
				"helve:b/skill://refunds/SKILL.md", "git://host/only-b/SKILL.md"}
			got, raw := allSkills(t, s)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: listed\n%q, want\n%q", version, got, want)
			}
			if _, again := allSkills(t, s); again != raw || !strings.Contains(raw, `"uri":"helve:b/skill://refunds/tools/y/z.md"`) {
				t.Errorf("%s: another list, or one without its files:\n%s\n%s", version, raw, again)
			}
			for _, uri := range want {
				res, err := askSkills(t, s, getSkill, skillParams{URI: uri})
				if err != nil || !strings.Contains(raw, string(res.Skill)+"\n") || res.Next != "" || (res.TTL != nil && res.Scope == "private") != (version >= "2026-07-28") {
					t.Errorf("%s: %v, %+v", uri, err, res)
				}
			}
			for uri, text := range map[string]string{"helve:a/skill://refunds/tools/x.md": "x of a", "helve:b/skill://refunds/tools/x.md": "x of b", "git://host/only-b/r/f.md": "f"} {
				res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				if err != nil || res.Contents[0].Text != text || res.Contents[0].URI != uri {
					t.Errorf("%s: %v, %+v", uri, err, res)
				}
			}
			for uri, want := range map[string]string{
				"helve:a/skill://refunds/tools": `[{"uri":"helve:a/skill://refunds/tools/live.md","name":"live.md"},{"uri":"helve:a/skill://refunds/tools/deep","name":"deep","mimeType":"inode/directory"}]`, // the server says it
				"helve:b/skill://refunds/tools": `[{"uri":"helve:b/skill://refunds/tools/x.md","name":"x.md","mimeType":"text/markdown"},{"uri":"helve:b/skill://refunds/tools/y","name":"y","mimeType":"inode/directory"}]`,
				"git://host/only-b":             `[{"uri":"git://host/only-b/SKILL.md","name":"SKILL.md","mimeType":"text/markdown"},{"uri":"git://host/only-b/r","name":"r","mimeType":"inode/directory"}]`,
			} {
				got := "["
				for cursor := ""; ; {
					res, err := askSkills(t, s, readFolder, skillParams{URI: uri, Cursor: cursor})
					if err != nil {
						t.Errorf("%s: %v", uri, err)
						break
					}
					for _, one := range res.Resources {
						got += string(one) + ","
					}
					if cursor = res.Next; cursor == "" {
						break
					}
				}
				if got = strings.TrimSuffix(got, ",") + "]"; got != want {
					t.Errorf("%s: %s, want %s", uri, got, want)
				}
			}
			for _, uri := range []string{"skill://refunds/SKILL.md", "skill://nobody/SKILL.md", "helve:c/skill://x/SKILL.md", "helve:b/skill://nobody/SKILL.md", "nobody://x/SKILL.md"} {
				_, err := askSkills(t, s, getSkill, skillParams{URI: uri})
				wantCode(t, uri, err, jsonrpc.CodeInvalidParams, "")
			}
			for _, uri := range []string{"git://host/only-b/SKILL.md", "git://host/only-b/none", "git://host", "helve:a/skill://refunds/SKILL.md"} {
				_, err := askSkills(t, s, readFolder, skillParams{URI: uri})
				wantCode(t, uri, err, jsonrpc.CodeInvalidParams, "")
			}
			_, err := askSkills(t, s, getSkill, skillParams{})
			wantCode(t, "no uri", err, jsonrpc.CodeInvalidParams, "missing uri")
		}
	}
	for _, sh := range []*shelf{a, b} {
		for len(sh.asked) > 0 {
			if what := <-sh.asked; strings.HasPrefix(what, "read ") && !strings.HasSuffix(what, "x.md") && !strings.HasSuffix(what, "f.md") {
				t.Errorf("nobody asked for it, and it was read: %s", what)
			}
		}
	}
}

// Where no server has skills the extension is not declared, and its methods are
// unknown; so are those of servers that a caller may not see.
func TestSkillsAreDeclaredWhereThereAreSome(t *testing.T) {
	sh := newShelf(false)
	sh.add("skill://x", map[string]string{"SKILL.md": skillMD("x", "D.", "X")})
	without, _ := gateway(t, nil, rename(serveHTTP(t, offering("a", nil), false), "a"))
	hidden, _ := gateway(t, func(o *mcpbridge.ServerOptions) {
		o.Shows = func(tool.Origin, string) bool { return false }
	}, rename(serveHTTP(t, sh.server, false), "a"))
	plain, _ := gateway(t, nil, rename(serveHTTP(t, sh.server, false), "a"))
	for _, version := range versions {
		for _, h := range []*house{without, hidden} {
			s := knowing(t, h, version, true)
			if ext := s.InitializeResult().Capabilities.Extensions; ext["io.modelcontextprotocol/skills"] != nil {
				t.Errorf("%s: declared %v", version, ext)
			}
			for _, method := range []string{listSkills, getSkill, readFolder} {
				_, err := askSkills(t, s, method, skillParams{URI: "skill://x/SKILL.md"})
				wantCode(t, method, err, jsonrpc.CodeMethodNotFound, "")
			}
		}
		s := knowing(t, plain, version, false)
		if ext, ok := s.InitializeResult().Capabilities.Extensions["io.modelcontextprotocol/skills"].(map[string]any); !ok || len(ext) != 0 {
			t.Errorf("%s: declared %v", version, ext)
		}
		_, err := askSkills(t, s, readFolder, skillParams{URI: "skill://x"})
		wantCode(t, "folders", err, jsonrpc.CodeMethodNotFound, "")
	}
}

// Entries that break the rules are left out, each for itself.
func TestHostileSkills(t *testing.T) {
	digest := skill.Digest(nil)
	entry := func(uri, front, resources string) string {
		name, _ := json.Marshal(uri)
		return fmt.Sprintf(`{"uri":%s,"frontmatter":%s,"resources":%s}`, name, front, resources)
	}
	file := func(uri, digest, size string) string {
		return fmt.Sprintf(`{"uri":%q,"digest":%q,"size":%s}`, uri, digest, size)
	}
	own := file("skill://bad/SKILL.md", digest, "0")
	const front, uri = `{"name":"bad","description":"D."}`, "skill://bad/SKILL.md"
	bad := []string{
		`7`, `{}`, `{"uri":""}`, `{"uri":7,"frontmatter":{}}`,
		entry("skill://bad/README.md", front, `"dynamic"`), entry("SKILL.md", front, `"dynamic"`), entry("skill://other/SKILL.md", front, `"dynamic"`),
		entry("skill://a/../bad/SKILL.md", front, `"dynamic"`), entry("skill://a/%2E%2e/bad/SKILL.md", front, `"dynamic"`),
		entry(uri, `{"name":"bad"}`, `"dynamic"`), entry(uri, `{"description":"D."}`, `"dynamic"`), entry(uri, `[]`, `"dynamic"`),
		entry(uri, `{"name":7,"description":"D."}`, `"dynamic"`), entry(uri, front, `"some"`), entry(uri, front, `null`), entry(uri, front, `{}`), entry(uri, front, `[]`),
		`{"uri":"` + uri + `","frontmatter":` + front + `}`,
		entry("skill://b\u0007d/SKILL.md", `{"name":"b\u0007d","description":"D."}`, `"dynamic"`), entry("skill://-bad/SKILL.md", `{"name":"-bad","description":"D."}`, `"dynamic"`),
		entry("skill://BAD/SKILL.md", `{"name":"BAD","description":"D."}`, `"dynamic"`),
		entry(uri, front, "["+own+","+own+"]"), entry(uri, front, "["+file("skill://bad/x.md", digest, "0")+"]"),
		entry(uri, front, "["+own+","+file("skill://good/x.md", digest, "0")+"]"), entry(uri, front, "["+own+","+file("skill://bad/../x.md", digest, "0")+"]"),
		entry(uri, front, "["+own+","+file("file:///etc/passwd", digest, "0")+"]"),
		entry(uri, front, "["+file(uri, strings.ToUpper(digest), "0")+"]"), entry(uri, front, "["+file(uri, "sha256:abc", "0")+"]"),
		entry(uri, front, "["+file(uri, digest, "-1")+"]"), entry(uri, front, "["+file(uri, digest, `"0"`)+"]"), entry(uri, front, "["+file(uri, digest, "0.5")+"]"),
	}
	for i, one := range bad {
		sh := newShelf(false)
		sh.add("skill://good", map[string]string{"SKILL.md": skillMD("good", "D.", "G")})
		sh.entries = append(sh.entries, one)
		h, g := gateway(t, nil, rename(serveHTTP(t, sh.server, false), "a"))
		s := knowing(t, h, "2026-07-28", false)
		if got, _ := allSkills(t, s); !slices.Equal(got, []string{"skill://good/SKILL.md"}) {
			t.Errorf("%d: %s: listed %q", i, one, got)
		}
		if st := g.status(t); st.Skills != 1 || len(st.BadSkills) != 1 || strings.ContainsAny(st.BadSkills[0], "\a\x1b") {
			t.Errorf("%d: %s: %+v", i, one, st)
		}
	}
}

// A list that is too long, and one that never comes, cost their own server's
// skills only.
func TestEndlessSkills(t *testing.T) {
	t.Parallel()
	good, swarm, mute := newShelf(false), newShelf(false), newShelf(false)
	good.add("skill://good", map[string]string{"SKILL.md": skillMD("good", "D.", "G")})
	swarm.pageSize = 1000
	for i := range 10_001 {
		swarm.entries = append(swarm.entries, entryOf(fmt.Sprintf("skill://s%d", i), map[string]string{"SKILL.md": skillMD(fmt.Sprintf("s%d", i), "D.", "")}))
	}
	mute.listsOnce = make(chan struct{})
	t.Cleanup(func() { close(mute.listsOnce) })
	h, _ := gateway(t, nil, rename(serveHTTP(t, good.server, false), "a"), rename(serveHTTP(t, swarm.server, false), "b"), rename(serveHTTP(t, mute.server, false), "c"))
	s := knowing(t, h, "2026-07-28", true)
	if got, _ := allSkills(t, s); !slices.Equal(got, []string{"skill://good/SKILL.md"}) {
		t.Errorf("listed %d: %.200q", len(got), got)
	}
	swarm.entries = swarm.entries[:10_000]
	if got, _ := allSkills(t, s); len(got) != 10_001 {
		t.Errorf("listed %d", len(got))
	}
}

// What a server listed is known without it after a restart, the same to the byte.
func TestSkillsOutlastARestart(t *testing.T) {
	sh := newShelf(true)
	sh.add("skill://b", map[string]string{"SKILL.md": skillMD("b", "D.", "B"), "x/y.md": "y"})
	sh.add("skill://a", map[string]string{"SKILL.md": skillMD("a", "D.", "A")})
	kept := &mem.Store{}
	up := rename(serveHTTP(t, sh.server, false), "a")
	var first string
	for round := range 3 {
		ups := mcpbridge.OpenUpstreams(t.Context(), []mcpbridge.Upstream{up}, mcpbridge.UpstreamOptions{Store: kept, Root: t.TempDir(), Version: "test"})
		ups.Wait(t.Context())
		h := newHouse(t, func(o *mcpbridge.ServerOptions) {
			o.Upstreams = func() *mcpbridge.Upstreams { return ups }
			o.Resolve = func(_ tool.Origin, name string) *tool.Tool { return handled(name, tool.Reads, nil) }
		})
		s := knowing(t, h, "2026-07-28", true)
		got, raw := allSkills(t, s)
		if first == "" {
			first = raw
		}
		if raw != first || !slices.Equal(got, []string{"skill://b/SKILL.md", "skill://a/SKILL.md"}) {
			t.Errorf("round %d: listed %q, and first\n%s", round, got, first)
		}
		if ext, _ := s.InitializeResult().Capabilities.Extensions["io.modelcontextprotocol/skills"].(map[string]any); ext["directoryRead"] != true {
			t.Errorf("round %d: declared %v", round, ext)
		}
		ups.Close()
		if round == 0 {
			up.URL = serveHTTP(t, sh.server, false).URL[:len("http://127.0.0.1:")] + "1" // nobody is there any more
			up.Partial = true                                                            // the same server all the same
		}
	}
}
