package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/poison"
	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/tool"
)

// A kind is a kind of thing that servers list beside their tools.
type kind struct {
	method, key string // of the list
	id          string // the field by which entries are told apart
}

var (
	resources = &kind{methodListResources, "resources", "uri"}
	templates = &kind{methodListTemplates, "resourceTemplates", "uriTemplate"}
	prompts   = &kind{methodListPrompts, "prompts", "name"}
	skills    = &kind{methodListSkills, "skills", "uri"}
)

// of reports whether a server says that it has such things, and whether it
// tells when their list changes.
func (k *kind) of(caps *mcp.ServerCapabilities) (has, tells bool) {
	switch {
	case caps == nil:
		return false, false
	case k == prompts && caps.Prompts != nil:
		return true, caps.Prompts.ListChanged
	case k == skills && caps.Resources != nil && caps.Extensions[skillsExtension] != nil:
		return true, false // the extension has no such news
	case k != prompts && k != skills && caps.Resources != nil:
		return true, caps.Resources.ListChanged
	}
	return false, true // for as long as the connection lasts
}

const (
	listPatience = 15 * time.Second // how long a client waits for a server that does not list
	listLasts    = 5 * time.Minute  // how long a list is believed of a server that tells changes
)

// A list is what a server listed, as it sent it.
type list struct {
	entries []entry
	has     map[string]bool
	schemes map[string]bool // of the addresses
	spaces  map[string]bool // see space
	files   map[string]bool // the addresses of all files of skills
	until   time.Time       // it need not be asked for again
	leftOut []string        // which entries cannot be used, and why
	flags   *skillFlags     // of skills
}

// An entry is what a server says of a resource, a template or a prompt.
type entry struct {
	id    string
	raw   json.RawMessage
	skill *skill.Entry // nil: it is no skill
}

func newList(k *kind, raws []json.RawMessage) *list {
	l := &list{has: map[string]bool{}, schemes: map[string]bool{}, spaces: map[string]bool{}, flags: &skillFlags{by: map[string][]poison.Finding{}}}
	for i, raw := range raws {
		var fields map[string]json.RawMessage
		var id string
		if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields[k.id], &id) != nil || id == "" || l.has[id] {
			if k == skills {
				l.leaveOut(i, id, errors.New("it has no address, or one that was listed before"))
			}
			continue // nobody could ask for it
		}
		en := entry{id: id, raw: raw}
		if k == skills {
			var err error
			if en.skill, err = skill.Parse(raw); err != nil {
				l.leaveOut(i, id, err)
				continue
			}
			l.addFiles(en.skill)
		}
		l.entries = append(l.entries, en)
		l.has[id] = true
		l.schemes[scheme(id)] = true
		l.spaces[space(id)] = true
	}
	return l
}

// scheme returns an address's scheme; "": it has none, or a variable one.
func scheme(uri string) string {
	s, _, ok := strings.Cut(uri, ":")
	if !ok || strings.ContainsAny(s, "{}/?#") {
		return ""
	}
	return strings.ToLower(s)
}

// A relay keeps what our clients see of one server beside its tools, and
// passes on its news.
type relay struct {
	news *news

	mu      sync.Mutex
	lists   map[*kind]*list
	changes map[*kind]int      // counted, lest a list that is being read be believed
	watched map[string]*follow // by address
}

// A follow is a resource whose changes some client wants to know.
type follow struct {
	count   int
	release func() // lets the server be stopped
}

// listed returns what the server listed last, and reads the list anew if that
// may have changed: not while the server does not run. Nil: nothing is known.
func (s *upstream) listed(ctx context.Context, k *kind) *list {
	r := &s.relay
	r.mu.Lock()
	old, change := r.lists[k], r.changes[k]
	r.mu.Unlock()
	if old != nil && (time.Now().Before(old.until) || !s.connected()) {
		return old
	}
	if s.lacks(k) {
		return newList(k, nil)
	}
	if s.silent(ctx) {
		return old
	}
	raws, tells, err := s.readList(ctx, k)
	if err != nil {
		s.log.Debug("the MCP server does not list", "what", k.key, "error", s.plain(err))
		return old
	}
	return s.learned(k, raws, tells, change)
}

// known returns what the server listed last, however long ago, and asks only
// if it never did.
func (s *upstream) known(ctx context.Context, k *kind) *list {
	s.relay.mu.Lock()
	l := s.relay.lists[k]
	s.relay.mu.Unlock()
	if l == nil {
		l = s.listed(ctx, k)
	}
	return l
}

func (s *upstream) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link != nil && !s.link.lost()
}

func (s *upstream) readList(ctx context.Context, k *kind) (raws []json.RawMessage, tells bool, err error) {
	defer s.hold()()
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	link, err := s.ready(ctx)
	if err != nil {
		return nil, false, err
	}
	has, tells := k.of(link.session.InitializeResult().Capabilities)
	if has {
		raws, err = s.list(ctx, k.method, k.key)
	}
	return raws, tells, err
}

// hears adds to a client what it does with a server's news.
func (s *upstream) hears(o *mcp.ClientOptions) *mcp.ClientOptions {
	o.ResourceListChangedHandler = func(context.Context, *mcp.ResourceListChangedRequest) { s.changed(resources, templates, skills) }
	o.PromptListChangedHandler = func(context.Context, *mcp.PromptListChangedRequest) { s.changed(prompts) }
	o.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
		s.updated(r.Params.URI)
	}
	o.LoggingMessageHandler = func(_ context.Context, r *mcp.LoggingMessageRequest) { s.logged(r.Params) }
	return o
}

func (s *upstream) updated(uri string) {
	s.relay.news.tell(event{server: s, uri: uri})
}

const (
	maxLog  = 16 << 10 // bytes of what a server logs at once that clients are told
	maxSaid = 1 << 20  // of which secrets are taken out; what is cut off there may begin with one
)

// logged passes on what the server logs: fit to be shown, without secrets, and
// not much of it. A level that there is not is told as info.
func (s *upstream) logged(p *mcp.LoggingMessageParams) {
	clean := &mcp.LoggingMessageParams{Level: p.Level, Logger: cut(printable(p.Logger), maxLogger), Data: legible(p.Data)}
	if rank(p.Level) < 0 {
		clean.Level = "info"
	}
	said, err := tool.Encode(clean.Data)
	if err != nil {
		return
	}
	if len(said) > maxSaid {
		clean.Data = cut(string(said), maxSaid)
	}
	if s.o.Redact != nil {
		said, err := tool.Encode(clean)
		if err != nil || json.Unmarshal(s.o.Redact(said), clean) != nil {
			return
		}
	}
	if said, err = tool.Encode(clean.Data); err != nil {
		return
	}
	if text, is := clean.Data.(string); is && len(said) > maxLog {
		clean.Data = cut(text, maxLog)
	} else if len(said) > maxLog {
		clean.Data = cut(string(said), maxLog)
	}
	s.relay.news.tell(event{server: s, log: clean})
}

// maxLogger bounds the name under which a server logs, in bytes.
const maxLogger = 200

// legible returns a JSON value with all its texts fit to be shown.
func legible(v any) any {
	switch v := v.(type) {
	case string:
		return printable(v)
	case []any:
		for i := range v {
			v[i] = legible(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[printable(key)] = legible(value)
		}
		return out
	}
	return v
}

// changed notes that lists have changed.
func (s *upstream) changed(kinds ...*kind) {
	r := &s.relay
	r.mu.Lock()
	if r.changes == nil {
		r.changes = map[*kind]int{}
	}
	for _, k := range kinds {
		r.changes[k]++
		if l := r.lists[k]; l != nil {
			stale := *l
			stale.until = time.Time{}
			r.lists[k] = &stale
		}
	}
	r.mu.Unlock()
	for _, k := range kinds {
		r.news.tell(event{server: s, kind: k})
	}
}

// linked begins to relay a connection that has just been made.
func (s *upstream) linked(l *link) {
	caps := l.session.InitializeResult().Capabilities
	for _, k := range allKinds {
		if has, _ := k.of(caps); has {
			s.changed(k)
		}
	}
	s.running.Go(func() { s.resume(l) })
}

// resume asks for what our clients follow.
func (s *upstream) resume(l *link) {
	ctx, cancel := context.WithTimeout(context.Background(), s.callTimeout())
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-l.ended:
		case <-ctx.Done():
		}
	}()
	s.relay.mu.Lock()
	var uris []string
	for uri := range s.relay.watched {
		uris = append(uris, uri)
	}
	s.relay.mu.Unlock()
	slices.Sort(uris)
	for _, uri := range uris {
		if err := l.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
			s.log.Warn("the MCP server does not tell changes of a resource any more", "uri", uri, "error", s.plain(err))
		}
	}
	if level := s.relay.news.wants(); level != "" {
		l.setLevel(ctx, level)
	}
}

// watch asks the server to tell changes of a resource.
func (s *upstream) watch(ctx context.Context, uri string) error {
	release := s.hold()
	l, err := s.ready(ctx)
	if err == nil {
		if caps := l.session.InitializeResult().Capabilities; caps == nil || caps.Resources == nil || !caps.Resources.Subscribe {
			err = invalidParams("the MCP server %s does not tell when its resources change", s.Name)
		}
	}
	r := &s.relay
	r.mu.Lock()
	if f := r.watched[uri]; err != nil || f != nil {
		if err == nil {
			f.count++
		}
		r.mu.Unlock()
		release()
		return err
	}
	if r.watched == nil {
		r.watched = map[string]*follow{}
	}
	r.watched[uri] = &follow{1, release}
	r.mu.Unlock()
	if err := l.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
		s.unwatch(ctx, uri)
		return err
	}
	return nil
}

// unwatch is the end of one watch.
func (s *upstream) unwatch(ctx context.Context, uri string) {
	r := &s.relay
	r.mu.Lock()
	f := r.watched[uri]
	if f == nil {
		r.mu.Unlock()
		return
	}
	f.count--
	last := f.count == 0
	if last {
		delete(r.watched, uri)
	}
	r.mu.Unlock()
	if !last {
		return
	}
	defer f.release()
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	// Servers of the library forget all that a session listens to when one of
	// its subscriptions ends. Without HTTP there is one session for all.
	if l != nil && (l.proc == nil || l.protocol < firstStateless) {
		_ = l.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}) // what it still tells is not passed on
	}
}

// setLevel tells the server from which level on its logs are wanted.
func (l *link) setLevel(ctx context.Context, level mcp.LoggingLevel) {
	if caps := l.session.InitializeResult().Capabilities; caps != nil && caps.Logging != nil && l.protocol < firstStateless {
		_ = l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: level}) // it is only logs
	}
}

// An event is news of a server: that a list changed, or a resource, or what it logs.
type event struct {
	server *upstream
	kind   *kind
	uri    string
	log    *mcp.LoggingMessageParams
}

// news goes from all servers to those who follow it.
type news struct {
	mu    sync.Mutex
	ears  map[int]func(event)
	next  int
	level mcp.LoggingLevel // from which on logs are wanted; "": none are
}

// follow calls ear with all that is told, until stop. It must not block.
func (n *news) follow(ear func(event)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ears == nil {
		n.ears = map[int]func(event){}
	}
	id := n.next
	n.next++
	n.ears[id] = ear
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.ears, id)
	}
}

func (n *news) tell(e event) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, ear := range n.ears {
		ear(e)
	}
}

func (n *news) wants() mcp.LoggingLevel {
	if n == nil {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.level
}

// logLevels are the levels of logs, the chattiest first.
var logLevels = []mcp.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func rank(level mcp.LoggingLevel) int { return slices.Index(logLevels, level) }

// chattier reports whether a level lets more through than another.
func chattier(level, than mcp.LoggingLevel) bool {
	at := rank(level)
	return at >= 0 && (rank(than) < 0 || at < rank(than))
}

// want asks all servers for their logs from a level on, if nobody asked for as much.
func (u *Upstreams) want(ctx context.Context, level mcp.LoggingLevel) {
	n := &u.news
	n.mu.Lock()
	more := chattier(level, n.level)
	if more {
		n.level = level
	}
	n.mu.Unlock()
	if more {
		each(u.servers, func(s *upstream) struct{} {
			s.mu.Lock()
			l := s.link
			s.mu.Unlock()
			if l != nil {
				l.setLevel(ctx, level)
			}
			return struct{}{}
		})
	}
}
