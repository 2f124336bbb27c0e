package app

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helve-ai/helve/schema"
)

// A Problem is one thing that is wrong with an app file, and where.
type Problem struct {
	File       string `json:"file,omitempty"`
	Line       int    `json:"line"`   // from 1
	Column     int    `json:"column"` // from 1, in characters
	Path       string `json:"path,omitempty"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"` // what would be right, where that can be said
}

// Error returns the problem on one line: file:line:column: path: message; suggestion.
func (p Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Suggestion != "" {
		b.WriteString("; " + p.Suggestion)
	}
	return b.String()
}

// Problems are all that is wrong with an app file, in the order of its lines.
type Problems []Problem

// Error returns the problems, one to a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// ProblemsOf returns the problems that an error of Load or Parse holds; nil
// means that the file could not be read at all, or that there is no error.
func ProblemsOf(err error) Problems {
	var ps Problems
	if errors.As(err, &ps) {
		return ps
	}
	var p Problem
	if errors.As(err, &p) {
		return Problems{p}
	}
	return nil
}

// sorted returns the problems in the order of the files given, then of their
// lines, each once.
func (ps Problems) sorted(files []string) Problems {
	rank := func(p Problem) int { return slices.Index(files, p.File) }
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(ps)
}

// didYouMean suggests one of the names for one that is not among them, or
// lists them if they are few and none is near.
func didYouMean(name string, among []string) string {
	if near := nearest(name, among); near != "" {
		return near
	}
	if len(among) == 0 || len(among) > 15 {
		return ""
	}
	return "there is " + strings.Join(among, ", ")
}

// maxCompared bounds how many names are compared for one suggestion.
const maxCompared = 1000

// nearest suggests one of the names for one that is not among them.
func nearest(name string, among []string) string {
	if len(among) > maxCompared {
		return ""
	}
	if near := schema.Closest(name, among, 1); len(near) == 1 {
		return fmt.Sprintf("did you mean %q?", near[0])
	}
	return ""
}
