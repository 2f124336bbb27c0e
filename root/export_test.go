package root

// Excluded judges one path by a rule file alone, for the comparison with git: also with names folded, which a test
// cannot ask of the file system.
func Excluded(rules string, fold bool) (func(rel string, isDir bool) bool, error) {
	m, err := newMatcher("rules", rules, fold)
	return func(rel string, isDir bool) bool { return m.match(rel, isDir) != nil }, err
}
