package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/helve-ai/helve/internal/filelock"
)

// A Report is what Verify found. The log is whole if there are no Problems.
type Report struct {
	Lines, Files int
	First, Last  time.Time // times of the first and the last line
	Problems     []Problem
}

// A Problem is a place where the log is not as it was written.
type Problem struct {
	File string // name in the folder
	Line int    // from 1; 0: the file as a whole
	Text string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Verify reads the whole log in dir, and finds lines that were edited,
// reordered, inserted, cut off or taken away. It changes nothing, and may run
// while others append: it reads what there is when it begins. The error is for
// a folder that cannot be read.
func Verify(dir string) (Report, error) {
	v, err := begin(dir)
	if err != nil {
		return Report{}, explain(dir, err)
	}
	for _, f := range v.files {
		if err := v.file(f); err != nil {
			return v.Report, explain(dir, err)
		}
	}
	v.end()
	return v.Report, nil
}

// A sizedFile is a file and how long it was when Verify began.
type sizedFile struct {
	name string
	size int64
}

// A verifier walks along the chain.
type verifier struct {
	Report
	dir     string
	files   []sizedFile
	noted   head
	headErr string // what is wrong with the head; empty: nothing

	seq  uint64 // of the line before
	hash digest // of the line before
	met  bool   // the line that the head names, with its hash
}

// begin takes note of the log as it is between two appends.
func begin(dir string) (*verifier, error) {
	v := &verifier{dir: dir, hash: genesis}
	lock, err := lockHead(dir)
	if err != nil {
		return nil, err
	}
	if lock != nil {
		defer lock.Close()
		defer filelock.Release(lock)
		var ok bool
		if v.noted, ok, err = readHead(lock); err != nil {
			return nil, err
		}
		if !ok {
			v.headErr = "cannot be read: it is cut, edited or empty"
		}
	} else {
		v.headErr = "is missing; without it a cut at the end cannot be seen"
	}
	names, err := listFiles(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(dir, name.String()))
		if err != nil {
			return nil, err
		}
		v.files = append(v.files, sizedFile{name.String(), info.Size()})
	}
	v.met = v.headErr == "" && v.noted.seq == 0 && v.noted.hash == genesis
	return v, nil
}

func (v *verifier) problem(file string, line int, format string, args ...any) {
	v.Problems = append(v.Problems, Problem{file, line, fmt.Sprintf(format, args...)})
}

// file checks the lines of one file.
func (v *verifier) file(f sizedFile) error {
	v.Files++
	n := 0
	for line, err := range linesOf(filepath.Join(v.dir, f.name), false) {
		if err != nil {
			return err
		}
		if line.at >= f.size {
			break // appended since
		}
		n++
		v.Lines++
		if line.text[len(line.text)-1] != '\n' {
			v.problem(f.name, n, "is unfinished (%d bytes without a line feed)", len(line.text))
			continue
		}
		k, ok := parseLine(line.text)
		if !ok {
			v.problem(f.name, n, "is not a line of this log")
			continue
		}
		v.line(f.name, n, k)
	}
	return nil
}

// line checks one line against the one before. What follows is checked
// against what this one claims, so that one fault is told once.
func (v *verifier) line(file string, n int, k link) {
	switch {
	case !k.sound:
		v.problem(file, n, "line %d was edited: its hash is not that of its bytes", k.seq)
	case k.seq > v.seq+1:
		v.problem(file, n, "lines %d to %d are missing before it", v.seq+1, k.seq-1)
	case k.seq <= v.seq:
		v.problem(file, n, "line %d stands after line %d: reordered, repeated or inserted", k.seq, v.seq)
	case k.prev != v.hash:
		v.problem(file, n, "line %d does not follow from the line before: one of them was replaced", k.seq)
	}
	if at, err := time.Parse(time.RFC3339Nano, string(k.time)); err == nil {
		if v.First.IsZero() {
			v.First = at
		}
		v.Last = at
	}
	v.seq, v.hash = k.seq, k.hash
	if v.headErr == "" && k.seq == v.noted.seq && k.hash == v.noted.hash {
		v.met = true
	}
}

// end checks the end of the chain against the head.
func (v *verifier) end() {
	switch {
	case v.headErr != "":
		// An empty head without lines is that of a log killed at its birth.
		if v.Lines > 0 {
			v.problem(headName, 0, "%s", v.headErr)
		}
	case v.noted.seq > v.seq:
		v.problem(headName, 0, "lines %d to %d are missing at the end: cut off, or lost in a power cut", v.seq+1, v.noted.seq)
	case !v.met:
		v.problem(headName, 0, "names a line %d that is not in the log: it was replaced, or the head was edited", v.noted.seq)
	}
	if v.headErr == "" && !slices.ContainsFunc(v.files, func(f sizedFile) bool { return f.name == v.noted.file }) {
		v.problem(v.noted.file, 0, "is missing; the head names it")
	}
}
