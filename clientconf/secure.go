package clientconf

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Secrets says what is a secret, in addition to what this package takes for
// one: names such as OPENAI_KEY, and texts that look random.
type Secrets struct {
	Key   func(name string) bool // a variable, header or flag of this name holds one; nil: none does
	Value func(text string) bool // a text holds one; nil: none does
}

// A Reference is what stands in an app file in place of a value that was not copied.
type Reference struct {
	Name   string `json:"name"`            // of the secret: export HELVE_SECRET_NAME
	Server string `json:"server"`          // its name in the app file
	Place  string `json:"place"`           // such as env.GITHUB_TOKEN or args[2]
	Source string `json:"source"`          // where the value stands in the client's file
	Early  bool   `json:"early,omitempty"` // it must be set before the app is opened
	Asked  bool   `json:"asked,omitempty"` // the client asks for the value: it stands in no file
	// Variable: the client's file itself refers to a variable of the
	// environment, which has this name, without HELVE_SECRET_.
	Variable bool `json:"variable,omitempty"`
	Kept     bool `json:"kept,omitempty"` // its value was put among the secrets that are kept

	value string // in clear; never written
}

// Secure returns the server under a name that app files accept, with
// references in place of secrets and of what the client fills in:
// {{secret.NAME}}, {{env.HELVE_SECRET_NAME}} where app files take no secrets
// (command and cwd), and {{env.NAME}} for a ${NAME} that names none. Texts that only look like templates are quoted.
func (p Secrets) Secure(s Server, name string) (Server, []Reference) {
	g := &guardian{Secrets: p, server: s, name: name}
	out := s
	out.Name = name
	for range 2 { // the second time, what was found to be secret is known everywhere
		g.refs = nil
		out.Command = g.text("command", "", s.Command)
		out.Cwd = g.text("cwd", "", s.Cwd)
		out.URL = g.url(s.URL)
		out.Args = g.args(s.Args)
		out.Env = g.all("env", s.Env)
		out.Headers = g.all("headers", s.Headers)
	}
	return out, slices.DeleteFunc(g.refs, func(r Reference) bool { return !out.mentions(r.written()) })
}

// Value returns what the client's file has in clear; false: it has nothing, or
// what is kept would not be looked for.
func (r Reference) Value() (string, bool) {
	return r.value, r.value != "" && !r.Variable && !r.Asked && !r.Early
}

// written returns the reference as an app file has it.
func (r Reference) written() string {
	switch {
	case r.Variable && r.Early:
		return "{{env." + r.Name + "}}"
	case r.Early:
		return "{{env.HELVE_SECRET_" + r.Name + "}}"
	}
	return "{{secret." + r.Name + "}}"
}

// mentions reports whether one of the server's values holds a text.
func (s Server) mentions(text string) bool {
	return slices.ContainsFunc(s.values(), func(v string) bool { return strings.Contains(v, text) })
}

// A guardian takes the secrets out of one server.
type guardian struct {
	Secrets
	server Server
	name   string
	refs   []Reference
	known  []Reference // with their values
}

var (
	likeKey = regexp.MustCompile(`(?i)(?:pass(?:word|wd|phrase)?|pwd|secret|token|key|creds?|credentials?)s?[_-]?\d*$|(?:^|[_.-])(?:pat|dsn|sas|conn(?:ection)?[_-]?str(?:ing)?)$|password|passwd|secret|api_?-?key|access_?-?token|private_?-?key`)
	plain   = regexp.MustCompile(`(?i)^(?:true|false|yes|no|on|off|none|null)?$`)
	amount  = regexp.MustCompile(`(?i)tokens$|limit$`)
	number  = regexp.MustCompile(`^\d{1,7}$`)
	scheme  = regexp.MustCompile(`^(?i:bearer|basic|token|apikey|digest)[ \t]+`)
	random  = regexp.MustCompile(`[A-Za-z0-9_+=~-]{20,}`)
	// credentials are what a header of authorization holds.
	credentials = regexp.MustCompile(`\b(?i:bearer|basic)[ \t]+([A-Za-z0-9][^\s"'\\$]{5,})`)
	tokens      = regexp.MustCompile(credentials.String() + `|` + random.String())
	uuid        = regexp.MustCompile(`(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	// keyFile is where a secret may be, not what it is.
	keyFile   = regexp.MustCompile(`^(?:~|\.{0,2}|[A-Za-z]:|\$\{[^{}]*\})[/\\][^\s:]*\.(?:json|pem|key|crt|cer|p8|p12|pfx|ya?ml|toml|ini|txt|env)$`)
	word      = regexp.MustCompile(`[A-Za-z0-9]`)
	inAddress = regexp.MustCompile(`(?:://|^@)\S*$`) // behind @: the user part was taken out
)

// isKey reports whether what has this name and text is a credential.
func (g *guardian) isKey(name, text string) bool {
	if plain.MatchString(text) || amount.MatchString(name) && number.MatchString(text) {
		return false
	}
	return likeKey.MatchString(name) || g.Key != nil && g.Key(name)
}

// isSecret reports whether a text is a credential, or holds one.
func (g *guardian) isSecret(text string) bool {
	if g.Value != nil && g.Value(text) || credentials.MatchString(text) {
		return true
	}
	for _, find := range forms {
		if slices.ContainsFunc(find(text), func(m []int) bool { return g.held(text, m) }) {
			return true
		}
	}
	return slices.ContainsFunc(random.FindAllString(text, -1), looksRandom)
}

// looksRandom reports whether a word changes between letters and digits more
// often than names do.
func looksRandom(s string) bool {
	if uuid.MatchString(s) {
		return false
	}
	turns, last := 0, 0
	for _, r := range s {
		class := 0
		switch {
		case r >= '0' && r <= '9':
			class = 1
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			class = 2
		}
		if class != 0 && last != 0 && class != last {
			turns++
		}
		last = class
	}
	return turns >= 4
}

// refer returns the reference for a value.
func (g *guardian) refer(place, key, text string, asked bool) string {
	early := filledEarly(place)
	name := secretName(g.name, key)
	if asked {
		name = identifier(key)
	}
	for i := 2; slices.ContainsFunc(g.known, func(r Reference) bool { return r.Name == name && r.value != text }); i++ {
		name = secretName(g.name, key) + "_" + strconv.Itoa(i)
	}
	for _, r := range g.known {
		if !asked && r.value == text {
			name = r.Name
		}
	}
	r := Reference{Name: name, Server: g.name, Place: place, Source: g.server.Source, Early: early, Asked: asked, value: text}
	if !slices.ContainsFunc(g.known, func(o Reference) bool { return o.Name == name && o.value == text }) {
		g.known = append(g.known, r)
	}
	if !slices.ContainsFunc(g.refs, func(o Reference) bool { return o.Name == name && o.Early == early && !o.Variable }) {
		g.refs = append(g.refs, r)
	}
	return r.written()
}

var notIdentifier = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// identifier makes the name of a variable of the environment.
func identifier(s string) string {
	if s = strings.Trim(notIdentifier.ReplaceAllString(s, "_"), "_"); s == "" {
		return "VALUE"
	}
	return s
}

// secretName names a secret by its server and its key. It depends on nothing
// else, so that the same import gives the same name another day.
func secretName(server, key string) string {
	s, k := strings.ToUpper(identifier(server)), strings.ToUpper(identifier(key))
	if k == s || strings.HasPrefix(k, s+"_") {
		return k
	}
	return s + "_" + k
}

func (g *guardian) all(place string, m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out[key] = g.text(place+"."+key, key, m[key])
	}
	return out
}

// text secures a text that has a key, or none.
func (g *guardian) text(place, key, text string) string {
	path := keyFile.MatchString(text)
	held := key != "" && !path && g.isKey(key, text)
	return g.secure(place, key, text, func(literal string) bool {
		if key == "" || path { // a command, a folder, a file: paths may look random
			return g.Value != nil && g.Value(literal)
		}
		return held || g.isSecret(literal)
	})
}

// hold is text for what is known to be secret.
func (g *guardian) hold(place, key, text string) string {
	return g.secure(place, key, text, func(string) bool { return true })
}

// secure takes those pieces out of a text that are secret.
func (g *guardian) secure(place, key, text string, secret func(literal string) bool) string {
	return g.pieces(place, text, func(literal string) string {
		if literal == "" || !secret(literal) {
			return g.plain(place, literal)
		}
		lead := scheme.FindString(literal)
		body := literal[len(lead):]
		if !word.MatchString(body) || lead == "" && scheme.MatchString(literal+" ") && literal != text {
			return quote(literal) // a scheme before a reference, or what joins two
		}
		name := key
		if name == "" {
			name = place
		}
		return quote(lead) + g.refer(place, name, body, false)
	})
}

// plain quotes a text that is no secret, with references for secrets that were
// found elsewhere in the server.
func (g *guardian) plain(place, text string) string {
	for _, r := range g.known {
		if len(r.value) < 6 || r.Asked {
			continue
		}
		if before, after, found := strings.Cut(text, r.value); found {
			return g.plain(place, before) + g.refer(place, r.Name, r.value, false) + g.plain(place, after)
		}
	}
	return quote(text)
}

var (
	reference = regexp.MustCompile(`\$\{([^{}]*)\}`)
	variable  = regexp.MustCompile(`^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::?-(.*))?$`)
	bare      = regexp.MustCompile(`(^|[\s:=])\$([A-Z_][A-Z0-9_]*)(\s|$)`) // Gemini CLI
)

// pieces replaces the references in a text, and hands what stands between them
// to literal.
func (g *guardian) pieces(place, text string, literal func(string) string) string {
	if strings.HasPrefix(place, "env.") || strings.HasPrefix(place, "headers.") {
		text = bare.ReplaceAllString(text, "${1}$${${2}}${3}")
	}
	var b strings.Builder
	for {
		m := reference.FindStringSubmatchIndex(text)
		if m == nil {
			b.WriteString(literal(text))
			return b.String()
		}
		b.WriteString(shield(literal(text[:m[0]])))
		b.WriteString(g.reference(place, text[m[0]:m[1]], text[m[2]:m[3]]))
		text = text[m[1]:]
	}
}

// reference translates what a client fills in.
func (g *guardian) reference(place, source, inner string) string {
	switch {
	case strings.HasPrefix(inner, "input:"):
		return g.refer(place, inner[len("input:"):], source, true)
	case inner == "workspaceFolder" || inner == "workspaceRoot" || inner == "cwd":
		return "{{workdir}}"
	case inner == "userHome":
		return g.variable(place, "HOME")
	case inner == "pathSeparator" || inner == "/":
		return "/"
	}
	m := variable.FindStringSubmatch(inner)
	switch {
	case isForeign(inner), g.own(m[1], inner):
		return quote(source)
	case m[2] == "" || g.isSecret(m[2]) || g.isKey(m[1], m[2]) || strings.Contains(m[2], `"`):
		return g.variable(place, m[1])
	}
	return "{{env." + m[1] + ` ?? "` + m[2] + `"}}`
}

// isForeign reports whether a reference is none that this package translates:
// to a command or a setting of an editor, or to what is open there.
func isForeign(inner string) bool {
	switch inner {
	case "workspaceFolder", "workspaceRoot", "cwd", "userHome", "pathSeparator", "/":
		return false
	case "workspaceFolderBasename", "file", "fileBasename", "fileBasenameNoExtension", "fileDirname", "fileDirnameBasename", "fileExtname",
		"fileWorkspaceFolder", "relativeFile", "relativeFileDirname", "lineNumber", "selectedText", "execPath", "defaultBuildTask", "extensionInstallFolder":
		return true // VS Code's; variables of the environment are not written so
	}
	return !strings.HasPrefix(inner, "input:") && !variable.MatchString(inner)
}

// own reports whether a variable is one that the server's own env sets, so
// that it is the program which fills it in.
func (g *guardian) own(name, inner string) bool {
	text, ok := g.server.Env[name]
	return ok && name == inner && !strings.Contains(text, "${"+name) && !strings.Contains(text, "$"+name)
}

// filledEarly reports whether a place is filled in when the app is opened: app
// files take no secrets there, which are filled in when the server is started.
func filledEarly(place string) bool { return place == "command" || place == "cwd" }

// variable returns the reference for a variable of the environment. One that
// holds a secret is filled in late, so that a server alone fails without it.
func (g *guardian) variable(place, name string) string {
	early := filledEarly(place) || !g.isKey(name, name)
	r := Reference{Name: name, Server: g.name, Place: place, Source: g.server.Source, Early: early, Variable: true}
	if !slices.ContainsFunc(g.refs, func(o Reference) bool { return o.Variable && o.Name == name && o.Early == early }) {
		g.refs = append(g.refs, r)
	}
	return r.written()
}

// quote keeps a text from being read as a template or a reference.
func quote(s string) string {
	return strings.NewReplacer("{{", `{{"{{"}}`, "${", `{{"${"}}`).Replace(s)
}

// shield keeps the end of a text apart from the template that follows it.
func shield(s string) string {
	if strings.HasSuffix(s, "}}") || s == "" {
		return s
	}
	if last := s[len(s)-1]; last == '{' || last == '$' {
		return s[:len(s)-1] + `{{"` + string(last) + `"}}`
	}
	return s
}

var (
	pair      = regexp.MustCompile(`([A-Za-z_][\w.-]*)(=)`)
	quotation = regexp.MustCompile(`^(?:"[^"]+"|'[^']+')`)
	commands  = regexp.MustCompile(`^(?:-[a-z]*c|/[cC])$`) // the flag of shells before what they run
	nextPair  = regexp.MustCompile(`;\s*[A-Za-z_][\w .-]*=`)
	inJSON    = regexp.MustCompile(`\\?"([A-Za-z_][\w.-]*)\\?"(\s*:\s*\\?")([^"\\]+)`)
	flagged   = regexp.MustCompile(`--([A-Za-z][\w-]*)([ \t]+)([^\s"'-][^\s"']*)`)
	header    = regexp.MustCompile(`^([A-Za-z][\w-]*)(:\s*)(\S.*)$`)
	assigned  = regexp.MustCompile(`^-{0,2}([A-Za-z_][\w.-]*)(=)(.+)$`)
	flag      = regexp.MustCompile(`^--?([A-Za-z][\w.-]*)$`)
	digits    = regexp.MustCompile(`^\d+$`)
	public    = regexp.MustCompile(`(?:sha(?:256|512)[:-]|/nix/store/)$`) // before what looks random and is none
	userinfo  = regexp.MustCompile(`://()()([^\s/@"'{}]+)@`)
)

// forms find values within a text that have a name; of the user part of a URL
// the name is empty. The places are those of a regular expression with three
// groups: the name, what joins, and the value.
var forms = []func(text string) [][]int{
	assignments,
	func(s string) [][]int { return inJSON.FindAllStringSubmatchIndex(s, -1) },
	func(s string) [][]int { return flagged.FindAllStringSubmatchIndex(s, -1) },
	func(s string) [][]int { return userinfo.FindAllStringSubmatchIndex(s, -1) },
}

// assignments finds NAME=VALUE; a value ends with its quotation, or with the
// word, or where a semicolon and another name follow.
func assignments(text string) [][]int {
	var out [][]int
	for _, m := range pair.FindAllStringSubmatchIndex(text, -1) {
		start, end := m[1], len(text)
		if quoted := quotation.FindStringIndex(text[start:]); quoted != nil {
			out = append(out, append(m, start+1, start+quoted[1]-1))
			continue
		}
		if i := strings.IndexAny(text[start:], " \t\r\n&\"'"); i >= 0 {
			end = start + i
		}
		if next := nextPair.FindStringIndex(text[start:end]); next != nil {
			end = start + next[0]
		}
		if end > start {
			out = append(out, append(m, start, end))
		}
	}
	return out
}

// held reports whether the value that a form found is a secret.
func (g *guardian) held(text string, m []int) bool {
	name, body := text[m[2]:m[3]], text[m[6]:m[7]]
	switch {
	case !word.MatchString(reference.ReplaceAllString(body, "")):
		return false // nothing but references, and what joins them
	case name == "": // alone it is a token, for servers that speak HTTP
		return strings.Contains(body, ":") || strings.HasSuffix(text[:m[0]], "http") || strings.HasSuffix(text[:m[0]], "https")
	}
	return g.isKey(name, body)
}

func (g *guardian) args(args []string) []string {
	var out []string
	for i, arg := range args {
		place := "args." + strconv.Itoa(i+1)
		if i > 0 {
			if m := flag.FindStringSubmatch(args[i-1]); m != nil && !strings.HasPrefix(arg, "-") && g.isKey(m[1], arg) {
				out = append(out, g.text(place, m[1], arg))
				continue
			}
			if at := passwordIn(args[i-1], arg); at > 0 {
				out = append(out, quote(arg[:at])+g.hold(place, "password", arg[at:]))
				continue
			}
			if commands.MatchString(args[i-1]) { // what stands behind a value is no part of it
				out = append(out, g.inner(place, arg))
				continue
			}
		}
		out = append(out, g.arg(place, arg))
	}
	return out
}

// passwordIn returns where the password begins in NAME:PASSWORD behind -u or
// --user; 0: it is none, as UID:GID and USER:GROUP of a container.
func passwordIn(flag, arg string) int {
	name, password, ok := strings.Cut(arg, ":")
	if !ok || flag != "-u" && flag != "--user" || name == password || plain.MatchString(password) || digits.MatchString(password) || strings.Contains(name, "/") {
		return 0
	}
	return len(name) + 1
}

// arg secures an argument in which names and values may stand together.
func (g *guardian) arg(place, arg string) string {
	for _, form := range []*regexp.Regexp{header, assigned} {
		if m := form.FindStringSubmatchIndex(arg); m != nil && g.isKey(arg[m[2]:m[3]], arg[m[6]:]) {
			return quote(arg[:m[6]]) + g.text(place, arg[m[2]:m[3]], arg[m[6]:])
		}
	}
	return g.inner(place, arg)
}

// inner secures values within a text: those of pairs, of flags, of the user
// part of a URL, and words that look like tokens.
func (g *guardian) inner(place, text string) string {
	return g.level(place, text, forms)
}

// level secures what the first of the forms finds in a text, and what stands
// between by the others.
func (g *guardian) level(place, text string, forms []func(string) [][]int) string {
	if len(forms) == 0 {
		return g.pieces(place, text, func(literal string) string { return g.words(place, literal) })
	}
	var b strings.Builder
	at := 0
	for _, m := range forms[0](text) {
		if m[6] < at || !g.held(text, m) {
			continue
		}
		name := cmp.Or(text[m[2]:m[3]], "userinfo")
		b.WriteString(shield(g.level(place, text[at:m[6]], forms[1:])) + g.hold(place, name, text[m[6]:m[7]]))
		at = m[7]
	}
	return b.String() + g.level(place, text[at:], forms[1:])
}

// words secures what looks like a token by itself, or else the whole text if
// it is said to hold a secret.
func (g *guardian) words(place, literal string) string {
	var out, rest strings.Builder
	at := 0
	for _, m := range tokens.FindAllStringSubmatchIndex(literal, -1) {
		start, end := m[0], m[1]
		if m[2] >= 0 { // of a line of authorization, what follows the scheme
			start, end = m[2], m[3]
		} else if uuid.MatchString(literal[start:end]) && (place == "url" || inAddress.MatchString(literal[:start])) {
			// In an address what nobody can guess is often all that lets one in.
		} else if !looksRandom(literal[start:end]) || public.MatchString(literal[max(at, start-20):start]) {
			continue
		}
		rest.WriteString(literal[at:start] + " ")
		out.WriteString(shield(g.plain(place, literal[at:start])) + g.refer(place, place, literal[start:end], false))
		at = end
	}
	rest.WriteString(literal[at:])
	if g.Value != nil && g.Value(rest.String()) {
		return g.refer(place, place, literal, false)
	}
	return out.String() + g.plain(place, literal[at:])
}

func (g *guardian) url(text string) string {
	return g.inner("url", text)
}
