package app

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/helve-ai/helve/egress"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/llm/provider"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// check checks what no schema says: that names name something, and what goes together.
func (l *loader) check(root *node) {
	l.checkAgents(root)
	l.checkRuntime(root)
	l.checkModules(root)
	l.checkServers(root)
	l.checkCapabilities(root)
	l.checkLexicon(root)
	l.checkModel(root)
	l.checkSkills(root)
	l.checkOneShot(root)
	l.checkApps(root)
	l.checkRest(root)
}

func (l *loader) checkAgents(root *node) {
	var ids []string
	seen := map[string]place{}
	for i, a := range root.get("agents").list() {
		id := a.get("id")
		if id.str() == "" {
			continue
		}
		if at, twice := seen[id.text]; twice {
			l.fail(id.at, fmt.Sprintf("agents[%d].id", i), fmt.Sprintf("%q is already the agent at %s", id.text, at), "give each agent an id of its own")
		}
		seen[id.text] = id.at
		ids = append(ids, id.text)
	}
	if n := root.get("runtime", "entry_agent"); n != nil {
		l.checkAgent(n, "runtime.entry_agent", ids)
	}
	for i, a := range root.get("agents").list() {
		path := fmt.Sprintf("agents[%d]", i)
		for j, to := range a.get("delegate_to").list() {
			l.checkAgent(to, fmt.Sprintf("%s.delegate_to[%d]", path, j), ids)
		}
		for j, use := range a.get("modules").list() {
			l.checkUse(use, fmt.Sprintf("%s.modules[%d]", path, j))
		}
		for j, g := range a.get("profile").list() {
			l.checkGroup(g, fmt.Sprintf("%s.profile[%d]", path, j))
		}
		l.checkBrain(a.field("brain"), path+".brain")
	}
}

func (l *loader) checkAgent(n *node, path string, ids []string) {
	switch {
	case n.kind != isString || slices.Contains(ids, n.text):
	case len(ids) == 0:
		l.fail(n.at, path, fmt.Sprintf("names the agent %q, and there are no agents", n.text), "declare it under agents")
	default:
		l.fail(n.at, path, fmt.Sprintf("no agent has the id %q", n.text), didYouMean(n.text, ids))
	}
}

// checkUse checks what an agent may use: a module, or a module and its actions.
func (l *loader) checkUse(use *node, path string) {
	if use.kind == isString {
		l.checkModule(use.at, path, use.text)
	}
	for _, f := range use.fields {
		if l.checkModule(f.at, path, f.key) {
			l.checkActions(f.value, joinPath(path, f.key), f.key)
		}
	}
}

func (l *loader) checkGroup(n *node, path string) {
	groups := make([]string, 0, 7)
	for _, g := range tool.Groups() {
		groups = append(groups, string(g))
	}
	if n.kind != isString || slices.Contains(groups, n.text) {
		return
	}
	if name, change := strings.CutPrefix(n.text, "+"); change || strings.HasPrefix(n.text, "-") {
		name = strings.TrimPrefix(name, "-")
		if !l.catalogue.covered(name) {
			l.fail(n.at, path, fmt.Sprintf("no tool is named %q", name), nearest(name, l.catalogue.toolNames()))
		}
		return
	}
	l.fail(n.at, path, fmt.Sprintf("%q is no group of tools", n.text), didYouMean(n.text, groups))
}

func (l *loader) checkBrain(f *field, path string) {
	if f == nil || f.value.kind != isMap {
		return
	}
	b := f.value
	script := b.get("backend").str() == "script"
	if id := b.field("provider_id"); id != nil && !l.broken[path+".provider_id"] {
		l.fail(id.at, path+".provider_id", fmt.Sprintf("names the provider %q as one that is declared elsewhere, which is not supported by this version", id.value.text), "write provider and model, and base_url and api_key under config")
	} else if !script {
		switch {
		case b.get("model") == nil:
			l.fail(f.at, path, "names no model", "give provider and model")
		case b.get("provider") == nil && b.get("backend") == nil:
			l.fail(f.at, path, "names no provider", "give provider and model")
		}
	}
	known := provider.Keys(b.get("provider").str(), b.get("backend").str())
	for _, c := range b.get("config").members() {
		if !slices.Contains(known, c.key) {
			l.fail(c.at, joinPath(path+".config", c.key), fmt.Sprintf("unknown key %q", c.key), didYouMean(c.key, known))
		}
	}
	l.checkBrain(b.field("fallback"), path+".fallback")
}

func (l *loader) checkRuntime(root *node) {
	r := root.get("runtime")
	for i, n := range r.get("direct_modules").list() {
		if n.kind == isString {
			l.checkModule(n.at, fmt.Sprintf("runtime.direct_modules[%d]", i), n.text)
		}
	}
	l.checkMiddleware(r.get("middleware"), "runtime.middleware")
	if f := r.get("budget").field("dollars"); f != nil && f.value.text != "0" {
		l.checkPrices(root, f)
	}
	for i, n := range r.get("long_calls", "at_once").list() {
		l.checkToolPattern(n, fmt.Sprintf("runtime.long_calls.at_once[%d]", i))
	}
	if f := r.field("workdir_mode"); f != nil && f.value.str() == "fixed" && r.get("workdir") == nil {
		l.fail(f.value.at, "runtime.workdir_mode", "is fixed, and no workdir is named", "add runtime.workdir")
	}
}

// checkPrices holds brains to a budget of money: what one without a price costs
// would not be counted, and nothing would be bounded.
func (l *loader) checkPrices(root *node, dollars *field) {
	for i, a := range root.get("agents").list() {
		path := fmt.Sprintf("agents[%d].brain", i)
		for b := a.get("brain"); b != nil; b, path = b.get("fallback"), path+".fallback" {
			p, known := provider.Named(b.get("provider").str())
			free := known && p.KeyEnv == "" || b.get("backend").str() == "script"
			if !free && b.get("config", "price") == nil {
				l.fail(dollars.value.at, "runtime.budget.dollars", "cannot be held to: "+path+" has no price", "add price: {input: 3, output: 15} to its config, dollars a million tokens; zeros if it costs nothing")
			}
		}
	}
}

// checkModule reports a name that stands for no module.
func (l *loader) checkModule(at place, path, name string) bool {
	c := l.catalogue
	switch {
	case len(c.resolve(name)) > 0:
		return true
	case moduleAliases[name] != nil:
		l.fail(at, path, fmt.Sprintf("%s stands for the module %s, which this version does not have", name, strings.Join(moduleAliases[name], ", ")), "there is "+strings.Join(c.modules, ", "))
	case strings.HasPrefix(name, "mcp."):
		l.fail(at, path, fmt.Sprintf("no server named %q is declared under tools.mcp_servers", name[4:]), didYouMean(name[4:], c.servers))
	default:
		l.fail(at, path, fmt.Sprintf("there is no module %q in this version", name), didYouMean(name, c.names()))
	}
	return false
}

// checkActions reports names in a list that are no actions of the module.
func (l *loader) checkActions(list *node, path, moduleName string) {
	modules := l.catalogue.resolve(moduleName)
	for i, n := range list.list() {
		if n.kind == isString {
			l.checkAction(n.at, fmt.Sprintf("%s[%d]", path, i), moduleName, modules, n.text)
		}
	}
}

func (l *loader) checkAction(at place, path, moduleName string, modules []string, name string) {
	names, known := l.catalogue.actions(modules)
	if known && !slices.ContainsFunc(modules, func(m string) bool { return l.catalogue.action(m, name) != "" }) {
		l.fail(at, path, fmt.Sprintf("%s has no action %q", moduleName, name), didYouMean(name, names))
	}
}

// unknownModule reports a module that is configured and does not exist.
func (l *loader) unknownModule(s *spot) {
	name, there := s.segs[len(s.segs)-1], "there is "+strings.Join(l.catalogue.modules, ", ")
	message := fmt.Sprintf("there is no module %q in this version", name)
	switch near := nearest(name, l.catalogue.modules); {
	case strings.HasPrefix(name, "mcp."):
		message, there = "upstream servers are declared under tools.mcp_servers", "move it there"
	case near != "":
		there = near + " T" + there[1:]
	}
	l.fail(s.at, s.path, message, there)
}

func (l *loader) checkModules(root *node) {
	for _, f := range root.get("tools", "modules").members() {
		path := joinPath("tools.modules", f.key)
		modules := l.catalogue.resolve(f.key)
		aliases, isAlias := moduleAliases[f.key]
		if isAlias {
			if !l.checkModule(f.at, path, f.key) {
				continue
			}
			l.checkAlias(f, path, aliases, root)
		}
		l.checkMiddleware(f.value.get("middleware"), path+".middleware")
		if len(modules) == 0 {
			continue
		}
		l.checkCosted(f.value.get("overrides"), path+".overrides", f.key, modules)
		l.checkActions(f.value.get("constraints", "allowed_actions"), path+".constraints.allowed_actions", f.key)
		l.checkActions(f.value.get("constraints", "blocked_actions"), path+".constraints.blocked_actions", f.key)
		for i, step := range f.value.get("setup").list() {
			if a := step.get("action"); a.str() != "" {
				l.checkStep(a, fmt.Sprintf("%s.setup[%d].action", path, i), f.key, modules)
			}
		}
		if !isAlias {
			l.checkConfig(f, path)
		}
	}
}

// checkStep checks the action of a setup step: one of the module's, or any
// tool by its full name.
func (l *loader) checkStep(a *node, path, moduleName string, modules []string) {
	if slices.Contains(l.catalogue.toolNames(), a.text) {
		return
	}
	if server, _, ok := strings.Cut(strings.TrimPrefix(a.text, "mcp."), "."); ok && slices.Contains(l.catalogue.servers, server) {
		return
	}
	if strings.Contains(a.text, ".") {
		l.fail(a.at, path, fmt.Sprintf("there is no tool %q", a.text), nearest(a.text, l.catalogue.toolNames()))
		return
	}
	l.checkAction(a.at, path, moduleName, modules, a.text)
}

// checkAlias checks the block of a name that stands for several modules.
func (l *loader) checkAlias(f field, path string, aliases []string, root *node) {
	for _, key := range []string{"config", "setup"} {
		if k := f.value.field(key); k != nil && !k.value.empty() {
			l.fail(k.at, joinPath(path, key), fmt.Sprintf("%s stands for %s, which are set up each on its own", f.key, strings.Join(aliases, ", ")), "write it under the module that is meant")
		}
	}
	for _, m := range l.catalogue.resolve(f.key) {
		if other := root.get("tools", "modules").field(m); other != nil {
			l.fail(other.at, joinPath("tools.modules", m), fmt.Sprintf("is configured already as a part of %s at %s", f.key, f.at), "keep one of the two")
		}
	}
}

// checkConfig lets a module judge its configuration, where it can be judged:
// it has the right form, and no secrets to be filled in.
func (l *loader) checkConfig(f field, path string) {
	config := f.value.get("config")
	if config == nil || lateRef.Match(config.json()) || slices.ContainsFunc(l.problems, func(p Problem) bool { return strings.HasPrefix(p.Path, path+".config") }) {
		return
	}
	for _, m := range l.o.Modules {
		if m.Name != f.key {
			continue
		}
		if _, err := describe(m, config.json()); err != nil {
			l.fail(f.value.field("config").at, path+".config", strings.TrimPrefix(err.Error(), "module "+m.Name+": "), "")
		}
	}
}

func (l *loader) checkServers(root *node) {
	for _, f := range root.get("tools", "mcp_servers").members() {
		path, s := joinPath("tools.mcp_servers", f.key), f.value
		if !serverName.MatchString(f.key) {
			l.fail(f.at, path, fmt.Sprintf("%q cannot name a server", f.key), "use letters, digits, - and single _, and no dots")
		}
		if s.kind != isMap {
			continue
		}
		byCommand, byURL := s.field("command"), s.field("url")
		switch {
		case byCommand != nil && byURL != nil:
			l.fail(byURL.at, path+".url", "a server has a command or a url, and this one has both", "remove one of the two")
		case byCommand == nil && byURL == nil && l.told(path):
		case byCommand == nil && byURL == nil:
			l.fail(f.at, path, "a server needs a command or a url, and this one has neither", "add command: to start it, or url: to reach it")
		case byCommand != nil:
			l.onlyFor(s, path, "url", "headers", "oauth")
			if byCommand.value.kind == isString && strings.TrimSpace(byCommand.value.text) == "" {
				l.fail(byCommand.value.at, path+".command", "is empty", "name the program that is the server")
			}
		default:
			l.onlyFor(s, path, "command", "args", "env", "cwd")
			l.checkURL(byURL.value, path+".url")
			l.checkOAuth(s, path+".oauth")
		}
		l.checkOverrides(s.get("overrides"), path+".overrides")
		l.checkMiddleware(s.get("middleware"), path+".middleware")
		l.checkCosts(s.get("overrides"), path+".overrides")
	}
}

// told reports whether a problem with one of a map's keys was found already,
// which may be why another is missing.
func (l *loader) told(path string) bool {
	return slices.ContainsFunc(l.problems, func(p Problem) bool { return parentPath(p.Path) == path })
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]|_[A-Za-z0-9-])*$`)

// onlyFor reports keys that belong to the other kind of server.
func (l *loader) onlyFor(s *node, path, kind string, keys ...string) {
	for _, key := range keys {
		if f := s.field(key); f != nil {
			l.fail(f.at, joinPath(path, key), fmt.Sprintf("%s belongs to servers with a %s", key, kind), "remove it")
		}
	}
}

// checkOAuth reports keys of oauth that need others.
func (l *loader) checkOAuth(s *node, path string) {
	o := s.get("oauth")
	if o == nil || o.kind != isMap {
		return
	}
	need := func(key, other string) {
		if f := o.field(key); f != nil && o.field(other) == nil {
			l.fail(f.at, joinPath(path, key), key+" needs "+other, "add "+other+", or remove "+key)
		}
	}
	need("client_secret", "client_id")
	need("issuer", "client_id")
	need("key_id", "private_key")
	if f := o.field("private_key"); f != nil {
		switch {
		case o.field("client_secret") != nil:
			l.fail(f.at, joinPath(path, "private_key"), "a client proves itself by a secret or by a key, and this one has both", "remove private_key or client_secret")
		case o.field("client_id") == nil && o.field("client_metadata_url") == nil:
			l.fail(f.at, joinPath(path, "private_key"), "private_key needs client_id or client_metadata_url", "add the client to which the key belongs")
		}
	}
	l.checkGrant(o, path)
}

// checkGrant reports keys of oauth that the grant lacks, or has no use for.
func (l *loader) checkGrant(o *node, path string) {
	grant, at := "authorization_code", o.at
	if f := o.field("grant"); f != nil {
		grant, at = f.value.str(), f.at
	}
	lacks := func(why string, keys ...string) {
		if !slices.ContainsFunc(keys, func(k string) bool { return o.field(k) != nil }) {
			l.fail(at, joinPath(path, "grant"), why+" needs "+strings.Join(keys, " or "), "add "+strings.Join(keys, " or "))
		}
	}
	switch grant {
	case "client_credentials":
		lacks("a client that signs in itself", "client_id")
		lacks("a client that signs in itself", "client_secret", "private_key")
	case "jwt_bearer":
		lacks("a workload that signs in itself", "assertion_file")
	case "enterprise_managed":
		lacks("signing in at an identity provider", "identity")
		lacks("signing in at an identity provider", "client_id")
		if f := o.field("identity"); f != nil {
			if issuer := f.value.get("issuer"); issuer != nil {
				l.checkURL(issuer, joinPath(path, "identity.issuer"))
			}
		}
	}
	for _, own := range [][2]string{{"assertion_file", "jwt_bearer"}, {"identity", "enterprise_managed"}} {
		if f := o.field(own[0]); f != nil && grant != own[1] {
			l.fail(f.at, joinPath(path, own[0]), own[0]+" belongs to grant: "+own[1], "write grant: "+own[1]+", or remove "+own[0])
		}
	}
}

func (l *loader) checkURL(n *node, path string) {
	if n.kind != isString {
		return
	}
	if ref := secretRef.FindStringIndex(n.text); ref != nil && ref[0] == 0 {
		return // it is checked when it is filled in
	}
	u, err := url.Parse(secretRef.ReplaceAllString(n.text, "secret"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		l.fail(n.at, path, "is not an absolute http or https URL", "write for example https://mcp.example.com/mcp")
	}
}

func (l *loader) checkOverrides(n *node, path string) {
	for _, o := range n.members() {
		for _, r := range o.value.get("roles").members() {
			if r.value.kind == isString && !schema.Role(r.value.text).Known() {
				l.fail(r.value.at, joinPath(joinPath(path, o.key)+".roles", r.key), fmt.Sprintf("%q is no role of an argument", r.value.text), didYouMean(r.value.text, roles))
			}
		}
	}
}

var roles = []string{string(schema.PathRead), string(schema.PathWrite), string(schema.PathDelete),
	string(schema.URL), string(schema.Command), string(schema.Secret), string(schema.Artifact)}

func (l *loader) checkCapabilities(root *node) {
	caps, path := root.get("tools", "capabilities"), "tools.capabilities"
	for _, key := range []string{"grant", "approve", "deny", "hidden"} {
		for i, r := range caps.get(key).list() {
			l.checkRule(r, fmt.Sprintf("%s.%s[%d]", path, key, i))
		}
	}
	for i, n := range caps.get("hidden_modules").list() {
		if n.kind == isString {
			l.checkModule(n.at, fmt.Sprintf("%s.hidden_modules[%d]", path, i), n.text)
		}
	}
	l.checkLimits(caps.get("rate_limits"), path+".rate_limits")
}

func (l *loader) checkRule(r *node, path string) {
	module, pattern := r.get("module"), r.get("pattern")
	switch {
	case r.kind == isString:
		l.checkPattern(r, path)
	case r.kind != isMap:
	case module != nil && pattern != nil:
		l.fail(pattern.at, path, "a rule has a module or a pattern, and this one has both", "write two rules")
	case pattern != nil:
		if f := r.field("actions"); f != nil {
			l.fail(f.at, path+".actions", "a rule with a pattern has no actions", "name the action in the pattern")
		}
		l.checkPattern(pattern, path+".pattern")
	case module == nil && l.told(path):
	case module == nil:
		l.fail(r.at, path, "a rule needs a module or a pattern, and this one has neither", `write {module: filesystem, actions: [read]}, or a pattern such as filesystem.write(path: "docs/**")`)
	case module.kind == isString && strings.Contains(module.text, "*"):
		if !slices.ContainsFunc(l.catalogue.names(), func(m string) bool { return matchName(module.text, m) }) && !strings.HasPrefix(module.text, "mcp") {
			l.fail(module.at, path+".module", fmt.Sprintf("no module matches %q", module.text), "")
		}
	case module.kind == isString && l.checkModule(module.at, path+".module", module.text):
		if module.text == "mcp" && len(l.catalogue.servers) > 0 {
			return // the rule is about the servers' tools as well
		}
		l.checkActions(r.get("actions"), path+".actions", module.text)
	}
}

// checkPattern checks the text form of a rule.
func (l *loader) checkPattern(n *node, path string) {
	if n.kind != isString || n.text == "" {
		return
	}
	r, err := guard.ParseRule(n.text)
	if err != nil {
		l.fail(n.at, path, err.Error(), "")
		return
	}
	if !l.catalogue.matches(r.Pattern) {
		suggestion := nearest(cmp.Or(l.catalogue.byAlias(r.Pattern), r.Pattern), l.catalogue.toolNames())
		switch dotted := strings.ReplaceAll(r.Pattern, "__", "."); { // as clients are told it
		case len(l.catalogue.resolve(r.Pattern)) > 0:
			suggestion = fmt.Sprintf("did you mean %q?", r.Pattern+".*")
		case dotted != r.Pattern && l.catalogue.matches(dotted):
			suggestion = fmt.Sprintf("did you mean %q?", dotted)
		}
		l.fail(n.at, path, fmt.Sprintf("no tool matches %q", r.Pattern), suggestion)
		return
	}
	for _, c := range r.Args {
		l.checkCondition(n, path, r.Pattern, c.Arg)
	}
}

// checkToolPattern checks a pattern that names tools only.
func (l *loader) checkToolPattern(n *node, path string) {
	if n.kind == isString && strings.Contains(n.text, "(") {
		l.fail(n.at, path, "names tools only, and has a condition on arguments", "write the name alone")
		return
	}
	l.checkPattern(n, path)
}

// checkCondition reports a condition on an argument that no tool has that the
// pattern matches: it would never hold.
func (l *loader) checkCondition(n *node, path, pattern, arg string) {
	var args []string
	for _, tools := range l.catalogue.tools {
		for _, t := range tools {
			if !matchName(pattern, t.Name) || t.Input == nil {
				continue
			}
			for _, p := range t.Input.Parameters() {
				first, _, _ := strings.Cut(string(p.Role), ".")
				if arg == p.Name || arg == string(p.Role) || arg == first {
					return
				}
				args = append(args, p.Name)
			}
			for _, r := range t.Input.Roles() {
				first, _, _ := strings.Cut(string(r), ".")
				if arg == string(r) || arg == first {
					return
				}
			}
		}
	}
	if len(args) > 0 {
		slices.Sort(args)
		l.fail(n.at, path, fmt.Sprintf("no tool that matches %q has an argument %q", pattern, arg), didYouMean(arg, slices.Compact(args)))
	}
}

func (l *loader) checkRest(root *node) {
	for _, f := range root.get("dev", "variables").members() {
		p := joinPath("dev.variables", f.key)
		switch {
		case slices.Contains(reserved, f.key):
			l.fail(f.at, p, fmt.Sprintf("%q cannot name a variable: templates give it a meaning of their own", f.key), "choose another name")
		case !variableName.MatchString(f.key):
			l.fail(f.at, p, fmt.Sprintf("%q cannot name a variable", f.key), "use letters, digits, _ and -")
		}
	}
	for i, n := range root.get("security", "allow_hosts").list() {
		if n.kind != isString {
			continue
		}
		if err := (egress.Policy{AllowHosts: []string{n.text}}).Validate(); err != nil {
			l.fail(n.at, fmt.Sprintf("security.allow_hosts[%d]", i), err.Error(), "")
		}
	}
}
