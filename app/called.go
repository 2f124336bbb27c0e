package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A caller is an app file from which another is read, since it may call it.
type caller struct{ file, id string }

// A callee is an app that another may call.
type callee struct {
	config    *Config
	catalogue *catalogue // what it has, by which rules about it are judged
}

// maxCallees bounds how many apps one may call.
const maxCallees = 50

// checkApps reads the apps that may be called. What is wrong with them is wrong
// with this one: a call is no time to find out.
func (l *loader) checkApps(root *node) {
	all := root.get("tools", "apps").members()
	if len(all) > maxCallees {
		l.fail(all[maxCallees].at, "tools.apps", fmt.Sprintf("more than %d apps are named", maxCallees), "")
		return
	}
	for _, f := range all {
		path := joinPath("tools.apps", f.key)
		if !idForm.MatchString(f.key) {
			l.fail(f.at, path, fmt.Sprintf("%q is no name for an app", f.key), "use small letters, digits, - and _")
			continue
		}
		file := f.value.get("file")
		if file == nil || file.kind != isString || l.broken[path] || l.broken[path+".file"] {
			continue
		}
		text, ok := l.lexiconFile(file, path+".file")
		if !ok {
			continue
		}
		to, ok := l.callee(root, file, path+".file", l.words[len(l.words)-1], text)
		if !ok {
			continue
		}
		if l.called == nil {
			l.called = map[string]callee{}
		}
		l.called[f.key] = to
		own := l.catalogue
		l.catalogue = to.catalogue
		for i, r := range f.value.get("may").list() {
			l.checkRule(r, fmt.Sprintf("%s.may[%d]", path, i))
		}
		l.catalogue = own
	}
}

// callee reads one of them.
func (l *loader) callee(root, at *node, path, file string, text []byte) (callee, bool) {
	callers := append(slices.Clone(l.callers), caller{realFile(l.file), root.get("app", "app_id").str()})
	refuse := func(message, remedy string) (callee, bool) {
		l.fail(at.at, path, message, remedy)
		return callee{}, false
	}
	for i, c := range callers {
		if c.file == realFile(file) {
			return refuse("apps call each other in a circle: "+wayOf(callers[i:], file), "let one of them do without the other")
		}
	}
	if len(callers) > maxAgentDepth {
		return refuse(fmt.Sprintf("apps call apps at most %d deep, and this is deeper: %s", maxAgentDepth, wayOf(callers, file)), "let an app nearer to the first call it")
	}
	sub := &loader{file: file, o: l.o, callers: callers}
	sub.o.Vars = nil
	c := sub.load(text)
	l.add(sub.problems...)
	l.files = append(l.files, sub.files...)
	l.words = append(append(l.words, sub.files...), sub.words...)
	switch {
	case c == nil:
		return callee{}, false
	case c.Runtime.Mode != "one_shot":
		return refuse(fmt.Sprintf("%s is no one-shot app: its runtime.mode is %s", at.text, c.Runtime.Mode), "write mode: one_shot there")
	case len(c.Agents) == 0:
		return refuse(at.text+" declares no agent that could answer", "add one under agents: there")
	}
	for _, other := range callers {
		if other.id == c.App.ID {
			return refuse(fmt.Sprintf("%s has the app_id %q, as has %s: what is kept for them would be mixed up", at.text, c.App.ID, filepath.Base(other.file)), "give one of them another")
		}
	}
	return callee{c, sub.catalogue}, true
}

// wayOf writes how an app comes to be called.
func wayOf(callers []caller, file string) string {
	var names []string
	for _, c := range callers {
		names = append(names, filepath.Base(c.file))
	}
	return strings.Join(append(names, filepath.Base(file)), " → ")
}

// realFile returns a file's name, by which it is told from others.
func realFile(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real
	}
	return file
}
