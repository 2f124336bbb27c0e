package app

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Templates in an app file's texts:
//
//	{{name}}            a variable of dev.variables, or of LoadOptions.Vars, which win
//	{{env.X}}           a variable of the environment; it is an error if it is not set
//	{{env.X ?? text}}   the same, with a text for where it is not set; the text may be quoted
//	{{app.name}}        a text of the app block (app_id, name, version, …)
//	{{workdir}}         the root folder
//	{{secret.X}}        a secret; it stays a reference until it is needed
//	{{event.…}} {{caller.…}}  stay as they are, to be filled when there is an event, a caller
//	{{"{{"}}            the quoted text itself: how to write {{ where no template is meant
//
// A value is always a text, is never read as YAML, and is never filled again.

// A template is one {{…}}.
type template struct {
	name     string // env.X, a variable's name, …; "" for a quoted text
	text     string // the quoted text, or the text after ??
	fallback bool   // there is a ??
	source   string // as it was written
}

var (
	templateName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*`)
	runtimeName  = regexp.MustCompile(`^(?:event|caller)\.[^{}]*[^{}\s]`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	secretRef    = regexp.MustCompile(`\{\{\s*secret\.([A-Za-z0-9_][A-Za-z0-9_./-]*)\s*\}\}`)
	// lateRef begins whatever is filled later, well formed or not.
	lateRef = regexp.MustCompile(`\{\{\s*(?:secret|event|caller)\.`)
)

// IsSecretName reports whether {{secret.NAME}} can refer to a secret of that name.
func IsSecretName(name string) bool {
	return secretRef.FindString("{{secret."+name+"}}") == "{{secret."+name+"}}"
}

// maxFilled bounds what templates may add to a file, in bytes.
const maxFilled = 4 * maxFile

// reserved are names that no variable may have.
var reserved = []string{"app", "caller", "env", "event", "secret", "workdir"}

// parseTemplate reads the template with which s begins.
func parseTemplate(s string) (t template, err error) {
	rest := strings.TrimLeft(s[2:], " \t\r\n")
	switch {
	case rest != "" && strings.ContainsRune(`"'`, rune(rest[0])):
		t.text, rest, err = quoted(rest)
	case runtimeName.MatchString(rest):
		t.name = runtimeName.FindString(rest)
		rest = rest[len(t.name):]
	default:
		t.name = templateName.FindString(rest)
		if t.name == "" {
			err = errors.New("no name follows {{")
			break
		}
		if strings.HasSuffix(t.name, ".") {
			err = fmt.Errorf("no name follows %s", t.name)
			break
		}
		rest = strings.TrimLeft(rest[len(t.name):], " \t\r\n")
		if after, ok := strings.CutPrefix(rest, "??"); ok {
			t.fallback = true
			t.text, rest, err = fallbackText(strings.TrimLeft(after, " \t\r\n"))
		}
	}
	if err != nil {
		return t, err
	}
	rest, closed := strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), "}}")
	if !closed {
		return t, errors.New("it is not closed by }} after its name")
	}
	t.source = s[:len(s)-len(rest)]
	return t, nil
}

func quoted(s string) (text, rest string, err error) {
	end := strings.IndexByte(s[1:], s[0])
	if end < 0 {
		return "", "", errors.New("its quotation is not closed")
	}
	return s[1 : 1+end], s[2+end:], nil
}

func fallbackText(s string) (text, rest string, err error) {
	if s != "" && strings.ContainsRune(`"'`, rune(s[0])) {
		return quoted(s)
	}
	end := strings.Index(s, "}}")
	if end < 0 {
		return "", "", errors.New("it is not closed by }}")
	}
	return strings.TrimSpace(s[:end]), s[end:], nil
}

// A text that was filled, and where in it the references begin that stay.
type filledText struct {
	text string
	late []int
}

// A filler fills the templates of a tree.
type filler struct {
	root     *node
	o        LoadOptions
	file     string // the app file, to whose folder runtime.workdir is relative
	known    map[string]filledText
	filling  []string // the names whose values are being worked out
	bytes    int      // that were filled in so far
	problems Problems
	unset    Problems // see fillTree
}

// fillTree fills every text of the tree in place. Variables of the environment
// that are not set are told apart where nothing but MCP servers lack them: those
// texts stay as they were written. A variable of dev.variables lacks nothing
// itself: what uses it does.
func fillTree(root *node, file string, o LoadOptions) (problems, unset Problems) {
	f := &filler{root: root, o: o, file: file, known: map[string]filledText{}}
	all, order := survey(root)
	filled := make(map[*node]string, len(order))
	for _, pointer := range order {
		if len(f.problems) >= maxProblems {
			break
		}
		s := all[pointer]
		for _, field := range s.node.fields {
			if strings.Contains(field.key, "{{") {
				f.fail(field.at, joinPath(s.path, field.key), Problem{Message: "a key cannot hold a template", Suggestion: "write it out; only values are filled"})
			}
		}
		if s.node.kind != isString {
			continue
		}
		text, err := f.fill(s.node.text, s.segs)
		if err == nil {
			err = secretsMayStand(text.text, s.segs)
		}
		if lone := (unsetVariable{}); errors.As(err, &lone) {
			if underAny(s.segs, serverPlaces) {
				f.unset = append(f.unset, f.at(s.node.at, s.path, lone.Problem))
				continue
			}
			if under(s.segs, variablePlace) {
				continue // what uses it is told of
			}
		}
		if err != nil {
			f.fail(s.node.at, s.path, err)
			continue
		}
		filled[s.node] = text.text
	}
	for n, text := range filled { // last, since values of one are asked for by others
		if text != n.text {
			n.raw, n.text = n.text, text
		}
	}
	return f.problems, f.unset
}

func (f *filler) fail(at place, path string, err error) {
	var p Problem
	errors.As(err, &p)
	f.problems = append(f.problems, f.at(at, path, p))
}

func (f *filler) at(at place, path string, p Problem) Problem {
	p.File, p.Line, p.Column, p.Path = at.file, at.line, at.col, path
	return p
}

// An unsetVariable is the problem of a variable of the environment that is not set.
type unsetVariable struct {
	Problem
	by bool // the message says which of dev.variables it is of
}

// Unwrap returns the problem.
func (u unsetVariable) Unwrap() error { return u.Problem }

// variablePlace is where variables are declared.
const variablePlace = "dev.variables.*"

// serverPlaces are the places in which what is missing takes down one MCP
// server, and nothing else.
var serverPlaces = []string{
	"tools.mcp_servers.*.command", "tools.mcp_servers.*.args.[]", "tools.mcp_servers.*.cwd", "tools.mcp_servers.*.url",
	"tools.mcp_servers.*.env.*", "tools.mcp_servers.*.headers.*",
	"tools.mcp_servers.*.oauth.client_id", "tools.mcp_servers.*.oauth.client_secret", "tools.mcp_servers.*.oauth.issuer",
	"tools.mcp_servers.*.oauth.private_key", "tools.mcp_servers.*.oauth.key_id", "tools.mcp_servers.*.oauth.assertion_file",
	"tools.mcp_servers.*.oauth.client_metadata_url", "tools.mcp_servers.*.oauth.identity.*",
}

// clientRefs are the places in which references such as ${X} are understood,
// as the files of other MCP clients have them.
var clientRefs = []string{
	"tools.mcp_servers.*.command", "tools.mcp_servers.*.args.[]", "tools.mcp_servers.*.cwd",
	"tools.mcp_servers.*.url", "tools.mcp_servers.*.env.*", "tools.mcp_servers.*.headers.*",
}

// secretPlaces are the places in which secrets are filled in when they are needed.
var secretPlaces = []string{
	"tools.modules.*.config.**", "tools.modules.*.constraints.**", "tools.modules.*.setup.[].params.**",
	"tools.mcp_servers.*.env.*", "tools.mcp_servers.*.headers.*", "tools.mcp_servers.*.args.[]", "tools.mcp_servers.*.url",
	"tools.mcp_servers.*.oauth.client_secret", "tools.mcp_servers.*.oauth.private_key", "tools.mcp_servers.*.oauth.identity.client_secret",
	"tools.search.embeddings.api_key",
	"agents.[].brain.**",
	variablePlace, // and from there where the variable is used
}

func underAny(segs []string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return under(segs, p) })
}

func secretsMayStand(text string, segs []string) error {
	if ref := secretRef.FindString(text); ref != "" && !underAny(segs, secretPlaces) {
		return Problem{Message: ref + " cannot stand here: secrets are filled into the config, constraints and setup of modules, the args, env, url and headers of mcp_servers, the secrets and keys of their oauth, tools.search.embeddings.api_key, and brains only"}
	}
	return nil
}

// fill returns s with its templates filled. References that are filled later
// stay; the rest of the text must not read as one.
func (f *filler) fill(s string, segs []string) (filledText, error) {
	var b strings.Builder
	var out filledText
	refs := underAny(segs, clientRefs)
	for {
		i := strings.Index(s, "{{")
		if j := strings.Index(s, "${"); refs && j >= 0 && (i < 0 || j <= i) {
			text, rest, err := f.clientRef(s[j:])
			if err != nil {
				return out, err
			}
			b.WriteString(s[:j] + text)
			s = rest
			continue
		}
		if i < 0 {
			break
		}
		t, err := parseTemplate(s[i:])
		if err != nil {
			return out, Problem{Message: fmt.Sprintf("%s is not a template: %v", excerpt(s[i:]), err), Suggestion: `{{ itself is written {{"{{"}}`}
		}
		b.WriteString(s[:i])
		v, err := f.value(t)
		if err != nil {
			return out, err
		}
		for _, at := range v.late {
			out.late = append(out.late, b.Len()+at)
		}
		b.WriteString(v.text)
		if f.bytes += len(v.text); f.bytes > maxFilled {
			return out, Problem{Message: fmt.Sprintf("templates fill in more than %d bytes", maxFilled)}
		}
		s = s[i+len(t.source):]
	}
	b.WriteString(s)
	out.text = b.String()
	return out, out.check()
}

// check returns an error unless the references in the text are those that are
// known to stay: none may come about by filling.
func (t filledText) check() error {
	for _, m := range lateRef.FindAllStringIndex(t.text, -1) {
		if !slices.Contains(t.late, m[0]) {
			return Problem{Message: "a value that was filled in would make a template of " + excerpt(t.text[m[0]:]) + "; values are not filled again"}
		}
	}
	return nil
}

// excerpt quotes the beginning of a text.
func excerpt(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 24 {
		s = string(r[:24]) + "…"
	}
	return "\"" + s + "\""
}

// value returns what a template stands for.
func (f *filler) value(t template) (filledText, error) {
	space, key, dotted := strings.Cut(t.name, ".")
	if t.fallback && space != "env" && dotted {
		return filledText{}, Problem{Message: t.source + ": ?? is understood for env and variables only"}
	}
	switch {
	case t.name == "":
		return filledText{text: t.text}, nil
	case space == "secret" && dotted:
		if !secretRef.MatchString(t.source) {
			return filledText{}, Problem{Message: t.source + " names no secret", Suggestion: "write {{secret.NAME}}"}
		}
		return filledText{t.source, []int{0}}, nil
	case (space == "event" || space == "caller") && dotted:
		return filledText{t.source, []int{0}}, nil
	case space == "env" && dotted:
		return f.env(t, key)
	case space == "app" && dotted:
		return f.once(t, func() (filledText, error) { return f.appText(t, key) })
	case t.name == "workdir":
		return f.once(t, f.workdir)
	case dotted:
		return filledText{}, Problem{Message: t.source + " is not known", Suggestion: didYouMean(space, []string{"env", "secret", "app", "event", "caller"})}
	}
	return f.once(t, func() (filledText, error) { return f.variable(t) })
}

// once works a value out the first time, and refuses one that needs itself.
func (f *filler) once(t template, work func() (filledText, error)) (filledText, error) {
	if v, ok := f.known[t.name]; ok {
		return v, nil
	}
	if slices.Contains(f.filling, t.name) {
		return filledText{}, Problem{Message: fmt.Sprintf("{{%s}} needs its own value: %s", t.name, strings.Join(append(f.filling, t.name), " → "))}
	}
	f.filling = append(f.filling, t.name)
	defer func() { f.filling = f.filling[:len(f.filling)-1] }()
	v, err := work()
	if err == nil && !t.fallback {
		f.known[t.name] = v
	}
	return v, err
}

func (f *filler) env(t template, key string) (filledText, error) {
	if f.o.Env != nil {
		if v, ok := f.o.Env(key); ok {
			return filledText{text: v}, nil
		}
	}
	if t.fallback {
		return filledText{text: t.text}, nil
	}
	return filledText{}, unsetVariable{Problem: Problem{Message: fmt.Sprintf("the environment variable %s is not set", key),
		Suggestion: fmt.Sprintf("set it, or write {{env.%s ?? default}}", key)}}
}

func (f *filler) variable(t template) (filledText, error) {
	if v, ok := f.o.Vars[t.name]; ok {
		return filledText{text: v}, nil
	}
	if n := f.root.get("dev", "variables", t.name); n != nil {
		v, err := f.fill(n.text, []string{"dev", "variables", t.name})
		if u := (unsetVariable{}); errors.As(err, &u) && !u.by {
			u.Message, u.by = fmt.Sprintf("%s, of which dev.variables.%s is made", u.Message, t.name), true
			err = u
		}
		return v, err
	}
	if t.fallback {
		return filledText{text: t.text}, nil
	}
	return filledText{}, Problem{Message: fmt.Sprintf("there is no variable %q", t.name), Suggestion: f.suggest(t.name)}
}

// suggest names the variable that may be meant by one that there is not.
func (f *filler) suggest(name string) string {
	names := slices.Collect(maps.Keys(f.o.Vars))
	for _, field := range f.root.get("dev", "variables").members() {
		names = append(names, field.key)
	}
	slices.Sort(names)
	return cmp.Or(didYouMean(name, slices.Compact(names)), "declare it under dev.variables")
}

func (f *filler) appText(t template, key string) (filledText, error) {
	if key == "id" {
		key = "app_id"
	}
	n := f.root.get("app", key)
	if n == nil || n.kind != isString {
		var names []string
		for _, field := range f.root.get("app").members() {
			if field.value.kind == isString {
				names = append(names, field.key)
			}
		}
		return filledText{}, Problem{Message: t.source + " names no text of the app block", Suggestion: didYouMean(key, names)}
	}
	return f.fill(n.text, []string{"app", key})
}

func (f *filler) workdir() (filledText, error) {
	dir := f.o.Workdir
	if own := f.root.get("runtime", "workdir").str(); own != "" && (dir == "" || dir == ".") {
		v, err := f.fill(own, []string{"runtime", "workdir"})
		if err != nil {
			return v, err
		}
		if dir = v.text; !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(f.file), dir)
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return filledText{}, Problem{Message: "{{workdir}}: " + err.Error()}
	}
	return filledText{text: abs}, nil
}

var clientName = regexp.MustCompile(`^\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-([^{}]*))?\}`)

// clientRef fills the reference ${X}, ${env:X}, ${X:-default} or
// ${workspaceFolder} with which s begins.
func (f *filler) clientRef(s string) (text, rest string, err error) {
	m := clientName.FindStringSubmatch(s)
	if m == nil {
		return "", "", Problem{Message: excerpt(s) + " is not a reference that is understood here", Suggestion: "write ${NAME}, ${NAME:-default}, ${env:NAME}, {{secret.NAME}} or {{workdir}}"}
	}
	rest = s[len(m[0]):]
	if m[0] == "${workspaceFolder}" {
		v, err := f.once(template{name: "workdir"}, f.workdir)
		return v.text, rest, err
	}
	t := template{name: "env." + m[1], text: m[3], fallback: m[2] != ""}
	v, err := f.env(t, m[1])
	var u unsetVariable
	if errors.As(err, &u) {
		u.Suggestion = fmt.Sprintf("set it, or write ${%s:-default}", m[1])
		err = u
	}
	return v.text, rest, err
}

// expandSecrets returns the text with its references {{secret.X}} replaced by
// what secret returns for X. What it returns is not read again. No error names
// a secret's value.
func expandSecrets(text string, secret func(string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		m := secretRef.FindStringSubmatchIndex(text)
		if m == nil {
			b.WriteString(text)
			return b.String(), nil
		}
		name := text[m[2]:m[3]]
		if secret == nil {
			return "", fmt.Errorf("secret %s: there is no source of secrets", name)
		}
		v, err := secret(name)
		if err != nil {
			return "", fmt.Errorf("secret %s: %w", name, err)
		}
		b.WriteString(text[:m[0]] + v)
		text = text[m[1]:]
	}
}
