package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Redacted stands for a secret that was taken out.
const Redacted = "[redacted]"

// A Redactor takes secrets out of texts and arguments: what stands under
// credential-like keys, what has the shape of a token, what a schema declares
// secret, and the values that it was told. It is safe for concurrent use.
type Redactor struct {
	mu       sync.RWMutex
	values   []string // longest use: a handful
	patterns []pattern
	hiding   atomic.Bool // there are patterns
	target   atomic.Pointer[func(string) *tool.Tool]
}

// Follow makes the redactor read the arguments of calls that make calls, by
// the tools that target knows under the names in them; it returns nil for
// names that it does not know.
func (r *Redactor) Follow(target func(name string) *tool.Tool) { r.target.Store(&target) }

// A pattern is what the calls of a module's tools must not show; "": of all.
type pattern struct {
	module string
	shape  *regexp.Regexp
}

// Hide makes the redactor take out what matches re wherever a call of the
// module's tools shows it; "": of any.
func (r *Redactor) Hide(module string, re *regexp.Regexp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patterns = append(r.patterns, pattern{module, re})
	r.hiding.Store(true)
}

// hides reports whether there are patterns for a tool's calls; t may be nil.
func (r *Redactor) hides(t *tool.Tool) bool {
	if r == nil || !r.hiding.Load() {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, p := range r.patterns {
		if p.module == "" || t != nil && t.ModuleName() == p.module {
			return true
		}
	}
	return false
}

// text is Text with the patterns for a tool's calls; t may be nil.
func (r *Redactor) text(s string, t *tool.Tool) string {
	s = r.Text(s)
	if !r.hides(t) {
		return s
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, p := range r.patterns {
		if p.module == "" || t != nil && t.ModuleName() == p.module {
			s = p.shape.ReplaceAllLiteralString(s, Redacted)
		}
	}
	return s
}

// NewRedactor returns a Redactor that knows the standard shapes and keys.
func NewRedactor() *Redactor { return new(Redactor) }

// Learn makes the redactor take out value wherever it stands, also as JSON
// writes it. Values shorter than eight bytes are not learnt: they would blank
// out ordinary words.
func (r *Redactor) Learn(value string) {
	if len(value) < 8 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values = append(r.values, value)
	for _, encode := range []func(any) (json.RawMessage, error){tool.Encode, marshal} {
		text, err := encode(value)
		if err == nil && len(text) > 2 && !slices.Contains(r.values, string(text[1:len(text)-1])) {
			r.values = append(r.values, string(text[1:len(text)-1]))
		}
	}
}

// marshal is the encoding that is fit for pages, which other programs use.
func marshal(v any) (json.RawMessage, error) { return json.Marshal(v) }

// A shape is how tokens of one kind look. The literal is searched first: it is
// a hundred times cheaper than the pattern.
type shape struct {
	literal string
	pattern *regexp.Regexp
}

// shapes are the documented forms of the issuers' tokens.
var shapes = []shape{
	{"sk-", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`)},                                         // OpenAI, Anthropic and others
	{"gh", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,}`)},                                     // GitHub
	{"github_pat_", regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{22,}`)},                          // GitHub, fine-grained
	{"glpat-", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},                                   // GitLab
	{"xox", regexp.MustCompile(`\bxox[abeprs]-[A-Za-z0-9-]{10,}`)},                                 // Slack
	{"AKIA", regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`)},                                           // AWS
	{"ASIA", regexp.MustCompile(`\bASIA[0-9A-Z]{16}\b`)},                                           // AWS, temporary
	{"AIza", regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`)},                                        // Google
	{"ya29.", regexp.MustCompile(`\bya29\.[0-9A-Za-z_-]{20,}`)},                                    // Google OAuth
	{"_live_", regexp.MustCompile(`\b[sr]k_live_[0-9A-Za-z]{16,}`)},                                // Stripe
	{"npm_", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},                                        // npm
	{"hlv_", regexp.MustCompile(`\bhlv_[A-Za-z0-9]{8,}_[A-Za-z0-9]{20,}`)},                         // Helve's own
	{"hf_", regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`)},                                           // Hugging Face
	{"gsk_", regexp.MustCompile(`\bgsk_[A-Za-z0-9]{40,}`)},                                         // Groq
	{"xai-", regexp.MustCompile(`\bxai-[A-Za-z0-9]{40,}`)},                                         // xAI
	{"pplx-", regexp.MustCompile(`\bpplx-[A-Za-z0-9]{40,}`)},                                       // Perplexity
	{"xapp-", regexp.MustCompile(`\bxapp-[0-9]-[A-Za-z0-9-]{20,}`)},                                // Slack, of apps
	{"pypi-", regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{50,}`)},                                     // PyPI
	{"dckr_pat_", regexp.MustCompile(`\bdckr_pat_[A-Za-z0-9_-]{20,}`)},                             // Docker
	{"AGE-SECRET-KEY-", regexp.MustCompile(`\bAGE-SECRET-KEY-1[0-9A-Z]{50,}`)},                     // age
	{"eyJ", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`)}, // JWT
	// A key, or as much as is left of one; a text that only names the header stays.
	{"PRIVATE KEY-----", regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|(?:[A-Za-z0-9+/=\s:,.-]|\\+[nrt]){16,})`)},
	{"earer ", regexp.MustCompile(`\b[Bb]earer [A-Za-z0-9._~+/-]{16,}=*`)},
	{"asic ", regexp.MustCompile(`(?i)\bauthorization["'\\]*\s*[:=]\s*["'\\]*basic [A-Za-z0-9+/_-]{8,}=*`)},
	// A password in a URL; what stands alone and is as long is no user's name.
	{"://", regexp.MustCompile(`://(?:[^\s/:@"']+:[^\s/@"']+|[A-Za-z0-9_-]{20,})@`)},
}

// Text returns s without what has the shape of a token and without learnt values.
func (r *Redactor) Text(s string) string {
	for _, sh := range shapes {
		if strings.Contains(s, sh.literal) {
			s = sh.pattern.ReplaceAllStringFunc(s, blank)
		}
	}
	if r == nil {
		return s
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, v := range r.values {
		if strings.Contains(s, v) {
			s = strings.ReplaceAll(s, v, Redacted)
		}
	}
	return s
}

// blank keeps what tells the kind of a secret and drops the secret.
func blank(s string) string {
	switch {
	case strings.HasPrefix(s, "://"):
		return "://" + Redacted + "@"
	case strings.HasPrefix(s, "-----BEGIN"):
		return s[:strings.Index(s[5:], "-----")+10] + Redacted
	case strings.HasPrefix(s[1:], "earer "):
		return s[:7] + Redacted
	case len(s) > 13 && strings.EqualFold(s[:13], "authorization"):
		return s[:strings.LastIndexByte(s, ' ')+1] + Redacted
	}
	return Redacted
}

// Command returns a command line as Text does, and without what stands behind
// options, variables and headers that are called like credentials.
func (r *Redactor) Command(line string) string {
	line = r.Text(line)
	var b strings.Builder
	for {
		at := named.FindStringSubmatchIndex(line)
		if at == nil {
			return inQueries(b.String() + line)
		}
		from, to, value := at[2], at[3], at[4]
		if value < 0 {
			from, to, value = at[6], at[7], at[8]
		}
		if SecretKey(strings.TrimLeft(line[from:to], "-")) && line[value] != '$' && !strings.HasPrefix(line[value:], Redacted) {
			b.WriteString(line[:value] + Redacted)
			line = line[at[1]:]
			continue
		}
		b.WriteString(line[:value]) // which may itself be a name
		line = line[value:]
	}
}

// named is the name of an option, a variable or a header, and what it is set to.
var named = regexp.MustCompile(`([A-Za-z][\w-]*)\s*[=:]\s*("[^"]*"?|'[^']*'?|[^\s"';&|)]+)|(--[\w-]+)\s+("[^"]*"?|'[^']*'?|[^\s"';&|)-][^\s"';&|)]*)`)

// inQueries returns a text without what stands in URLs under credential-like names.
func inQueries(s string) string {
	if !strings.Contains(s, "://") || !strings.Contains(s, "=") {
		return s
	}
	return parameter.ReplaceAllStringFunc(s, func(s string) string {
		name, _, _ := strings.Cut(s[1:], "=")
		if plain, err := url.QueryUnescape(name); err != nil || !SecretKey(plain) {
			return s
		}
		return s[:len(name)+2] + Redacted
	})
}

var parameter = regexp.MustCompile(`[?&#;][^?&#;=\s"'<>]+=[^&#;\s"'<>]+`)

var secretKey = regexp.MustCompile(`(?i)(^|[_.-])(pass(word|wd|phrase)?|secrets?|tokens?|api_?-?keys?|access_?-?keys?|private_?-?keys?|secret_?-?keys?|auth(orization)?|credentials?|cookies?|set-cookie|session_?id|client_?-?secret|pin|otp|cvv)$|(password|passwd|passphrase|secret|api_?key|(access|auth|refresh)_?token)$|[_.-](pwd|pat)$`)

// otherKeys are names of credentials that are so as a whole, and in other languages.
var otherKeys = regexp.MustCompile(`(?i)(^|[_.-])(bearer|jwt|passcode|pass_code|mnemonic|seed_?phrase|recovery_?codes?|dsn|connection_?string|cvc|totp|(signing|encryption|master|account|shared|ssh|deploy|subscription|service|storage|webhook|license|admin|session)_?-?keys?)$|kennwort|passwort|mot_?de_?passe|contrase(ñ|n)a|senha|wachtwoord|has(ł|l)o$|пароль|şifre|parola|كلمة.?(ال)?(مرور|سر)|kata_?sandi|パスワード|暗証|비밀번호|密码|密碼|口令|adgangskode|clave_?secreta`)
var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// SecretKey reports whether a property or header of this name holds a credential.
func SecretKey(key string) bool {
	split := camel.ReplaceAllString(key, "${1}_$2")
	return secretKey.MatchString(key) || secretKey.MatchString(split) || otherKeys.MatchString(split)
}

// Call returns the arguments of a call without secrets, those for calls that
// it makes included.
func (r *Redactor) Call(c *tool.Call) json.RawMessage {
	values, err := r.roles(c)
	if err != nil {
		return json.RawMessage(`"` + Redacted + `"`)
	}
	return r.args(c.Args, values, c.Tool)
}

// roles returns the values in a call's arguments that have roles, and the
// secrets that are for calls that it makes.
func (r *Redactor) roles(c *tool.Call) ([]schema.Value, error) {
	values := c.Trail.Values
	if values == nil && c.Tool != nil && c.Tool.Input.HasRoles() { // refused before it was validated
		var err error
		if values, err = c.Tool.Input.Values(c.Args); err != nil {
			return nil, err
		}
	}
	if c.Tool == nil || c.Tool.Meta {
		values = append(values[:len(values):len(values)], r.passed(c.Args)...)
	}
	return values, nil
}

// coercions returns what was made of a call's arguments, each a pointer and
// words, without the words where they may tell a secret.
func (r *Redactor) coercions(c *tool.Call) []string {
	if len(c.Trail.Coercions) == 0 {
		return nil
	}
	values, err := r.roles(c)
	notes := slices.Clone(c.Trail.Coercions)
	for i, n := range notes {
		at, _, _ := strings.Cut(n, ": ")
		top := at
		if at == "the whole" { // as coercion calls the arguments themselves
			top = ""
		}
		if err != nil || slices.ContainsFunc(values, func(v schema.Value) bool {
			return v.Role == schema.Secret && (beneath(v.Pointer, top) || beneath(top, v.Pointer))
		}) {
			notes[i] = at + ": " + Redacted
		} else {
			notes[i] = r.text(n, c.Tool)
		}
	}
	return notes
}

// beneath reports whether a pointer is top, or leads to something beneath it.
func beneath(pointer, top string) bool {
	return pointer == top || strings.HasPrefix(pointer, top+"/")
}

// Args returns arguments without secrets: values under credential-like keys,
// those of values whose role is secret, and anything that has the shape of a
// token. Arguments that are not JSON become a string that is redacted as a text.
func (r *Redactor) Args(args json.RawMessage, values []schema.Value) json.RawMessage {
	return r.args(args, values, nil)
}

func (r *Redactor) args(args json.RawMessage, values []schema.Value, t *tool.Tool) json.RawMessage {
	roles := map[string]schema.Role(nil)
	for _, v := range values {
		if v.Role == schema.Secret || v.Role == schema.Command {
			if roles == nil {
				roles = map[string]schema.Role{}
			}
			roles[v.Pointer] = v.Role
		}
	}
	if roles == nil && !suspicious(args) && !r.knows(args) && !r.hides(t) {
		return args
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		out, _ := json.Marshal(r.text(string(args), t))
		return out
	}
	out, err := json.Marshal(r.clean("", v, roles, t))
	if err != nil {
		return json.RawMessage(`"` + Redacted + `"`)
	}
	return out
}

func (r *Redactor) clean(pointer string, v any, roles map[string]schema.Role, t *tool.Tool) any {
	if roles[pointer] == schema.Secret {
		return Redacted
	}
	switch v := v.(type) {
	case string:
		if roles[pointer] == schema.Command {
			v = r.Command(v)
		}
		return inQueries(r.text(v, t))
	case []any:
		for i := range v {
			v[i] = r.clean(pointer+"/"+itoa(i), v[i], roles, t)
		}
	case map[string]any:
		pair := namesSecret(v)
		for k, e := range v {
			if (SecretKey(k) || pair && isValue[strings.ToLower(k)]) && !isEmpty(e) {
				v[k] = Redacted
			} else {
				v[k] = r.clean(pointer+"/"+escapePointer(k), e, roles, t)
			}
		}
	}
	return v
}

// namesSecret reports whether an object says by one of its members that another
// holds a credential, as {"name": "password", "value": "x"} does.
func namesSecret(object map[string]any) bool {
	for k, e := range object {
		if name, ok := e.(string); ok && isName[strings.ToLower(k)] && SecretKey(name) {
			return true
		}
	}
	return false
}

var (
	isName  = map[string]bool{"name": true, "key": true, "field": true, "header": true, "variable": true, "var": true, "label": true, "selector": true, "parameter": true, "option": true, "env": true, "attribute": true, "property": true}
	isValue = map[string]bool{"value": true, "val": true, "text": true, "default": true}
)

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil, bool:
		return true
	case string:
		return v == ""
	}
	return false
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

func escapePointer(k string) string {
	return strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1")
}

// hints are parts of every key and every shape that Args takes out, in lower case.
var hints = func() [][]byte {
	words := []string{"pass", "secret", "token", "key", "auth", "credential", "cookie", "session", `pin"`, `otp"`, `cvv"`, `pwd"`, `pat"`, `\u`,
		"bearer", "jwt", "mnemonic", "seed", "recovery", `dsn"`, "connection", `cvc"`, "totp", "kennwort", "contrase", "senha", "wachtwoord", "parola", "sandi", "adgangs", "clave"}
	for _, s := range shapes {
		words = append(words, strings.ToLower(s.literal))
	}
	out := make([][]byte, len(words))
	for i, w := range words {
		out[i] = []byte(w)
	}
	return out
}()

// hintsBy are the hints by their first letter, in either case.
var hintsBy = func() (by [256][][]byte) {
	for _, h := range hints {
		by[h[0]] = append(by[h[0]], h)
		if 'a' <= h[0] && h[0] <= 'z' {
			by[h[0]-'a'+'A'] = append(by[h[0]-'a'+'A'], h)
		}
	}
	return by
}()

// suspicious reports whether there may be something to take out: cheap, and
// wrong only by saying yes too often.
func suspicious(args []byte) bool {
	for i, c := range args {
		for _, h := range hintsBy[c] {
			if len(args)-i >= len(h) && args[i+1]|0x20 == h[1]|0x20 && bytes.EqualFold(args[i:i+len(h)], h) {
				return true
			}
		}
	}
	return !isASCII(args) && otherKeys.Match(args)
}

func isASCII(s []byte) bool {
	for _, c := range s {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// knows reports whether there may be a learnt value in the arguments.
func (r *Redactor) knows(args []byte) bool {
	if r == nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, v := range r.values {
		if bytes.Contains(args, []byte(v)) {
			return true
		}
	}
	return false
}

// Redact returns the stage that takes secrets out of results, and out of what
// calls show before their end (SPEC X2).
func Redact(r *Redactor) pipeline.Stage {
	return pipeline.Stage{
		Name: "redact", Doc: "take secrets out of results",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				show := c.Progress
				c.Progress = func(part tool.Content) {
					clean, _ := r.content(part, c.Tool)
					show(clean)
				}
				res, err := next(ctx, c)
				if err != nil {
					return nil, err
				}
				return r.result(res, c.Tool), nil
			}
		},
	}
}

// result returns res, or a copy without its secrets if it has any.
func (r *Redactor) result(res *tool.Result, t *tool.Tool) *tool.Result {
	out := res
	edit := func() *tool.Result {
		if out == res {
			c := *res
			c.Content, c.Notes = slices.Clone(res.Content), slices.Clone(res.Notes)
			out = &c
		}
		return out
	}
	for i, c := range res.Content {
		if clean, changed := r.content(c, t); changed {
			edit().Content[i] = clean
		}
	}
	for i, n := range res.Notes {
		if text := r.text(n, t); text != n {
			edit().Notes[i] = text
		}
	}
	if clean, changed := r.document(res.Structured, t); changed {
		edit().Structured = clean
	}
	if clean, changed := r.document(res.Meta, t); changed {
		edit().Meta = clean
	}
	if res.Err != nil {
		details, changed := r.document(res.Err.Details, t)
		if text := r.text(res.Err.Message, t); changed || text != res.Err.Message {
			e := *res.Err
			e.Message, e.Details = text, details
			edit().Err = &e
		}
	}
	return out
}

// content returns a part of a result without its secrets, and whether it had any.
func (r *Redactor) content(c tool.Content, t *tool.Tool) (tool.Content, bool) {
	text, uri, name := r.text(c.Text, t), r.text(c.URI, t), r.text(c.Name, t)
	raw, changed := r.document(c.Raw, t)
	changed = changed || text != c.Text || uri != c.URI || name != c.Name
	if text != c.Text {
		raw = nil // it is written anew
	}
	c.Text, c.URI, c.Name, c.Raw = text, uri, name, raw
	return c, changed
}

// document returns a JSON document without its secrets, and whether it had any;
// nil if it cannot be read.
func (r *Redactor) document(doc json.RawMessage, t *tool.Tool) (json.RawMessage, bool) {
	if len(doc) == 0 || r.text(string(doc), t) == string(doc) {
		return doc, false
	}
	v, ok := decodeArgs(doc)
	if !ok {
		return nil, true
	}
	had := false
	clean, err := tool.Encode(r.leaves(v, t, &had))
	switch {
	case err != nil:
		return nil, true
	case had:
		return clean, true
	}
	text := r.text(string(doc), t) // which may go over several values, as a key in lines does
	if !json.Valid([]byte(text)) {
		return nil, true
	}
	return json.RawMessage(text), true
}

// leaves takes the secrets out of every text and every key, and notes that
// there were any.
func (r *Redactor) leaves(v any, t *tool.Tool, had *bool) any {
	text := func(s string) string {
		clean := r.text(s, t)
		*had = *had || clean != s
		return clean
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		for i := range v {
			v[i] = r.leaves(v[i], t, had)
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k, e := range v {
			clean[text(k)] = r.leaves(e, t, had)
		}
		return clean
	}
	return v
}
