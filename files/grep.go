package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// A Grep says what is looked for in files.
type Grep struct {
	Pattern    string // RE2
	Path       string // a folder or a file; "": "."
	Glob       string // names of the files to search; without a slash, of the last component
	IgnoreCase bool
	Literal    bool // Pattern is a text, not an expression
	Multiline  bool // a match may span lines
	FilesOnly  bool // only the names of files and how often
	Context    int  // lines around each match
	Limit      int  // matches, or files if FilesOnly; zero: 200
}

const (
	defaultMatches = 200
	grepTime       = 20 * time.Second // then what was found until then is given
	grepWorkers    = 4
)

// Grep returns the lines that match, as "path:line: text", and what was
// searched. Files are searched in the order of their paths.
func (f *Folder) Grep(ctx context.Context, in Grep) (string, error) {
	p, err := f.Resolve(orDot(in.Path), root.ToRead)
	switch {
	case err != nil:
		return "", err
	case !p.Exists:
		return "", f.Missing(ctx, p)
	}
	m, err := newMatcher(in)
	if err != nil {
		return "", err
	}
	if in.Limit == 0 {
		in.Limit = defaultMatches
	}
	in.Limit = f.limit(in.Limit)
	s := &search{folder: f, in: in, match: m}
	if err := s.collect(ctx, p); err != nil {
		return "", err
	}
	within, cancel := context.WithTimeout(ctx, grepTime)
	defer cancel()
	s.run(within)
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.late = within.Err() != nil
	return s.render(), nil
}

func orDot(name string) string {
	if name == "" {
		return "."
	}
	return name
}

// search is one search under way.
type search struct {
	folder *Folder
	in     Grep
	match  *matcher

	files  []string // from the root
	large  int      // files left out because of their size
	capped bool     // there are more entries than are looked at
	late   bool     // the time was over before the end

	next  atomic.Int64 // index of the next file
	found atomic.Int64
	done  []outcome // of the files, by index
}

// An outcome is what was found in one file.
type outcome struct {
	searched, binary, failed, more bool
	count                          int
	lines                          []line
}

// A line is shown because it matches, or because it stands near one that does.
type line struct {
	number int
	match  bool
	text   string
}

// collect lists the files to search.
func (s *search) collect(ctx context.Context, p root.Path) error {
	glob := s.in.Glob
	if glob != "" {
		clean, _, err := checkGlob("/glob", glob)
		if err != nil {
			return err
		}
		glob = clean
	}
	base := prefix(p.Rel)
	err := s.folder.each(ctx, p, func(rel string, size int64) error {
		name := strings.TrimPrefix(rel, base)
		if !strings.Contains(glob, "/") {
			name = path.Base(rel)
		}
		switch {
		case glob != "" && !doublestar.MatchUnvalidated(glob, name):
		case size > s.folder.maxRead():
			s.large++
		default:
			s.files = append(s.files, rel)
		}
		return nil
	})
	if errors.Is(err, root.ErrTooMany) {
		s.capped, err = true, nil
	}
	return err
}

// run searches the files. Those that were begun are the first ones, and all of
// them are finished, so that the outcome does not depend on chance.
func (s *search) run(ctx context.Context) {
	s.done = make([]outcome, len(s.files))
	var wg sync.WaitGroup
	for range min(grepWorkers, runtime.GOMAXPROCS(0), len(s.files)) {
		wg.Go(func() {
			for ctx.Err() == nil && s.found.Load() <= int64(s.in.Limit) {
				i := int(s.next.Add(1)) - 1
				if i >= len(s.files) {
					return
				}
				s.done[i] = s.file(s.files[i])
				n := s.done[i].count
				if s.in.FilesOnly {
					n = min(n, 1)
				}
				s.found.Add(int64(n))
			}
		})
	}
	wg.Wait()
}

func (s *search) file(rel string) outcome {
	data, err := s.folder.Root.ReadFile(root.Path{Rel: rel, Exists: true}, s.folder.maxRead())
	if err != nil {
		return outcome{failed: true}
	}
	if hasMark(data) {
		text, _, ok := Decode(data)
		if !ok {
			return outcome{binary: true}
		}
		data = []byte(text)
	}
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return outcome{binary: true}
	}
	out := outcome{searched: true}
	hits, more := s.match.find(data, s.in.Limit+1)
	out.count, out.more = len(hits), more
	if !s.in.FilesOnly && len(hits) > 0 {
		out.lines = around(data, hits, s.in.Context)
	}
	return out
}

// hasMark reports whether data begins with a byte order mark.
func hasMark(data []byte) bool {
	return bytes.HasPrefix(data, []byte(bom)) || bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
}

// render writes what was found.
func (s *search) render() string {
	var b strings.Builder
	shown, inFiles, cut := 0, 0, false
	for i, o := range s.done {
		if o.count == 0 {
			continue
		}
		if shown >= s.in.Limit {
			cut = true
			break
		}
		inFiles++
		name := s.folder.Show(s.files[i])
		if s.in.FilesOnly {
			fmt.Fprintf(&b, "%s (%s)\n", name, atLeast(o))
			shown++
			continue
		}
		if inFiles > 1 && s.in.Context > 0 {
			b.WriteString("--\n")
		}
		n := writeMatches(&b, name, o.lines, s.in.Limit-shown)
		shown += n
		cut = cut || n < o.count
	}
	b.WriteString("[" + s.summary(shown, inFiles, cut) + "]")
	return b.String()
}

func atLeast(o outcome) string {
	if o.more {
		return fmt.Sprintf("%d or more matches", o.count)
	}
	if o.count == 1 {
		return "1 match"
	}
	return fmt.Sprintf("%d matches", o.count)
}

// writeMatches writes lines up to the given number of matches, and returns how
// many matches it wrote.
func writeMatches(b *strings.Builder, name string, lines []line, most int) int {
	n, last := 0, 0
	for _, l := range lines {
		if l.match {
			if n == most {
				break
			}
			n++
		}
		if last > 0 && l.number > last+1 && hasContext(lines) {
			b.WriteString("--\n")
		}
		last = l.number
		mark := byte('-')
		if l.match {
			mark = ':'
		}
		fmt.Fprintf(b, "%s%c%d%c %s\n", name, mark, l.number, mark, l.text)
	}
	return n
}

func hasContext(lines []line) bool {
	for _, l := range lines {
		if !l.match {
			return true
		}
	}
	return false
}

// summary says how much was found, where, and what was left out.
func (s *search) summary(shown, inFiles int, cut bool) string {
	searched, binary, failed := 0, 0, 0
	for _, o := range s.done {
		switch {
		case o.searched:
			searched++
		case o.binary:
			binary++
		case o.failed:
			failed++
		}
	}
	var b strings.Builder
	switch {
	case s.in.FilesOnly:
		b.WriteString(count(shown, "file matches", "files match"))
	case shown == 0:
		b.WriteString("no match")
	default:
		fmt.Fprintf(&b, "%s in %s", count(shown, "match", "matches"), count(inFiles, "file", "files"))
	}
	fmt.Fprintf(&b, "; %s searched", count(searched, "file", "files"))
	for _, part := range []struct {
		n    int
		what string
	}{{binary, "not text"}, {s.large, "too large"}, {failed, "not readable"}} {
		if part.n > 0 {
			fmt.Fprintf(&b, ", %d %s", part.n, part.what)
		}
	}
	switch {
	case cut:
		b.WriteString("; there are more matches: narrow the search by path, glob or pattern, or raise limit")
	case s.late:
		fmt.Fprintf(&b, "; the time was over after %d of %d files: narrow the search by path or glob", searched, len(s.files))
	case s.capped:
		fmt.Fprintf(&b, "; only the first %d entries of the folder were looked at: search a smaller one", walkLimit)
	case shown == 0 && strings.Contains(s.in.Pattern, `\n`) && !s.in.Multiline && !s.in.Literal:
		b.WriteString("; a pattern with a line break matches only with multiline")
	case shown == 0 && len(s.files) == 0 && s.in.Glob != "":
		b.WriteString("; no file's name matches the glob")
	}
	return b.String()
}

func count(n int, one, many string) string {
	if n == 0 {
		return "no " + one
	}
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// invalid returns the error about an expression that cannot be read.
func invalid(err error) error {
	return tool.Errorf(tool.CodeValidation, "/pattern: %s; the syntax is RE2, without lookaround and back references; set literal to search for a text as it stands",
		strings.TrimPrefix(err.Error(), "error parsing regexp: "))
}
