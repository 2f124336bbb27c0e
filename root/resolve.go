package root

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// maxDelete bounds the entries that are looked at before a folder may be deleted or moved.
const maxDelete = 200_000

// Resolve judges name for an access and returns the place it stands for.
//
// A name is relative to the root, or absolute when it begins with the root's path (in its resolved form or as it was
// given to Open). It is resolved as the kernel would, one component after the other: ".." behind a link is the parent
// of the link's target, a file is no folder, and links, relative or absolute, are followed. Whatever leaves the root at
// any step is refused, even when a later step would come back, as in "../NAME-OF-ROOT/a.txt". Missing files and folders
// are no error: Exists is false. For ToDelete a link at the end is not followed, because what is deleted is the link;
// its target must lie in the root all the same.
//
// The rules are applied to the place it arrives at and to the place of every link on the way. A folder is refused for
// ToDelete when anything beneath it is blocked or protected. Every refusal is an [*Error]; other errors are those of
// the file system.
func (r *Root) Resolve(name string, access Access) (Path, error) {
	if access < ToList || access > ToDelete {
		return Path{}, refuse(name, Invalid, "the access is not stated; it must be one of list, read, write and delete")
	}
	rules := r.current()
	if rules.err != nil {
		return Path{}, badRules(name, rules.err)
	}
	w := walker{root: r, rules: rules, name: name, keepLink: access == ToDelete}
	if err := w.walk(); err != nil {
		return Path{}, err
	}
	if err := w.judge(access); err != nil {
		return Path{}, err
	}
	if err := r.judgeTwins(name, w.st, access); err != nil {
		return Path{}, err
	}
	if access == ToDelete {
		if err := r.judgeTree(name, w.rel, w.st.mode); err != nil {
			return Path{}, err
		}
		if err := r.judgeTarget(name, w.st.mode, rules); err != nil {
			return Path{}, err
		}
	}
	return w.path(), nil
}

func badRules(name string, err error) *Error {
	return refuse(name, BadRules, "everything is denied while a rule file cannot be read: %v", err)
}

// walker is one resolution under way.
type walker struct {
	root     *Root
	rules    *rules
	name     string // as it was given, for messages
	keepLink bool   // do not follow a link at the end

	rel     string // where it stands: without links, "" is the root
	st      stat   // of rel, when it is not missing
	missing bool   // rel does not exist
	wantDir bool   // the name ends in a slash
	links   int
}

func (w *walker) path() Path {
	p := Path{Rel: w.rel, Abs: w.root.abs(w.rel), Exists: !w.missing, Mode: w.st.mode}
	if w.rel == "" {
		p.Rel = "."
	}
	if w.missing && w.wantDir {
		p.Mode = fs.ModeDir
	}
	return p
}

// walk goes from the root to the end of the name.
func (w *walker) walk() error {
	name := toSlash(w.name)
	if err := checkName(name); err != nil {
		return err
	}
	rest, err := w.enter(name)
	if err != nil {
		return err
	}
	w.st.mode = fs.ModeDir
	for rest != "" {
		var component string
		var more bool
		component, rest, more = strings.Cut(rest, "/")
		w.wantDir = more && rest == ""
		if rest, err = w.step(component, rest, more); err != nil {
			return err
		}
	}
	if w.wantDir && !w.missing && !w.st.mode.IsDir() {
		return w.notFolder()
	}
	return w.finish()
}

// finish asks for the mode of a folder that was reached by "..", or of the root.
func (w *walker) finish() error {
	if w.missing || w.st.known {
		return nil
	}
	rel := w.rel
	if rel == "" {
		rel = "."
	}
	st, err := w.root.lstat(rel)
	if err != nil {
		return fmt.Errorf("path %q: %w", w.name, err)
	}
	w.st = st
	return nil
}

// enter returns what is left of name behind the root: all of a relative name.
func (w *walker) enter(name string) (string, error) {
	if !isAbs(name) {
		return name, nil
	}
	for _, base := range [...]string{w.root.dir, w.root.given} {
		if rest, ok := behind(toSlash(base), name, w.rules.fold); ok {
			w.rel = ""
			return rest, nil
		}
	}
	return "", w.outside()
}

func (w *walker) outside() *Error {
	return refuse(w.name, Outside, "it leads out of the root; write a path relative to the root, which stays beneath it")
}

// behind cuts the absolute base off an absolute name, component by component. A ".." on the way makes it fail.
func behind(base, name string, fold bool) (rest string, ok bool) {
	for {
		base, name = skip(base), skip(name)
		if base == "" {
			return name, true
		}
		var want, have string
		want, base, _ = strings.Cut(base, "/")
		have, name, _ = strings.Cut(name, "/")
		if want != have && !(fold && strings.EqualFold(want, have)) {
			return "", false
		}
	}
}

// skip cuts off leading slashes and components that are ".".
func skip(name string) string {
	for {
		switch {
		case strings.HasPrefix(name, "/"):
			name = name[1:]
		case strings.HasPrefix(name, "./"):
			name = name[2:]
		case name == ".":
			return ""
		default:
			return name
		}
	}
}

// step takes one component and returns what is then left.
func (w *walker) step(component, rest string, more bool) (string, error) {
	if !w.missing && !w.st.mode.IsDir() {
		return "", w.notFolder()
	}
	switch component {
	case "", ".":
		return rest, nil
	case "..":
		return rest, w.up()
	}
	if !isLocal(component) {
		return "", refuse(w.name, Invalid, "%q is not a file name on this system; use another name", component)
	}
	if alwaysBlocked(component) {
		return "", w.refuseBlocked(w.rules.blocked(join(w.rel, component), true))
	}
	next := join(w.rel, component)
	if len(next) > maxName {
		return "", refuse(w.name, Invalid, "it resolves to more than %d bytes; use a shorter path", maxName)
	}
	if w.missing {
		w.rel = next
		return rest, nil
	}
	st, err := w.root.lstat(next)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.rel, w.st, w.missing = next, stat{}, true
		return rest, nil
	case err != nil:
		return "", w.unless(fmt.Errorf("path %q: %w", w.name, err), next)
	case st.mode&fs.ModeSymlink != 0:
		return w.link(next, rest, more, st)
	}
	if w.rules.fold {
		next = join(w.rel, w.root.trueName(w.rel, component, st))
	}
	w.rel, w.st = next, st
	return rest, nil
}

// up goes to the parent.
func (w *walker) up() error {
	switch {
	case w.missing:
		return w.unless(refuse(w.name, Invalid, "%s does not exist, so that .. behind it leads nowhere; leave both out", w.rel), w.rel)
	case w.rel == "":
		return w.outside()
	}
	if why := w.rules.blocked(w.rel, true); why != "" {
		return w.refuseBlocked(why)
	}
	w.rel, w.st = parent(w.rel), stat{mode: fs.ModeDir}
	return nil
}

// link follows the link at next, or stops at it.
func (w *walker) link(next, rest string, more bool, st stat) (string, error) {
	if why := w.rules.blocked(next, false); why != "" {
		return "", w.refuseBlocked(why)
	}
	if w.keepLink && strings.Trim(rest, "/") == "" {
		if more {
			return "", refuse(w.name, Invalid, "it is a link; name it without the closing slash to delete the link itself")
		}
		w.rel, w.st = next, st
		return "", nil
	}
	if w.links++; w.links > maxLinks {
		return "", refuse(w.name, Invalid, "it goes through more than %d links, or through links that lead to each other; name the target itself", maxLinks)
	}
	target, err := w.root.readlink(next)
	if err != nil {
		return "", fmt.Errorf("path %q: %w", w.name, err)
	}
	target = toSlash(target)
	if isAbs(target) {
		if target, err = w.enter(target); err != nil {
			return "", err
		}
		w.st = stat{mode: fs.ModeDir}
	}
	if more {
		target += "/" + rest
	}
	if target == "" {
		return "", nil
	}
	return target, nil
}

func (w *walker) notFolder() error {
	return w.unless(refuse(w.name, Invalid, "%s is %s, not a folder; end the path there", w.rel, kind(w.st.mode)), w.rel)
}

// unless returns err, or the refusal when rel is blocked: what is blocked is not told about.
func (w *walker) unless(err error, rel string) error {
	if why := w.rules.blocked(rel, false); why != "" {
		return w.refuseBlocked(why)
	}
	return err
}

func (w *walker) refuseBlocked(why string) *Error { return refuse(w.name, Blocked, "%s", why) }

// judge applies the rules to where the walk ended.
func (w *walker) judge(access Access) error {
	return w.rules.judge(w.name, w.rel, w.st.mode, w.missing && w.wantDir, access)
}

// judge applies the rules to one place. A special file is refused for every access: opening one may block for ever.
func (s *rules) judge(name, rel string, mode fs.FileMode, asDir bool, access Access) error {
	isDir := mode.IsDir() || asDir
	if why := s.blocked(rel, isDir); why != "" {
		return refuse(name, Blocked, "%s", why)
	}
	if mode&fs.ModeType&^(fs.ModeDir|fs.ModeSymlink) != 0 {
		return refuse(name, Special, "it is %s; only files and folders can be used", kind(mode))
	}
	if access < ToWrite {
		return nil
	}
	if access == ToDelete && rel == "" {
		return refuse(name, Protected, "it is the root itself, which stays; name what lies beneath it")
	}
	if why := s.guarded(rel, isDir); why != "" {
		return refuse(name, Protected, "%s", why)
	}
	return nil
}

// judgeTarget refuses to delete a link that leads out of the root, or to what is blocked.
func (r *Root) judgeTarget(name string, mode fs.FileMode, rules *rules) error {
	if mode&fs.ModeSymlink == 0 {
		return nil
	}
	w := walker{root: r, rules: rules, name: name}
	if err := w.walk(); err != nil {
		return err
	}
	return w.judge(ToList)
}

// judgeTree refuses to delete a folder that holds something blocked or protected.
func (r *Root) judgeTree(name, rel string, mode fs.FileMode) error {
	if !mode.IsDir() {
		return nil
	}
	rules := r.current()
	if rules.err != nil {
		return badRules(name, rules.err)
	}
	for _, places := range [...][]string{rules.blocks, rules.protected} {
		for _, place := range places {
			if within(place, rel, rules.fold) {
				return refuse(name, Protected, "%s lies beneath it and belongs to Helve; delete its other content one by one", place)
			}
		}
	}
	left := maxDelete
	return r.eachBeneath(context.Background(), rel, func(e Entry) error {
		if left--; left < 0 {
			return fmt.Errorf("path %q: %w to check before deleting it (%d); delete its folders one by one", name, ErrTooMany, maxDelete)
		}
		if e.Err != nil {
			return fmt.Errorf("path %q: %s cannot be checked before deleting it: %w", name, e.Rel, e.Err)
		}
		if strings.HasPrefix(e.Name, tempPrefix) && !e.Mode.IsDir() {
			return nil // left behind by a write that was cut short
		}
		if why := rules.blocked(e.Rel, e.Mode.IsDir()); why != "" {
			return refuse(name, Blocked, "it holds what is blocked and must stay; delete its other content one by one")
		}
		if why := rules.guarded(e.Rel, e.Mode.IsDir()); why != "" {
			return refuse(name, Protected, "it holds %s: %s", e.Rel, why)
		}
		return nil
	})
}

// trueName is the name under which a folder lists the entry that answers to component, on file systems that take
// several spellings for one name.
func (r *Root) trueName(rel, component string, st stat) string {
	d, err := r.openDir(rel)
	if err != nil {
		return component
	}
	defer d.close()
	entries, err := d.list(-1)
	if err != nil {
		return component
	}
	for _, e := range entries {
		if e.Name() == component {
			return component
		}
	}
	for _, e := range entries {
		if other, err := d.lstat(e.Name()); err == nil && other.same(st) {
			return e.Name()
		}
	}
	return component
}

func join(rel, component string) string {
	if rel == "" {
		return component
	}
	return rel + "/" + component
}

func parent(rel string) string {
	if dir := path.Dir(rel); dir != "." {
		return dir
	}
	return ""
}

// toSlash makes a name's separators slashes; backslashes are ordinary characters everywhere but on Windows.
func toSlash(name string) string {
	if os.PathSeparator == '/' {
		return name
	}
	return strings.ReplaceAll(name, string(os.PathSeparator), "/")
}
