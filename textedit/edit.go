// Package textedit finds and replaces passages in a text and shows the difference.
package textedit

import (
	"fmt"
	"strings"
)

// An Edit replaces a passage of a text.
type Edit struct {
	Old string // as it stands in the text, exactly; never empty
	New string
	All bool // replace every occurrence; otherwise there must be just one
}

// A Kind tells why an edit was refused.
type Kind int

// The reasons for which an edit is refused. There is no zero Kind.
const (
	Empty     Kind = iota + 1 // Old is empty
	Same                      // Old and New are equal
	NotFound                  // Old does not occur
	Ambiguous                 // Old occurs more than once
)

// An Error is a refused edit.
type Error struct {
	Index   int // of the edit, from 0
	Kind    Kind
	Lines   []int // where Old begins, from 1, if Ambiguous; where something near begins, if NotFound
	Message string
}

// Error is the message, fit to be read by a model.
func (e *Error) Error() string { return e.Message }

// Apply returns text with the edits made, one after another, and how many
// passages were replaced. All are made or none: an error is an [*Error] about
// the first edit that cannot be made.
//
// In a text whose lines all end alike, in LF or in CRLF, the lines of Old and
// New are taken to end so, too. Occurrences that overlap make Old ambiguous;
// with All, they are replaced from left to right.
func Apply(text string, edits ...Edit) (string, int, error) {
	total := 0
	for i, e := range edits {
		if e.Old == "" {
			return "", 0, &Error{Index: i, Kind: Empty, Message: "old is empty; give the passage to replace, or write the whole file instead"}
		}
		if e.Old == e.New {
			return "", 0, &Error{Index: i, Kind: Same, Message: "old and new are the same, so that there is nothing to change"}
		}
		old, new := Conform(e.Old, text), Conform(e.New, text)
		places := occurrences(text, old, e.All)
		switch {
		case len(places) == 0:
			return "", 0, notFound(i, text, old)
		case len(places) > 1 && !e.All:
			return "", 0, ambiguous(i, text, places)
		}
		total += len(places)
		if e.All {
			text = strings.ReplaceAll(text, old, new)
		} else {
			text = text[:places[0]] + new + text[places[0]+len(old):]
		}
	}
	return text, total, nil
}

// maxPlaces bounds the occurrences that are looked for when one is wanted.
const maxPlaces = 1000

// occurrences returns where old begins in text: without those that overlap an
// earlier one if apart.
func occurrences(text, old string, apart bool) []int {
	var places []int
	for at := 0; ; {
		i := strings.Index(text[at:], old)
		if i < 0 || !apart && len(places) == maxPlaces {
			return places
		}
		places = append(places, at+i)
		at += i + 1
		if apart {
			at += len(old) - 1
		}
	}
}

// maxShownLines bounds the line numbers in a message.
const maxShownLines = 50

func ambiguous(i int, text string, places []int) *Error {
	lines := linesAt(text, places)
	count := fmt.Sprint(len(places))
	if len(places) == maxPlaces {
		count += " or more"
	}
	return &Error{Index: i, Kind: Ambiguous, Lines: lines, Message: fmt.Sprintf(
		"old occurs %s times, beginning on lines %s; add lines around the passage that is meant until it is the only one, or set all to true to replace every one",
		count, list(lines))}
}

func list(lines []int) string {
	shown := lines[:min(len(lines), maxShownLines)]
	s := strings.Trim(fmt.Sprint(shown), "[]")
	s = strings.ReplaceAll(s, " ", ", ")
	if len(shown) < len(lines) {
		s += ", …"
	}
	return s
}

// linesAt returns the numbers of the lines in which the places, in rising order, lie.
func linesAt(text string, places []int) []int {
	lines := make([]int, len(places))
	line, from := 1, 0
	for i, p := range places {
		line += strings.Count(text[from:p], "\n")
		lines[i], from = line, p
	}
	return lines
}

// Conform returns passage with its lines ending as those of text do, if these
// all end alike.
func Conform(passage, text string) string {
	if !strings.Contains(passage, "\n") {
		return passage
	}
	switch LineEnd(text) {
	case "\n":
		return strings.ReplaceAll(passage, "\r\n", "\n")
	case "\r\n":
		return strings.ReplaceAll(strings.ReplaceAll(passage, "\r\n", "\n"), "\n", "\r\n")
	}
	return passage
}

// LineEnd returns "\n" or "\r\n" if all lines of text end so, "" if some do
// and some do not, or if it has no line end.
func LineEnd(text string) string {
	all := strings.Count(text, "\n")
	switch crlf := strings.Count(text, "\r\n"); {
	case all == 0:
		return ""
	case crlf == 0:
		return "\n"
	case crlf == all:
		return "\r\n"
	}
	return ""
}

// Lines returns how many lines text has; a last one need not be ended.
func Lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
