package schema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// library is the schema as the validation library holds it.
type library struct {
	sch   *jsonschema.Schema
	draft int

	mu       sync.Mutex // guards compiler and parts
	compiler *jsonschema.Compiler
	parts    map[*value]*jsonschema.Schema
	paths    map[*value]string
}

// part gives the validator of a schema inside t, nil if there is none.
func (l *library) part(t *tree, sch *value) (part *jsonschema.Schema) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if part, ok := l.parts[sch]; ok {
		return part
	}
	if l.parts == nil {
		l.parts, l.paths = map[*value]*jsonschema.Schema{}, map[*value]string{}
		pathsOf(t.root, "", l.paths)
	}
	defer func() {
		if recover() != nil {
			part = nil
		}
		l.parts[sch] = part
	}()
	if path, ok := l.paths[sch]; ok {
		part, _ = l.compiler.Compile(rootURL + "#" + (&url.URL{Path: path}).EscapedPath())
	}
	return part
}

// pathsOf notes the pointer of everything in v.
func pathsOf(v *value, at string, into map[*value]string) {
	into[v] = at
	for i, kid := range v.kids {
		tok := strconv.Itoa(i)
		if v.kind == kObject {
			tok = kid.key
		}
		pathsOf(kid, at+pointer([]string{tok}), into)
	}
}

// rootURL names the schema to the library. It never leaves this package.
const rootURL = "helve:///schema"

var drafts = map[int]*jsonschema.Draft{
	4: jsonschema.Draft4, 6: jsonschema.Draft6, 7: jsonschema.Draft7,
	2019: jsonschema.Draft2019, 2020: jsonschema.Draft2020,
}

func newLibrary(t *tree) (*library, []string, error) {
	try := []int{2020, 7, 4}
	if t.draft != 0 {
		try = []int{t.draft}
	}
	var first error
	for _, draft := range try {
		lib, warnings, err := compileAs(t, draft)
		if err == nil {
			return lib, warnings, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, nil, first
}

func compileAs(t *tree, draft int) (lib *library, warnings []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			lib, err = nil, fmt.Errorf("schema: cannot be compiled: %v", r)
		}
	}()
	w := &warner{strict: t.opts.Formats}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(drafts[draft])
	c.UseLoader(loader{t.opts.Load})
	c.UseRegexpEngine(w.compile)
	if t.opts.Formats {
		c.AssertFormat()
	} else {
		ignoreFormats(c)
	}
	doc := t.root.any()
	if obj, ok := doc.(map[string]any); ok && draftOf(t.root) == 0 && t.opts.Load == nil && obj["$schema"] != nil {
		w.add("/$schema: is not a draft that is known: read as draft %d", draft)
		delete(obj, "$schema")
	}
	for _, path := range t.unread {
		w.add("%s: the pattern %q is not enforced", pointer(append(slices.Clone(path[:len(path)-1]), "patternProperties")), path[len(path)-1])
		dropPattern(doc, path)
	}
	if err := c.AddResource(rootURL, doc); err != nil {
		return nil, nil, compileError(t, err)
	}
	sch, err := c.Compile(rootURL)
	if err != nil {
		return nil, nil, compileError(t, err)
	}
	w.sealed = true
	return &library{sch: sch, draft: draft, compiler: c}, w.warnings, nil
}

// dropPattern takes a patternProperties entry that cannot be read out of the
// schema at path, and what would forbid the members that it may have allowed.
func dropPattern(doc any, path []string) {
	at := doc
	for _, tok := range path[:len(path)-1] {
		switch v := at.(type) {
		case map[string]any:
			at = v[tok]
		case []any:
			i, _ := strconv.Atoi(tok)
			at = v[i]
		}
	}
	obj := at.(map[string]any)
	delete(obj["patternProperties"].(map[string]any), path[len(path)-1])
	delete(obj, "additionalProperties")
	delete(obj, "unevaluatedProperties")
}

// ignoreFormats makes every format a remark, which draft 7 and older do not
// by themselves in the library.
func ignoreFormats(c *jsonschema.Compiler) {
	for _, name := range []string{
		"date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6",
		"iri", "iri-reference", "json-pointer", "period", "regex", "relative-json-pointer", "semver", "time",
		"uri", "uri-reference", "uri-template", "uuid",
	} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
}

type loader struct {
	load func(string) ([]byte, error)
}

func (l loader) Load(uri string) (any, error) {
	if l.load == nil {
		return nil, errors.New("references to other documents are not followed")
	}
	text, err := l.load(uri)
	if err != nil {
		return nil, err
	}
	v, _, err := parse(text, maxSchemaDepth)
	if err != nil {
		return nil, err
	}
	return v.any(), nil
}

// anything is a pattern that is not enforced.
type anything string

func (a anything) String() string          { return string(a) }
func (a anything) MatchString(string) bool { return true }

// compileError says in our words what the library could not compile.
func compileError(t *tree, err error) error {
	var bad *jsonschema.SchemaValidationError
	if errors.As(err, &bad) {
		var verr *jsonschema.ValidationError
		if errors.As(bad.Err, &verr) {
			if ps := problemsOf(verr, nil, t.root); len(ps) > 0 {
				return fmt.Errorf("schema: %s", ps[0])
			}
		}
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return fmt.Errorf("schema: the reference to %s cannot be followed: %w", load.URL, load.Err)
	}
	return fmt.Errorf("schema: %s", strings.ReplaceAll(err.Error(), rootURL, ""))
}

// validate gives the library's error, nil where doc is valid.
func (l *library) validate(doc any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be checked: %v", r)
		}
	}()
	return l.sch.Validate(doc)
}

var printer = message.NewPrinter(language.English)
