package app

// unsupported are the keys that are known, and whose machinery this version
// lacks: they are refused where they ask for it. Whoever builds the machinery
// deletes the line.
var unsupported = []struct {
	pattern string // see under
	what    string // what is not supported
	value   string // the only value that is refused; "": all but empty ones and false
}{
	{"runtime.hooks", "hooks are", ""},
	{"runtime.watchers", "watchers are", ""},
	{"runtime.scheduler", "the scheduler is", ""},
	{"runtime.triggers", "triggers are", ""},
	{"agents.[].hooks", "hooks are", ""},
	{"tools.modules.*.credential", "stored credentials are", ""},
	{"tools.channels", "channels are", ""},
}

// checkSupported refuses what is known and cannot be done yet.
func (l *loader) checkSupported(root *node) {
	for _, p := range l.problems { // what is not a boolean asks for nothing
		l.broken[p.Path] = p.Path != ""
	}
	all, order := survey(root)
	for _, pointer := range order {
		s := all[pointer]
		for _, u := range unsupported {
			if !under(s.segs, u.pattern) {
				continue
			}
			if u.value == "" && s.node.empty() || u.value != "" && s.node.str() != u.value || l.broken[s.path] {
				continue
			}
			remedy := "remove the key"
			if u.value != "" {
				remedy = "write another value"
			}
			l.fail(s.at, s.path, u.what+" not supported by this version", remedy)
		}
	}
}
