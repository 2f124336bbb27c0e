package audit

import (
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Filter says which records to find. Empty fields let everything through;
// of the others all must fit.
type Filter struct {
	Tool         string // a pattern: * stands for any text, ? for one character
	Decision     string
	Session      string
	App          string
	User         string
	Error        string    // code; "*": any error
	Since, Until time.Time // Since <= time < Until
	Text         string    // part of any name, id, reason, note or of the arguments, in any case
	Limit        int       // greatest number of records; 0: all
	Newest       bool      // the newest first, instead of the oldest
}

// Query yields the records in the log in dir that f lets through. A line that
// cannot be read is yielded as an error that names its file and place, and the
// rest follows. An unfinished last line is not yet a record. Nothing is
// checked against the chain: that is what Verify does.
func Query(dir string, f Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		files, err := listFiles(dir)
		if err != nil {
			yield(Record{}, explain(dir, err))
			return
		}
		if f.Newest {
			slices.Reverse(files)
		}
		m := newMatcher(f)
		found := 0
		for _, name := range files {
			for line, err := range linesOf(filepath.Join(dir, name.String()), f.Newest) {
				if err != nil {
					if !yield(Record{}, explain(dir, err)) {
						return
					}
					break
				}
				r, ok, err := m.read(name.String(), line)
				if !ok && err == nil {
					continue
				}
				if !yield(r, err) {
					return
				}
				if err == nil {
					found++
				}
				if f.Limit > 0 && found == f.Limit {
					return
				}
			}
		}
	}
}

// A matcher is a filter made ready.
type matcher struct {
	Filter
	text, quoted string // Text folded, and as it stands in a JSON string
}

func newMatcher(f Filter) *matcher {
	quoted := appendString(nil, f.Text)
	return &matcher{f, strings.ToLower(f.Text), strings.ToLower(string(quoted[1 : len(quoted)-1]))}
}

// read makes a record of a line; ok is false if the filter does not let it through.
func (m *matcher) read(file string, line rawLine) (r Record, ok bool, err error) {
	if line.text[len(line.text)-1] != '\n' {
		return r, false, nil
	}
	if err := json.Unmarshal(line.text, &r); err != nil {
		return Record{}, false, fmt.Errorf("audit: %s: line at byte %d: %w", file, line.at, err)
	}
	if r.Seq == 0 || r.Hash == "" {
		return Record{}, false, fmt.Errorf("audit: %s: line at byte %d: is not a line of this log", file, line.at)
	}
	r.File = file
	return r, m.fits(&r), nil
}

func (m *matcher) fits(r *Record) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(m.Decision, r.Decision) && is(m.Session, r.Session) && is(m.App, r.App) && is(m.User, r.User) &&
		(is(m.Error, r.Error) || m.Error == "*" && r.Error != "") &&
		(m.Tool == "" || glob(m.Tool, r.Tool)) &&
		(m.Since.IsZero() || !r.Time.Before(m.Since)) &&
		(m.Until.IsZero() || r.Time.Before(m.Until)) &&
		(m.text == "" || m.mentions(r))
}

func (m *matcher) mentions(r *Record) bool {
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), m.text) }
	return slices.ContainsFunc([]string{
		r.Tool, r.Reason, r.Error, r.Stage, r.Approver, r.Call, r.Parent, r.Session,
		r.User, r.Agent, r.App, r.Kind, r.Decision, r.Effect, r.ResultDigest,
	}, has) || slices.ContainsFunc(r.Notes, has) || slices.ContainsFunc(r.Via, has) ||
		strings.Contains(strings.ToLower(string(r.Args)), m.quoted)
}

// glob reports whether pattern, with * and ?, fits the whole of s.
func glob(pattern, s string) bool {
	p, t := []rune(pattern), []rune(s)
	star, back := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, back = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			back++
			i, j = star+1, back
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
