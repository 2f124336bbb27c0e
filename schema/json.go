package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type kind uint8

const (
	kNull kind = iota
	kBool
	kNumber
	kString
	kArray
	kObject
)

var kindNames = [...]string{"null", "boolean", "number", "string", "array", "object"}

func (k kind) String() string { return kindNames[k] }

// value is one JSON value with the place it stands in its text, so that what
// is not changed can be copied byte for byte. Members of an object keep their
// written order.
type value struct {
	doc        []byte
	start, end int
	keyStart   int // where the member's key stands; of an element, start
	kind       kind
	key        string
	kids       []*value
	index      map[string]*value // of an object with many members
}

// manyMembers is from where on an object has an index.
const manyMembers = 32

func (v *value) text() []byte { return v.doc[v.start:v.end:v.end] }

// member gives the value under key, or nil. Of duplicates it gives the last.
func (v *value) member(key string) *value {
	if v == nil || v.kind != kObject {
		return nil
	}
	if v.index != nil {
		return v.index[key]
	}
	for i := len(v.kids) - 1; i >= 0; i-- {
		if v.kids[i].key == key {
			return v.kids[i]
		}
	}
	return nil
}

// str gives the decoded text of a string, and false for all else.
func (v *value) str() (string, bool) {
	if v == nil || v.kind != kString {
		return "", false
	}
	return unquote(v.text()), true
}

// boolean reports whether v is the literal b.
func (v *value) boolean(b bool) bool {
	return v != nil && v.kind == kBool && (v.doc[v.start] == 't') == b
}

// strings gives the strings of an array, leaving out what is not a string.
func (v *value) strings() []string {
	if v == nil || v.kind != kArray {
		return nil
	}
	out := make([]string, 0, len(v.kids))
	for _, kid := range v.kids {
		if s, ok := kid.str(); ok {
			out = append(out, s)
		}
	}
	return out
}

// any gives v as encoding/json would decode it with UseNumber.
func (v *value) any() any {
	switch v.kind {
	case kBool:
		return v.doc[v.start] == 't'
	case kNumber:
		return json.Number(v.text())
	case kString:
		return unquote(v.text())
	case kArray:
		out := make([]any, len(v.kids))
		for i, kid := range v.kids {
			out[i] = kid.any()
		}
		return out
	case kObject:
		out := make(map[string]any, len(v.kids))
		for _, kid := range v.kids {
			out[kid.key] = kid.any()
		}
		return out
	}
	return nil
}

// fault is what makes a text unreadable, and where.
type fault struct {
	at  int
	msg string
}

func (f *fault) Error() string { return fmt.Sprintf("offset %d: %s", f.at, f.msg) }

// parser reads one JSON text into values. It refuses what decoders disagree
// on (invalid UTF-8, numbers of absurd size, too deep nesting) and notes
// duplicate keys.
type parser struct {
	doc   []byte
	pos   int
	depth int // levels left
	limit int
	dups  []string // pointers of duplicate keys
	path  []string
}

const (
	maxSchemaDepth = 128
	maxDocDepth    = 1000
	maxDigits      = 1000 // of a number, and the greatest exponent
)

func parse(doc []byte, depth int) (*value, []string, error) {
	p := parser{doc: doc, depth: depth, limit: depth}
	p.space()
	v, err := p.value()
	if err != nil {
		return nil, nil, err
	}
	p.space()
	if p.pos < len(doc) {
		return nil, nil, p.fault("something follows the value")
	}
	return v, p.dups, nil
}

func (p *parser) fault(format string, args ...any) error {
	return &fault{p.pos, fmt.Sprintf(format, args...)}
}

func (p *parser) space() { p.pos = skipSpace(p.doc, p.pos) }

func (p *parser) value() (*value, error) {
	if p.pos >= len(p.doc) {
		return nil, p.fault("the text ends where a value should begin")
	}
	v := &value{doc: p.doc, start: p.pos}
	var err error
	switch c := p.doc[p.pos]; {
	case c == '{':
		v.kind, err = kObject, p.object(v)
	case c == '[':
		v.kind, err = kArray, p.array(v)
	case c == '"':
		v.kind, err = kString, p.string()
	case c == '-' || '0' <= c && c <= '9':
		v.kind, err = kNumber, p.number()
	default:
		err = p.literal(v)
	}
	v.end = p.pos
	return v, err
}

func (p *parser) literal(v *value) error {
	for word, k := range map[string]kind{"true": kBool, "false": kBool, "null": kNull} {
		if bytes.HasPrefix(p.doc[p.pos:], []byte(word)) {
			p.pos += len(word)
			v.kind = k
			return nil
		}
	}
	r, _ := utf8.DecodeRune(p.doc[p.pos:])
	return p.fault("%q cannot begin a value", r)
}

func (p *parser) number() error {
	end, ok := scanNumber(p.doc, p.pos)
	if !ok {
		return p.fault("a malformed number")
	}
	if !sane(p.doc[p.pos:end]) {
		return p.fault("a number of more than %d digits", maxDigits)
	}
	p.pos = end
	return nil
}

// sane reports whether a number is small enough to be computed with exactly.
func sane(num []byte) bool {
	if len(num) > maxDigits {
		return false
	}
	i := bytes.IndexAny(num, "eE")
	if i < 0 {
		return true
	}
	exp, err := strconv.Atoi(string(num[i+1:]))
	return err == nil && -maxDigits <= exp && exp <= maxDigits
}

func (p *parser) string() error {
	end, _, ok := scanString(p.doc, p.pos)
	if ok {
		p.pos = end
		return nil
	}
	p.pos = end
	if end >= len(p.doc) {
		return p.fault("the text ends inside a string")
	}
	switch c := p.doc[end]; {
	case c < 0x20:
		return p.fault("a control character inside a string: write it as \\u%04x", c)
	case c == '\\':
		return p.fault("an escape that JSON does not know")
	}
	return p.fault("invalid UTF-8")
}

func (p *parser) enter() error {
	if p.depth--; p.depth < 0 {
		return p.fault("nested deeper than %d levels", p.limit)
	}
	return nil
}

func (p *parser) array(v *value) error {
	if err := p.enter(); err != nil {
		return err
	}
	p.pos++
	for p.space(); !p.at(']'); p.space() {
		if len(v.kids) > 0 {
			if !p.at(',') {
				return p.fault("a comma or ] should stand here")
			}
			p.pos++
			p.space()
		}
		p.path = append(p.path, strconv.Itoa(len(v.kids)))
		kid, err := p.value()
		p.path = p.path[:len(p.path)-1]
		if err != nil {
			return err
		}
		kid.keyStart = kid.start
		v.kids = append(v.kids, kid)
	}
	p.pos++
	p.depth++
	return nil
}

func (p *parser) at(c byte) bool { return p.pos < len(p.doc) && p.doc[p.pos] == c }

func (p *parser) object(v *value) error {
	if err := p.enter(); err != nil {
		return err
	}
	p.pos++
	for p.space(); !p.at('}'); p.space() {
		if len(v.kids) > 0 {
			if !p.at(',') {
				return p.fault("a comma or } should stand here")
			}
			p.pos++
			p.space()
		}
		kid, err := p.pair()
		if err != nil {
			return err
		}
		v.kids = append(v.kids, kid)
	}
	p.pos++
	p.depth++
	p.duplicates(v)
	return nil
}

func (p *parser) pair() (*value, error) {
	if !p.at('"') {
		return nil, p.fault("a key in double quotes should stand here")
	}
	start := p.pos
	if err := p.string(); err != nil {
		return nil, err
	}
	key := unquote(p.doc[start:p.pos])
	p.space()
	if !p.at(':') {
		return nil, p.fault("a colon should stand after the key %q", key)
	}
	p.pos++
	p.space()
	p.path = append(p.path, key)
	kid, err := p.value()
	p.path = p.path[:len(p.path)-1]
	if err != nil {
		return nil, err
	}
	kid.key, kid.keyStart = key, start
	return kid, nil
}

func (p *parser) duplicates(v *value) {
	if len(v.kids) < 2 {
		return
	}
	seen := make(map[string]*value, len(v.kids))
	for _, kid := range v.kids {
		if seen[kid.key] != nil && len(p.dups) < maxProblems {
			p.dups = append(p.dups, pointer(append(p.path, kid.key)))
		}
		seen[kid.key] = kid
	}
	if len(v.kids) >= manyMembers {
		v.index = seen
	}
}

// pointer writes tokens as an RFC 6901 pointer.
func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		pointerEscaper.WriteString(&b, t)
	}
	return b.String()
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func pointerTokens(p string) []string {
	if p == "" {
		return nil
	}
	tokens := strings.Split(p[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens
}

func skipSpace(doc []byte, i int) int {
	for i < len(doc) {
		switch doc[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// scanNumber gives the end of the JSON number at i.
func scanNumber(doc []byte, i int) (int, bool) {
	if i < len(doc) && doc[i] == '-' {
		i++
	}
	start := i
	for i < len(doc) && '0' <= doc[i] && doc[i] <= '9' {
		i++
	}
	if i == start || doc[start] == '0' && i-start > 1 {
		return i, false
	}
	if i < len(doc) && doc[i] == '.' {
		i++
		start = i
		for i < len(doc) && '0' <= doc[i] && doc[i] <= '9' {
			i++
		}
		if i == start {
			return i, false
		}
	}
	if i < len(doc) && (doc[i] == 'e' || doc[i] == 'E') {
		i++
		if i < len(doc) && (doc[i] == '+' || doc[i] == '-') {
			i++
		}
		start = i
		for i < len(doc) && '0' <= doc[i] && doc[i] <= '9' {
			i++
		}
		if i == start {
			return i, false
		}
	}
	return i, true
}

// scanString gives the end of the JSON string that begins at i, and whether
// it is plain: without escapes. When it is malformed it gives the place.
func scanString(doc []byte, i int) (end int, plain, ok bool) {
	plain = true
	for i++; i < len(doc); {
		c := doc[i]
		switch {
		case c == '"':
			return i + 1, plain, true
		case c == '\\':
			plain = false
			n := escapeLen(doc[i:])
			if n == 0 {
				return i, false, false
			}
			i += n
		case c < 0x20:
			return i, plain, false
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(doc[i:])
			if r == utf8.RuneError && n <= 1 {
				return i, plain, false
			}
			i += n
		}
	}
	return i, plain, false
}

// escapeLen gives the length of the escape that b begins with, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if hex4(b[2:]) >= 0 {
			return 6
		}
	}
	return 0
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return -1
		}
	}
	return r
}

// unquote decodes a well-formed JSON string; lone surrogates become U+FFFD, as
// in encoding/json.
func unquote(quoted []byte) string {
	in := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); {
		if in[i] != '\\' {
			out = append(out, in[i])
			i++
			continue
		}
		if in[i+1] != 'u' {
			out = append(out, unescape(in[i+1]))
			i += 2
			continue
		}
		r := hex4(in[i+2:])
		i += 6
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if i+1 < len(in) && in[i] == '\\' && in[i+1] == 'u' {
				low = hex4(in[i+2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// quote writes s as a JSON string without escaping what only HTML minds.
func quote(s string) []byte {
	text, err := marshal(s)
	if err != nil {
		panic("schema: a string that cannot be written: " + err.Error())
	}
	return text
}

// marshal writes v on one line, without escaping what only HTML minds.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
