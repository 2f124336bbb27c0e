package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/store"
)

// repeats returns what counts as repetition.
func (c *Config) repeats() guard.Repeats {
	r := c.Runtime.Repetition
	return guard.Repeats{Callers: guard.Callers(r.Callers), Window: r.Window, Limit: r.Limit, Similarity: r.Similarity}
}

// mistakes returns how many mistakes in a row stop a turn, as the stage wants it.
func (c *Config) mistakes() int {
	if c.Runtime.MaxMistakes == 0 {
		return -1
	}
	return c.Runtime.MaxMistakes
}

// limiter returns what holds calls to the rate limits; nil if there are none.
// The windows are kept in the store, unless nobody else can have it.
func (a *App) limiter() *guard.Limiter {
	declared := a.Config.Tools.Capabilities.RateLimits
	if len(declared) == 0 {
		return nil
	}
	var limits []guard.Limit
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		l := declared[name]
		limits = append(limits, guard.Limit{Tools: name, Calls: l.Calls, Window: time.Duration(l.Window * float64(time.Second)), PerSession: l.Per == "session"})
	}
	if a.opts.Store == "memory" {
		return guard.NewLimiter(limits, nil, nil)
	}
	return guard.NewLimiter(limits, store.Sub(a.Store, "limits"), nil)
}

// A middlewareUse is one element of a list of middleware.
type middlewareUse struct {
	name     string
	settings json.RawMessage // nil: the defaults
	enabled  bool
}

// readMiddleware reads a list of middleware: name, {name: settings}, or {name,
// config, enabled}.
func readMiddleware(raw json.RawMessage) ([]middlewareUse, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	uses := make([]middlewareUse, len(items))
	for i, item := range items {
		var err error
		if uses[i], err = readMiddlewareUse(item); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return uses, nil
}

func readMiddlewareUse(item json.RawMessage) (middlewareUse, error) {
	use := middlewareUse{enabled: true}
	if item[0] == '"' {
		return use, json.Unmarshal(item, &use.name)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(item, &fields); err != nil {
		return use, err
	}
	if _, long := fields["name"]; !long {
		if len(fields) != 1 {
			return use, fmt.Errorf("names %d middlewares at once: %s; write each as an element of its own", len(fields), strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		for use.name, use.settings = range fields {
		}
	} else {
		var long struct {
			Name    string          `json:"name"`
			Config  json.RawMessage `json:"config"`
			Enabled *bool           `json:"enabled"`
		}
		d := json.NewDecoder(bytes.NewReader(item))
		d.DisallowUnknownFields()
		if err := d.Decode(&long); err != nil {
			return use, fmt.Errorf("%w; want name, config and enabled", err)
		}
		use.name, use.settings = long.Name, long.Config
		use.enabled = long.Enabled == nil || *long.Enabled
	}
	if string(use.settings) == "null" {
		use.settings = nil
	}
	return use, nil
}

// middlewareKind returns the kind of that name among those given and those
// that there are anyway.
func middlewareKind(more []*guard.MiddlewareKind, name string) (*guard.MiddlewareKind, []string) {
	var names []string
	for _, k := range append(slices.Clone(more), guard.MiddlewareKinds()...) {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return nil, names
}

// middlewares builds what the app declares: that of the app first, then that
// of its modules and servers. None is left out: an app whose middleware cannot
// be built does not open.
func (a *App) middlewares() ([]guard.Middleware, error) {
	var out []guard.Middleware
	a.changes = new(guard.Changes)
	add := func(raw json.RawMessage, module, path string) error {
		uses, err := readMiddleware(raw)
		if err != nil {
			return fmt.Errorf("%s%w", path, err)
		}
		for i, use := range uses {
			if !use.enabled {
				continue
			}
			m, err := a.middleware(use, module)
			if err != nil {
				return fmt.Errorf("%s[%d]: %w", path, i, err)
			}
			out = append(out, m)
		}
		return nil
	}
	if err := add(a.Config.Runtime.Middleware, "", "runtime.middleware"); err != nil {
		return nil, err
	}
	modules := a.Config.Tools.Modules
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if err := add(modules[name].Middleware, name, "tools.modules."+name+".middleware"); err != nil {
			return nil, err
		}
	}
	servers := a.Config.Tools.MCPServers
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if err := add(servers[name].Middleware, "mcp."+name, "tools.mcp_servers."+name+".middleware"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (a *App) middleware(use middlewareUse, module string) (guard.Middleware, error) {
	kind, names := middlewareKind(a.opts.Middleware, use.name)
	if kind == nil {
		return guard.Middleware{}, fmt.Errorf("there is no middleware %q; there are %s", use.name, strings.Join(names, ", "))
	}
	settings, err := expandJSON(use.settings, a.opts.Secret)
	if err != nil {
		return guard.Middleware{}, fmt.Errorf("middleware %s: %w", use.name, err)
	}
	return kind.Build(settings, guard.MiddlewareHost{Module: module, Log: a.log.With("middleware", use.name),
		Redactor: a.redactor, Folder: a.State, Changes: a.changes})
}

// checkMiddleware checks a list of middleware in a file.
func (l *loader) checkMiddleware(list *node, path string) {
	for i, n := range list.list() {
		p := fmt.Sprintf("%s[%d]", path, i)
		if n.kind != isString && n.kind != isMap || n.empty() {
			continue // the form says so
		}
		use, err := readMiddlewareUse(n.json())
		if err != nil {
			l.fail(n.at, p, err.Error(), "")
			continue
		}
		kind, names := middlewareKind(l.o.Middleware, use.name)
		if kind == nil {
			l.fail(n.at, p, fmt.Sprintf("there is no middleware %q", use.name), cmp.Or(nearest(use.name, names), "there are "+strings.Join(names, ", ")))
			continue
		}
		if lateRef.Match(use.settings) {
			continue // judged when it is filled in
		}
		if len(use.settings) > 0 {
			if problems := kind.Settings.Validate(use.settings); len(problems) > 0 {
				for _, problem := range problems {
					l.fail(n.at, p, kind.Name+": "+strings.TrimSpace(problem.Pointer+" "+inYAML.Replace(problem.Message)), "")
				}
				continue
			}
		}
		if _, err := kind.Build(use.settings, guard.MiddlewareHost{}); err != nil {
			l.fail(n.at, p, strings.TrimPrefix(err.Error(), "middleware "), "")
		}
	}
}

// checkLimits checks the rate limits in a file.
func (l *loader) checkLimits(limits *node, path string) {
	for _, f := range limits.members() {
		p := joinPath(path, f.key)
		if f.key != "*" && len(l.catalogue.resolve(f.key)) == 0 && !l.catalogue.matches(f.key) {
			l.fail(f.at, p, fmt.Sprintf("%q names no module and no tool", f.key), nearest(f.key, append(l.catalogue.names(), l.catalogue.toolNames()...)))
		}
	}
}
