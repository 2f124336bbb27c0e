package root

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// The rules know files by their names, and a file may have several (hard links). One that does is looked up among the
// files of the root that have several, too, and are hidden or protected by one of them.

// twinsAge is how long what was found out about names holds; ten times as long as the walk took if that is more, so
// that looking again never takes more than a tenth of the time.
const twinsAge = time.Second

// fileID is what all names of a file have in common.
type fileID struct{ dev, ino uint64 }

// twins are the files with several names that are hidden or protected by one, and why. They do not change.
type twins struct {
	ignore, protect  *matcher // by which they were judged
	blocks, protects int      // of the places that are blocked or protected besides, how many there were
	until            time.Time
	hidden, kept     map[fileID]string
	err              error // why it is not known which there are
}

func (t *twins) of(s *rules) bool {
	return t != nil && t.ignore == s.ignore && t.protect == s.protect && t.blocks == len(s.blocks) && t.protects == len(s.protected) &&
		time.Now().Before(t.until)
}

// judgeTwins refuses a file one of whose other names in the root forbids the access. Of names outside of the root, and
// in folders that the process may not read, nothing is known.
func (r *Root) judgeTwins(name string, st stat, access Access) error {
	if st.links < 2 || !st.mode.IsRegular() || access == ToList {
		return nil
	}
	rules := r.current()
	if rules.err != nil {
		return badRules(name, rules.err)
	}
	t := r.twinsBy(rules)
	if t.err != nil {
		return refuse(name, Blocked, "it has further names (hard links), and whether one of them is hidden cannot be told (%v); ask the operator to replace it by a copy", t.err)
	}
	const also = "it has another name (a hard link), of which holds: %s"
	if why, found := t.hidden[st.id()]; found {
		return refuse(name, Blocked, also, why)
	}
	if why, found := t.kept[st.id()]; found && access > ToRead {
		return refuse(name, Protected, also, why)
	}
	return nil
}

// twinsBy returns the twins as they stand, or stood just now.
func (r *Root) twinsBy(rules *rules) *twins {
	if t := r.twins.Load(); t.of(rules) {
		return t
	}
	r.walking.Lock()
	defer r.walking.Unlock()
	if t := r.twins.Load(); t.of(rules) {
		return t
	}
	begun := time.Now()
	t := &twins{ignore: rules.ignore, protect: rules.protect, blocks: len(rules.blocks), protects: len(rules.protected),
		hidden: map[fileID]string{}, kept: map[fileID]string{}}
	t.err = t.collect(r, rules)
	t.until = time.Now().Add(max(twinsAge, 10*time.Since(begun)))
	r.twins.Store(t)
	return t
}

// collect looks through the root; without rules, only through what is hidden or protected in any case at its top.
func (t *twins) collect(r *Root, rules *rules) error {
	v := visitor{root: r, ctx: context.Background(), opts: WalkOptions{Limit: DefaultWalkLimit}}
	var under, why string // the hidden folder that is walked through, and why it is hidden
	v.visit = func(e Entry) error {
		if e.Err != nil {
			return passable(e.Err)
		}
		because := why
		if under == "" || !strings.HasPrefix(e.Rel, under) {
			under, why = "", ""
			because = rules.blocked(e.Rel, e.Mode.IsDir())
			if because != "" && e.Mode.IsDir() {
				under, why = e.Rel+"/", because
			}
		}
		if !e.Mode.IsRegular() {
			return nil
		}
		list := t.hidden
		if because == "" {
			list, because = t.kept, rules.guarded(e.Rel, false)
		}
		if because == "" {
			return nil
		}
		st, err := r.lstat(e.Rel)
		if err == nil && st.links > 1 {
			list[st.id()] = because
		}
		return passable(err)
	}
	if rules.ruled() {
		return v.start("")
	}
	for _, rel := range rules.always() {
		st, err := r.lstat(rel)
		if err == nil {
			err = v.visit(Entry{Rel: rel, Mode: st.mode})
		}
		if err == nil && st.mode.IsDir() {
			err = v.start(clean(rel))
		}
		if err = passable(err); err != nil {
			return err
		}
	}
	return nil
}

// passable returns err, or nil where it says that something has gone or may not be read.
func passable(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// ruled reports whether a rule file has rules.
func (s *rules) ruled() bool { return len(s.ignore.patterns)+len(s.protect.patterns) > 0 }

// always are the places that are hidden or protected whatever the rule files say: those in the root itself, and those
// that Helve named.
func (s *rules) always() []string {
	places := slices.Concat([]string{gitDir, StateDir, IgnoreFile, ProtectFile}, s.blocks, s.protected)
	slices.Sort(places)
	return slices.Compact(places)
}

// twinFences returns what tells the visible names of hidden and protected files.
func (r *Root) twinFences(rules *rules) (func(rel string, mode fs.FileMode) (hidden, kept bool), error) {
	t := r.twinsBy(rules)
	if t.err != nil {
		return nil, fmt.Errorf("which files have further names (hard links) cannot be told: %w", t.err)
	}
	return func(rel string, mode fs.FileMode) (hidden, kept bool) {
		if len(t.hidden)+len(t.kept) == 0 || !mode.IsRegular() {
			return false, false
		}
		st, err := r.lstat(rel)
		if err != nil || st.links < 2 {
			return false, false
		}
		_, hidden = t.hidden[st.id()]
		_, kept = t.kept[st.id()]
		return hidden, kept
	}, nil
}
