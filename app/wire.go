package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/store/postgres"
	"github.com/helve-ai/helve/store/sqlite"
	"github.com/helve-ai/helve/tool"
)

// rules returns the app's policy.
func (c *Config) rules(r *root.Root) (*guard.Rules, error) {
	p := c.Tools.Capabilities
	out := &guard.Rules{Default: guard.Default(p.DefaultPolicy), Constraints: map[string]guard.Constraint{}}
	if p.MaxRiskLevel != "" {
		risk, err := tool.ParseRisk(p.MaxRiskLevel)
		if err != nil {
			return nil, fmt.Errorf("tools.capabilities.max_risk_level: %w", err)
		}
		out.MaxRisk = risk
	}
	for _, list := range []struct {
		name string
		from []Rule
		to   *[]*guard.Rule
	}{
		{"grant", p.Grant, &out.Grant}, {"approve", p.Approve, &out.Approve},
		{"deny", p.Deny, &out.Deny}, {"hidden", p.Hidden, &out.Hidden},
	} {
		for i, rule := range list.from {
			g, err := rule.compile(r)
			if err != nil {
				return nil, fmt.Errorf("tools.capabilities.%s[%d]: %w", list.name, i, err)
			}
			*list.to = append(*list.to, g)
		}
	}
	for _, m := range p.HiddenModules {
		out.Hidden = append(out.Hidden, &guard.Rule{Module: m})
	}
	for name, block := range c.Tools.Modules {
		out.Constraints[name] = guard.Constraint{Allowed: block.Constraints.AllowedActions, Blocked: block.Constraints.BlockedActions}
	}
	for server, s := range c.Tools.MCPServers {
		for t, o := range s.Overrides {
			if o.Hidden {
				out.Hidden = append(out.Hidden, &guard.Rule{Module: "mcp." + server, Actions: []string{t}})
			}
		}
	}
	return out, nil
}

func (r Rule) compile(at *root.Root) (*guard.Rule, error) {
	if r.Pattern == "" {
		return &guard.Rule{Module: r.Module, Actions: r.Actions, Reason: r.Reason, Root: at}, nil
	}
	g, err := guard.ParseRule(r.Pattern)
	if err != nil {
		return nil, err
	}
	g.Reason, g.Root = r.Reason, at
	return g, nil
}

// upstreams returns the upstream servers in the order of their names. What
// they refer to is looked for when they are started, each for itself.
func (a *App) upstreams() []mcpbridge.Upstream {
	var out []mcpbridge.Upstream
	for _, name := range slices.Sorted(maps.Keys(a.Config.Tools.MCPServers)) {
		refers := false
		u, err := a.Config.upstream(name, a.Root.Dir(), func(string) (string, error) {
			refers = true
			return mcpbridge.Redacted, nil
		})
		if u.Partial = err != nil; refers || err != nil {
			u.Hidden, u.OAuth = nil, mcpbridge.OAuth{}
			u.Fill = func() (mcpbridge.Upstream, error) { return a.Config.upstream(name, a.Root.Dir(), a.opts.Secret) }
		}
		out = append(out, u)
	}
	return out
}

// ruled returns the tools of a server that the policy names.
func (c *Config) ruled(server string) (out []string) {
	p, module := c.Tools.Capabilities, "mcp."+server
	for _, r := range slices.Concat(p.Grant, p.Approve, p.Deny, p.Hidden) {
		if r.Module == module {
			out = append(out, r.Actions...)
		}
		if g, err := guard.ParseRule(r.Pattern); err == nil {
			if name, ok := strings.CutPrefix(g.Pattern, module+"."); ok {
				out = append(out, name)
			}
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return strings.ContainsAny(name, "*?[") })
}

// upstream returns the named server, secrets filled in. With an error, what
// could be filled in is.
func (c *Config) upstream(name, rootDir string, secret func(string) (string, error)) (mcpbridge.Upstream, error) {
	s := c.Tools.MCPServers[name]
	u := mcpbridge.Upstream{Name: name, Command: s.Command, Cwd: s.Cwd,
		OnChange: mcpbridge.OnChange(s.OnChange), OnFlagged: mcpbridge.OnFlagged(s.OnFlagged),
		Trusted: s.Trusted, Disabled: s.Disabled, Eager: s.Eager, Skills: s.Skills, Asks: mcpbridge.Asks(s.Asks), Roots: mcpbridge.Roots(s.Roots), Sessions: s.Sessions, Only: s.Only, Ruled: c.ruled(name), CallTimeout: timeoutOr(s.Timeout, 0),
		IdleTimeout: time.Duration(s.IdleTimeout) * time.Second, StartTimeout: time.Duration(s.StartTimeout) * time.Second, ListsWait: time.Duration(s.ListsWait) * time.Second,
		Overrides: map[string]mcpbridge.Override{}}
	if s.Asks == "all" {
		u.Asks = mcpbridge.AsksAll
	}
	u.Cwd = inRoot(rootDir, u.Cwd)
	for _, p := range c.unset {
		if strings.HasPrefix(p.Path, "tools.mcp_servers."+name+".") {
			return u, p
		}
	}
	hidden := func(name string) (string, error) {
		if secret == nil {
			return "", fmt.Errorf("there is no source of secrets")
		}
		value, err := secret(name)
		u.Hidden = append(u.Hidden, value)
		return value, err
	}
	var err error
	for i, arg := range s.Args {
		if arg, err = expandSecrets(arg, hidden); err != nil {
			return u, fmt.Errorf("args[%d]: %w", i, err)
		}
		u.Args = append(u.Args, arg)
	}
	if u.URL, err = expandSecrets(s.URL, hidden); err != nil {
		return u, fmt.Errorf("url: %w", err)
	}
	if u.OAuth, err = s.OAuth.signIn(rootDir, secret); err != nil {
		return u, fmt.Errorf("oauth: %w", err)
	}
	if u.Env, err = expandMap(s.Env, secret); err != nil {
		return u, fmt.Errorf("env: %w", err)
	}
	if u.Headers, err = expandMap(s.Headers, secret); err != nil {
		return u, fmt.Errorf("headers: %w", err)
	}
	for t, o := range s.Overrides {
		if u.Overrides[t], err = o.compile(); err != nil {
			return u, fmt.Errorf("overrides.%s: %w", t, err)
		}
	}
	return u, nil
}

// inRoot returns where a path leads that may be relative to the root; "": nowhere.
func inRoot(rootDir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(rootDir, path)
}

// signIn returns how to sign in; nil: by what the server tells.
func (o *OAuth) signIn(rootDir string, secret func(string) (string, error)) (out mcpbridge.OAuth, err error) {
	if o == nil {
		return out, nil
	}
	out = mcpbridge.OAuth{Off: o.Off, ClientID: o.ClientID, Issuer: o.Issuer, ClientMetadataURL: o.ClientMetadataURL,
		Scopes: o.Scopes, RedirectPort: o.RedirectPort, KeyID: o.KeyID, AssertionFile: inRoot(rootDir, o.AssertionFile)}
	if o.Grant != "authorization_code" {
		out.Grant = mcpbridge.Grant(o.Grant)
	}
	if out.ClientSecret, err = expandSecrets(o.ClientSecret, secret); err != nil {
		return out, fmt.Errorf("client_secret: %w", err)
	}
	if out.PrivateKey, err = expandSecrets(o.PrivateKey, secret); err != nil {
		return out, fmt.Errorf("private_key: %w", err)
	}
	if id := o.Identity; id != nil {
		out.Identity = mcpbridge.Identity{Issuer: id.Issuer, ClientID: id.ClientID, TokenFile: inRoot(rootDir, id.TokenFile)}
		if out.Identity.ClientSecret, err = expandSecrets(id.ClientSecret, secret); err != nil {
			return out, fmt.Errorf("identity.client_secret: %w", err)
		}
	}
	return out, nil
}

func (o Override) compile() (out mcpbridge.Override, err error) {
	out.Hidden = o.Hidden
	if o.Effect != "" {
		if out.Effect, err = tool.ParseEffect(o.Effect); err != nil {
			return out, err
		}
	}
	if o.Risk != "" {
		if out.Risk, err = tool.ParseRisk(o.Risk); err != nil {
			return out, err
		}
	}
	for property, role := range o.Roles {
		if !schema.Role(role).Known() {
			return out, fmt.Errorf("roles.%s: %q is not a role", property, role)
		}
		if out.Roles == nil {
			out.Roles = map[string]schema.Role{}
		}
		out.Roles[property] = schema.Role(role)
	}
	return out, nil
}

// expandMap returns m with the secrets in its values filled in.
func expandMap(m map[string]string, secret func(string) (string, error)) (map[string]string, error) {
	out := make(map[string]string, len(m))
	for k, v := range m {
		text, err := expandSecrets(v, secret)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out[k] = text
	}
	return out, nil
}

// expandJSON returns raw with the secrets in its strings filled in.
func expandJSON(raw json.RawMessage, secret func(string) (string, error)) (json.RawMessage, error) {
	if !bytes.Contains(raw, []byte("{{")) {
		return raw, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	v, err := expandAny(v, secret)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func expandAny(v any, secret func(string) (string, error)) (_ any, err error) {
	switch v := v.(type) {
	case string:
		return expandSecrets(v, secret)
	case []any:
		for i := range v {
			if v[i], err = expandAny(v[i], secret); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = expandAny(v[k], secret); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
		}
	}
	return v, nil
}

// openStore opens the app's part of its store: apps may share a database.
func (a *App) openStore(ctx context.Context) error {
	url := a.opts.Store
	if url == "" && a.opts.Inspect {
		url = "memory"
	}
	whole, err := OpenStore(ctx, url, a.State)
	if err != nil {
		return err
	}
	a.keepStore(whole)
	return nil
}

func (a *App) keepStore(whole store.Store) {
	a.whole, a.Store = whole, store.Sub(whole, "apps/"+a.Config.App.ID)
	a.closers = append(a.closers, whole.Close)
}

// OpenStore opens the store that url names: postgres://…, "memory", or a file;
// "": helve.db in the folder state. A file is opened, or made, on first use.
func OpenStore(ctx context.Context, url, state string) (store.Store, error) {
	switch {
	case url == "memory":
		return new(mem.Store), nil
	case strings.HasPrefix(url, "postgres://"), strings.HasPrefix(url, "postgresql://"):
		return postgres.Open(ctx, url)
	}
	file := strings.TrimPrefix(url, "sqlite://")
	if file == "" {
		file = filepath.Join(state, "helve.db")
	}
	if strings.Contains(file, "://") {
		return nil, fmt.Errorf("store %s: want postgres://…, a file, or memory", url)
	}
	return &lazyStore{file: file, open: func(ctx context.Context) (store.Store, error) { return sqlite.Open(ctx, file) }}, nil
}

// storeFiles returns the files of the store that url names, if it names one.
func storeFiles(url string) []string {
	file := strings.TrimPrefix(url, "sqlite://")
	if file == "" || file == "memory" || strings.Contains(file, "://") {
		return nil
	}
	return []string{file, file + "-wal", file + "-shm"}
}

// IfThere returns s as a store that is empty until something was written to
// its file: reading makes no file.
func IfThere(s store.Store) store.Store {
	if l, ok := s.(*lazyStore); ok {
		return ifThere{l}
	}
	return s
}

type ifThere struct{ *lazyStore }

// quietly returns a part of the app's store that reading does not make.
func (a *App) quietly(part string) store.Store {
	look := store.Sub(IfThere(a.whole), "apps/"+a.Config.App.ID)
	return quiet{store.Sub(a.Store, part), store.Sub(look, part)}
}

type quiet struct {
	store.Store
	look store.Store
}

func (q quiet) View(ctx context.Context, fn func(store.Reader) error) error {
	return q.look.View(ctx, fn)
}

func (s ifThere) View(ctx context.Context, fn func(store.Reader) error) error {
	if !s.opened() {
		if _, err := os.Stat(s.file); errors.Is(err, fs.ErrNotExist) {
			return new(mem.Store).View(ctx, fn)
		}
	}
	return s.lazyStore.View(ctx, fn)
}

// manifestStore returns the store of what upstream servers listed. An app that
// is only looked at reads the one that its serving left, so that no server
// need be started, and writes nothing.
func (a *App) manifestStore() store.Store {
	if a.manifests == nil {
		a.manifests = a.openManifests()
	}
	return a.manifests
}

func (a *App) openManifests() store.Store {
	if !a.opts.Inspect {
		return a.Store
	}
	file := filepath.Join(a.State, "helve.db")
	if a.opts.Store != "" {
		return readOnly{a.Store}
	}
	if _, err := os.Stat(file); err != nil {
		return readOnly{a.Store}
	}
	s := &lazyStore{file: file, open: func(ctx context.Context) (store.Store, error) { return sqlite.Open(ctx, file) }}
	a.closers = append(a.closers, s.Close)
	return readOnly{store.Sub(s, "apps/"+a.Config.App.ID)}
}

// A readOnly store forgets what is written to it.
type readOnly struct{ store.Store }

func (readOnly) Update(context.Context, func(store.Writer) error) error { return nil }

// A lazyStore opens its store on first use: most sessions never need one, and
// starting should not wait for it.
type lazyStore struct {
	file string
	open func(context.Context) (store.Store, error)

	mu     sync.Mutex
	s      store.Store
	closed bool
}

func (l *lazyStore) get(ctx context.Context) (store.Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, store.ErrClosed
	}
	if l.s == nil {
		s, err := l.open(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		l.s = s
	}
	return l.s, nil
}

// opened reports whether it was used.
func (l *lazyStore) opened() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s != nil
}

func (l *lazyStore) View(ctx context.Context, fn func(store.Reader) error) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.View(ctx, fn)
}

func (l *lazyStore) Update(ctx context.Context, fn func(store.Writer) error) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.Update(ctx, fn)
}

func (l *lazyStore) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.s == nil {
		return nil
	}
	return l.s.Close()
}
