package schema

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// EditDistance is the number of insertions, deletions, replacements and swaps
// of neighbours (Damerau's optimal string alignment) that turn a into b, case
// ignored. It counts code points.
func EditDistance(a, b string) int {
	return distance([]rune(fold(a)), []rune(fold(b)))
}

func distance(x, y []rune) int {
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

// fold makes texts that differ only in case equal.
func fold(s string) string {
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, s)
}

// squeeze folds s and drops everything but letters and digits, so that
// filePath, file_path and File-Path are one.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(unicode.ToUpper(r))
		}
		return -1
	}, s)
}

// maxNameLen bounds the quadratic comparison of names.
const maxNameLen = 128

// Closest gives up to n of the names among that one could have meant by name,
// nearest first, ties in the order given. Names that differ in more than a
// third of their letters are left out, unless one contains the other.
func Closest(name string, among []string, n int) []string {
	var out []string
	for _, i := range closest(name, among, len(among)) {
		if len(out) < n && !slices.Contains(out, among[i]) {
			out = append(out, among[i])
		}
	}
	return out
}

// closest gives the places in among of the names that Closest would give.
func closest(name string, among []string, n int) []int {
	if n <= 0 || name == "" || len(name) > maxNameLen {
		return nil
	}
	type candidate struct{ at, dist int }
	var found []candidate
	want := []rune(squeeze(name))
	for i, other := range among {
		if other == "" || len(other) > maxNameLen {
			continue
		}
		if d, ok := nearness(want, []rune(squeeze(other))); ok {
			found = append(found, candidate{i, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.dist, b.dist) })
	var out []int
	for _, c := range found[:min(n, len(found))] {
		out = append(out, c.at)
	}
	return out
}

func nearness(a, b []rune) (int, bool) {
	if len(a) == 0 || len(b) == 0 {
		return 0, false
	}
	long, short := max(len(a), len(b)), min(len(a), len(b))
	if most := max(1, long/3); long-short <= most {
		if d := distance(a, b); d <= most && d < short {
			return d, true
		}
	}
	if short >= 3 && (strings.Contains(string(a), string(b)) || strings.Contains(string(b), string(a))) {
		return long, true
	}
	return 0, false
}
