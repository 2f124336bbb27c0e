package root

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// maxRules bounds a rule file, in bytes.
const maxRules = 1 << 20

// racy is how close to its last change a file may have been read for a later change to leave the same time stamp: two
// seconds, the grain of FAT.
const racy = 2 * time.Second

// rules is what was read from the two rule files at one moment; it does not change.
type rules struct {
	ignore, protect   *matcher
	stamps            [2]stamp
	texts             [2]string
	fold              bool  // the file system takes "A" and "a" for one name
	err               error // why everything is denied
	blocks, protected []string
}

// stamp tells one state of a file from the next. The zero stamp is that of a missing file.
type stamp struct {
	dev, ino            uint64
	size, mtime, change int64
	settled             bool // read long enough after its last change
}

func (s stamp) of(t stamp) bool { return s.settled && s.equal(t) }

func (s stamp) equal(t stamp) bool {
	s.settled, t.settled = false, false
	return s == t
}

// current returns the rules as they stand in the root's rule files now, reading them again when they changed.
func (r *Root) current() *rules {
	have := r.rules.Load()
	a, errA := r.stamp(IgnoreFile)
	b, errB := r.stamp(ProtectFile)
	if have != nil && errA == nil && errB == nil && have.stamps[0].of(a) && have.stamps[1].of(b) {
		return have
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.load(r.rules.Load())
	r.rules.Store(next)
	return next
}

func (r *Root) stamp(name string) (stamp, error) {
	st, err := r.lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, nil
	}
	if err != nil {
		return stamp{}, err
	}
	return stamp{dev: st.dev, ino: st.ino, size: st.size, mtime: st.mtime, change: st.ctime}, nil
}

// load reads both rule files. What cannot be read denies everything, until it can be read.
func (r *Root) load(before *rules) *rules {
	next := &rules{fold: foldsNames, blocks: r.blocks, protected: r.protects}
	for i, name := range [...]string{IgnoreFile, ProtectFile} {
		text, st, err := r.readRules(name)
		if err != nil {
			next.err = err
			continue
		}
		next.stamps[i], next.texts[i] = st, text
		if !next.fold && st.ino != 0 {
			other, err := r.stamp(strings.ToUpper(name))
			next.fold = err == nil && other.equal(st)
		}
	}
	if next.err != nil {
		return next
	}
	if before != nil && before.err == nil && before.texts == next.texts && before.fold == next.fold {
		next.ignore, next.protect = before.ignore, before.protect
		return next
	}
	if next.ignore, next.err = newMatcher(IgnoreFile, next.texts[0], next.fold); next.err != nil {
		return next
	}
	next.protect, next.err = newMatcher(ProtectFile, next.texts[1], next.fold)
	return next
}

// readRules reads one rule file; a missing one is empty.
func (r *Root) readRules(name string) (string, stamp, error) {
	before, err := r.stamp(name)
	if err != nil {
		return "", stamp{}, fmt.Errorf("%s: %w", name, err)
	}
	if before == (stamp{}) {
		return "", stamp{settled: true}, nil
	}
	st, err := r.lstat(name)
	if err != nil {
		return "", stamp{}, fmt.Errorf("%s: %w", name, err)
	}
	if !st.mode.IsRegular() {
		return "", stamp{}, fmt.Errorf("%s: is %s; it must be an ordinary file", name, kind(st.mode))
	}
	if st.size > maxRules {
		return "", stamp{}, fmt.Errorf("%s: is larger than %d bytes; shorten it", name, maxRules)
	}
	f, err := r.openFile(name, ToList, os.O_RDONLY, 0)
	if err != nil {
		return "", stamp{}, fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	if err != nil {
		return "", stamp{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxRules {
		return "", stamp{}, fmt.Errorf("%s: is larger than %d bytes; shorten it", name, maxRules)
	}
	before.settled = time.Since(time.Unix(0, max(before.mtime, before.change))) > racy
	return string(data), before, nil
}

// blocked tells why rel may be neither read nor listed nor written; "" when it may.
func (s *rules) blocked(rel string, isDir bool) string {
	if rel == "" {
		return ""
	}
	for rest := rel; rest != ""; {
		var component string
		component, rest, _ = strings.Cut(rest, "/")
		if alwaysBlocked(component) {
			return fmt.Sprintf("%s belongs to git or to Helve itself and is never opened; work on another path", component)
		}
	}
	if s.under(s.blocks, rel) {
		return "it holds Helve's own state and is never opened; work on another path"
	}
	if p := s.ignore.match(rel, isDir); p != nil {
		return fmt.Sprintf("line %d of %s (%s) blocks it; only the operator can change that file", p.line, IgnoreFile, p.source)
	}
	return ""
}

// guarded tells why rel may not be written; "" when it may, as far as protection goes.
func (s *rules) guarded(rel string, isDir bool) string {
	if alwaysProtected(rel) {
		return "it is a rule file, which only the operator changes; it can be read"
	}
	if s.under(s.protected, rel) {
		return "it belongs to Helve's configuration, which only the operator changes; it can be read"
	}
	if p := s.protect.match(rel, isDir); p != nil {
		return fmt.Sprintf("line %d of %s (%s) protects it; it can be read, not written", p.line, ProtectFile, p.source)
	}
	return ""
}

// under reports whether rel is one of the places or lies beneath one.
func (s *rules) under(places []string, rel string) bool {
	for _, place := range places {
		if place == "." || within(rel, place, s.fold) {
			return true
		}
	}
	return false
}

// within reports whether rel is place or lies beneath it.
func within(rel, place string, fold bool) bool {
	if len(rel) < len(place) || len(rel) > len(place) && rel[len(place)] != '/' {
		return false
	}
	if fold {
		return strings.EqualFold(rel[:len(place)], place)
	}
	return rel[:len(place)] == place
}

// visible is blocked without the parents, for walks that prune: they judged the parents before.
func (s *rules) visible(rel, base string, isDir bool) bool {
	return addressable(base) && !alwaysBlocked(base) && !s.under(s.blocks, rel) && s.ignore.last(rel, isDir) == nil
}

// kind names what a mode is, for messages.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode.IsRegular():
		return "a file"
	}
	return "not an ordinary file"
}

// Hidden returns the patterns of the rule file that hides, without those that
// take back what others hide: each hides a name of one component anywhere, and
// a path from the root. It fails where the file cannot be read.
func (r *Root) Hidden() ([]string, error) {
	have := r.current()
	if have.err != nil {
		return nil, have.err
	}
	var hidden []string
	for _, p := range have.ignore.patterns {
		if !p.negated {
			hidden = append(hidden, p.text)
		}
	}
	return hidden, nil
}
