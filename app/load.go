package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/lexicon"
	"github.com/helve-ai/helve/module"
)

// LoadOptions are what an app file is read against.
type LoadOptions struct {
	Modules []*module.Module // those that there are; mcp is known without being listed

	Middleware []*guard.MiddlewareKind // beside guard.MiddlewareKinds

	Env     func(name string) (string, bool)  // fills {{env.X}}; nil: nothing is set
	Secret  func(name string) (string, error) // not asked here: secrets stay references until they are needed
	Workdir string                            // fills {{workdir}}; "" or ".": runtime.workdir, or the current folder
	Vars    map[string]string                 // fill {{name}}, before dev.variables
}

// maxIncludes bounds how many files one app is made of.
const maxIncludes = 100

// Load reads an app file and those that it includes. What is wrong with them
// is returned as Problems, all at once.
func Load(file string, o LoadOptions) (*Config, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("app file: %w", err)
	}
	defer f.Close()
	data, err := readSome(f)
	if err != nil {
		return nil, fmt.Errorf("app file: %w", err)
	}
	return Parse(file, data, o)
}

// readSome reads a file, but not much more than is allowed.
func readSome(f io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(f, maxFile+1)) }

// Parse is Load for the text of a file; files that it includes are looked for
// beside file.
func Parse(file string, data []byte, o LoadOptions) (*Config, error) {
	l := &loader{file: file, o: o}
	c := l.load(data)
	if len(l.problems) > 0 {
		return nil, l.problems.sorted(l.files)
	}
	return c, nil
}

// Default returns the app that is run when no file is named.
func Default() *Config {
	c := &Config{App: Info{ID: "default", Name: "Default"}}
	setDefaults(reflect.ValueOf(c).Elem(), nil)
	return c
}

// DefaultOf is Default, for an app of these modules: profiles that name none of
// their tools are refused.
func DefaultOf(modules []*module.Module) *Config {
	c := Default()
	c.known = newCatalogue(modules, &node{})
	return c
}

// A loader reads one app.
type loader struct {
	file     string
	o        LoadOptions
	files    []string // in the order in which they were read
	problems Problems

	lexicon *lexicon.Lexicon // nil: nothing extends it
	skills  []module.Skill
	words   []string // the files that extend it

	callers []caller          // the apps by way of which this one is read, outermost first
	called  map[string]callee // those that it may call

	catalogue *catalogue      // what names in the file may name
	partial   bool            // a file that is included could not be read
	unset     Problems        // see Config.Unset
	unread    Problems        // see Config.Unread
	broken    map[string]bool // the paths of values that could not be read, of which no more is said
}

// maxProblems bounds how many problems are told of one app.
const maxProblems = 500

func (l *loader) add(ps ...Problem) {
	l.problems = append(l.problems, ps[:min(len(ps), max(maxProblems-len(l.problems), 0))]...)
}

func (l *loader) fail(at place, path, message, suggestion string) {
	if l.broken[path] {
		return
	}
	l.add(Problem{at.file, at.line, at.col, path, message, suggestion})
}

func (l *loader) load(data []byte) *Config {
	l.files = []string{l.file}
	root, problems := readYAML(l.file, data)
	l.add(problems...)
	if root == nil {
		return nil
	}
	l.include(root, root, l.file)
	if l.partial {
		return nil // what is missing may stand in what could not be read
	}
	filled, unset := fillTree(root, l.file, l.o)
	l.add(filled...)
	l.unset = unset.sorted(l.files)
	l.broken = map[string]bool{}
	for _, p := range slices.Concat(l.problems, l.unset) {
		l.broken[p.Path] = p.Path != ""
	}
	prune(root, nil)
	l.catalogue = newCatalogue(l.o.Modules, root)
	l.checkForm(root)
	l.check(root)
	l.checkSupported(root)
	if len(l.problems) > 0 {
		return nil
	}
	c, err := l.decode(root)
	if err != nil {
		l.fail(root.at, "", "cannot be decoded: "+err.Error(), "")
		return nil
	}
	c.known = l.catalogue
	return c
}

// include merges into root the files that from includes, and those that they include.
func (l *loader) include(root, from *node, fromFile string) {
	list := from.get("dev", "include")
	if list == nil || list.kind != isList {
		return // its form is checked later
	}
	for i, item := range list.items {
		path := fmt.Sprintf("dev.include[%d]", i)
		if item.kind != isString {
			l.fail(item.at, path, "is "+item.kind.String()+", where the name of a file is wanted", "")
			continue
		}
		n, file := l.included(item, path, fromFile)
		if n == nil {
			l.partial = true
			continue
		}
		l.include(root, n, file)
		dropInclude(n)
		l.merge(root, n, "")
	}
}

// dropInclude removes the list of included files, which have been read.
func dropInclude(n *node) {
	if dev := n.get("dev"); dev != nil {
		dev.fields = slices.DeleteFunc(dev.fields, func(f field) bool { return f.key == "include" })
	}
}

// included reads one file from the app's folder; nil if it cannot be.
func (l *loader) included(item *node, path, fromFile string) (*node, string) {
	name := filepath.FromSlash(item.text)
	dir := filepath.Dir(l.file)
	file := filepath.Join(filepath.Dir(fromFile), name)
	rel, err := filepath.Rel(dir, file)
	switch {
	case strings.Contains(item.text, "{{"):
		l.fail(item.at, path, "the name of an included file cannot hold a template", "write it out")
	case err != nil || filepath.IsAbs(name) || strings.HasPrefix(item.text, "/") || !filepath.IsLocal(rel):
		l.fail(item.at, path, fmt.Sprintf("%q leads out of the app's folder", item.text), "name a file inside it, relative to this file")
	case slices.Contains(l.files, file):
		l.fail(item.at, path, fmt.Sprintf("%q is part of the app already", item.text), "include each file once, and none from within itself")
	case len(l.files) > maxIncludes:
		l.fail(item.at, path, fmt.Sprintf("more than %d files are included", maxIncludes), "")
	default:
		data, err := readWithin(dir, rel)
		if err != nil {
			l.fail(item.at, path, fmt.Sprintf("%q cannot be read: %v", item.text, why(err)), "")
			return nil, ""
		}
		l.files = append(l.files, file)
		n, problems := readYAML(file, data)
		l.add(problems...)
		return n, file
	}
	return nil, ""
}

// why returns what is wrong with a file, without its name.
func why(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file")
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// readWithin reads a file of a folder, and follows no link out of it.
func readWithin(dir, rel string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readSome(f)
}

// merge adds to a what b says: lists append, maps merge, and what is neither
// must be the same in both.
func (l *loader) merge(a, b *node, path string) {
	for _, f := range b.fields {
		old := a.field(f.key)
		p := joinPath(path, f.key)
		switch {
		case old == nil:
			a.fields = append(a.fields, f)
		case f.value.kind == isNull:
		case old.value.kind == isNull:
			old.value = f.value
		case old.value.kind == isMap && f.value.kind == isMap:
			l.merge(old.value, f.value, p)
		case old.value.kind == isList && f.value.kind == isList:
			old.value.items = append(old.value.items, f.value.items...)
		case old.value.kind != f.value.kind || old.value.text != f.value.text:
			l.fail(f.at, p, fmt.Sprintf("is set to something else at %s", old.at), "keep one of the two")
		}
	}
}

// freeForm are the places where null is a value; elsewhere it says that
// nothing is written.
var freeForm = []string{
	"tools.modules.*.config.**", "tools.modules.*.constraints.**", "tools.modules.*.setup.[].params.**",
	"agents.[].brain.config.**", "runtime.payload_schema.**", "runtime.input.**", "runtime.output.**",
}

// prune removes the keys under which nothing is written. A module under which
// nothing is written is configured with nothing.
func prune(n *node, segs []string) {
	if n.kind == isMap {
		n.fields = slices.DeleteFunc(n.fields, func(f field) bool {
			at := append(segs[:len(segs):len(segs)], f.key)
			if f.value.kind == isNull && under(at, "tools.modules.*") {
				f.value.kind = isMap
			}
			return f.value.kind == isNull && (!underAny(at, freeForm) || slices.ContainsFunc(freeForm, func(p string) bool {
				return under(at, strings.TrimSuffix(p, ".**"))
			}))
		})
	}
	for _, f := range n.fields {
		prune(f.value, append(segs[:len(segs):len(segs)], f.key))
	}
	for _, item := range n.items {
		prune(item, append(segs[:len(segs):len(segs)], "[]"))
	}
}

// decode makes the Config of a tree that was checked.
func (l *loader) decode(root *node) (*Config, error) {
	c := &Config{}
	if err := json.Unmarshal(root.json(), c); err != nil {
		return nil, err
	}
	setDefaults(reflect.ValueOf(c).Elem(), root)
	l.resolveNames(c)
	if c.Runtime.EntryAgent == "" && len(c.Agents) > 0 {
		c.Runtime.EntryAgent = c.Agents[0].ID
	}
	c.places, c.lexicon, c.words, c.skills, c.file, c.called = map[string]place{}, l.lexicon, l.words, l.skills, l.file, l.called
	c.unset, c.unread = l.unset, l.unread
	all, _ := survey(root)
	for _, s := range all {
		c.places[s.path] = s.at
	}
	return c, nil
}

// setDefaults gives the fields that n does not have the defaults of their tags.
func setDefaults(v reflect.Value, n *node) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			setDefaults(v.Elem(), n)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				setDefaults(v.Index(i), n.list()[i])
			}
		}
	case reflect.Map:
		if v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		for _, key := range v.MapKeys() {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(key))
			setDefaults(elem, n.get(key.String()))
			v.SetMapIndex(key, elem)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _ := jsonName(field)
			if name == "" {
				continue
			}
			child := n.get(name)
			if text := field.Tag.Get("default"); text != "" && child == nil {
				if err := json.Unmarshal([]byte(text), v.Field(i).Addr().Interface()); err != nil {
					panic(fmt.Sprintf("app: the default of %s: %v", field.Name, err))
				}
			}
			setDefaults(v.Field(i), child)
		}
	}
}
