package textedit

import (
	"fmt"
	"slices"
	"strings"
)

// context is how many unchanged lines a diff shows around a change.
const context = 3

// Diff returns the difference of two texts as a unified diff, "" if there is
// none. The names stand in its first two lines, unless both are empty.
func Diff(oldName, newName, old, new string) string {
	if old == new {
		return ""
	}
	a, b := split(old), split(new)
	var out strings.Builder
	if oldName != "" || newName != "" {
		fmt.Fprintf(&out, "--- %s\n+++ %s\n", oldName, newName)
	}
	for group := range slices.Values(hunks(changes(a, b))) {
		writeHunk(&out, a, b, group)
	}
	return out.String()
}

// Bound cuts a diff to about most bytes, at the end of a line, and says how
// many lines it left out. Lines that are very long are cut, too.
func Bound(diff string, most int) string {
	const maxLine = 500
	if len(diff) <= most {
		return diff
	}
	var out strings.Builder
	lines := strings.SplitAfter(diff, "\n")
	for i, line := range lines {
		if text := strings.TrimSuffix(line, "\n"); len(text) > maxLine {
			line = clip(text, maxLine) + "\n"
		}
		if out.Len()+len(line) > most {
			left := len(lines) - i
			if lines[len(lines)-1] == "" {
				left--
			}
			fmt.Fprintf(&out, "[%d more lines of the diff are left out]\n", left)
			break
		}
		out.WriteString(line)
	}
	return out.String()
}

// split cuts a text into lines with their ends.
func split(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// A change says that lines a0 to a1 of one text are lines b0 to b1 of the other.
type change struct{ a0, a1, b0, b1 int }

// hunks groups changes whose contexts touch.
func hunks(all []change) (groups [][]change) {
	for _, c := range all {
		if n := len(groups); n > 0 {
			if last := groups[n-1]; c.a0-last[len(last)-1].a1 <= 2*context {
				groups[n-1] = append(last, c)
				continue
			}
		}
		groups = append(groups, []change{c})
	}
	return groups
}

func writeHunk(out *strings.Builder, a, b []string, group []change) {
	first, last := group[0], group[len(group)-1]
	before, after := min(context, first.a0), min(context, len(a)-last.a1)
	fmt.Fprintf(out, "@@ -%s +%s @@\n", extent(first.a0-before, last.a1+after), extent(first.b0-before, last.b1+after))
	at := first.a0 - before
	for _, c := range group {
		writeLines(out, ' ', a[at:c.a0])
		writeLines(out, '-', a[c.a0:c.a1])
		writeLines(out, '+', b[c.b0:c.b1])
		at = c.a1
	}
	writeLines(out, ' ', a[at:last.a1+after])
}

// extent writes the lines from, counted from 0, to to (without it) as hunks do.
func extent(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(out *strings.Builder, mark byte, lines []string) {
	for _, line := range lines {
		out.WriteByte(mark)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// changes returns what differs, in order.
func changes(a, b []string) []change {
	ids := map[string]int{}
	number := func(lines []string) []int {
		out := make([]int, len(lines))
		for i, line := range lines {
			id, ok := ids[line]
			if !ok {
				id = len(ids)
				ids[line] = id
			}
			out[i] = id
		}
		return out
	}
	d := differ{a: number(a), b: number(b)}
	d.compare(0, len(d.a), 0, len(d.b), 0)
	return d.out
}

// differ compares by patience: lines that occur once on both sides are the
// anchors; between them, the shortest edit script is sought.
type differ struct {
	a, b []int
	out  []change
}

// maxPatience bounds how deep segments are split by anchors.
const maxPatience = 50

func (d *differ) compare(a0, a1, b0, b1, depth int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 == a1 || b0 == b1 {
		d.add(change{a0, a1, b0, b1})
		return
	}
	if depth < maxPatience {
		if anchors := d.anchors(a0, a1, b0, b1); len(anchors) > 0 {
			for _, p := range anchors {
				d.compare(a0, p[0], b0, p[1], depth+1)
				a0, b0 = p[0]+1, p[1]+1
			}
			d.compare(a0, a1, b0, b1, depth+1)
			return
		}
	}
	d.shortest(a0, a1, b0, b1)
}

// add notes a change, as part of the one before if they touch.
func (d *differ) add(c change) {
	if c.a0 == c.a1 && c.b0 == c.b1 {
		return
	}
	if n := len(d.out); n > 0 && d.out[n-1].a1 == c.a0 && d.out[n-1].b1 == c.b0 {
		d.out[n-1].a1, d.out[n-1].b1 = c.a1, c.b1
		return
	}
	d.out = append(d.out, c)
}

// anchors returns the longest rising run of lines that occur once on each side.
func (d *differ) anchors(a0, a1, b0, b1 int) [][2]int {
	type seen struct{ na, nb, a, b int }
	lines := make(map[int]*seen, a1-a0)
	for i := a0; i < a1; i++ {
		s := lines[d.a[i]]
		if s == nil {
			s = &seen{}
			lines[d.a[i]] = s
		}
		s.na, s.a = s.na+1, i
	}
	for i := b0; i < b1; i++ {
		if s := lines[d.b[i]]; s != nil {
			s.nb, s.b = s.nb+1, i
		}
	}
	var pairs [][2]int // in the order of a
	for i := a0; i < a1; i++ {
		if s := lines[d.a[i]]; s.na == 1 && s.nb == 1 {
			pairs = append(pairs, [2]int{s.a, s.b})
		}
	}
	return rising(pairs)
}

// rising returns the longest subsequence of pairs whose second numbers rise.
func rising(pairs [][2]int) [][2]int {
	var tops []int // indexes of pairs: the smallest end of a run of each length
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(tops, p[1], func(t, want int) int { return pairs[t][1] - want })
		before[i] = -1
		if n > 0 {
			before[i] = tops[n-1]
		}
		tops = append(tops[:n], append([]int{i}, tops[min(n+1, len(tops)):]...)...)
	}
	if len(tops) == 0 {
		return nil
	}
	out := make([][2]int, len(tops))
	for i, n := tops[len(tops)-1], len(tops)-1; n >= 0; i, n = before[i], n-1 {
		out[n] = pairs[i]
	}
	return out
}

// maxEdits bounds the length of an edit script that is sought; what is further
// apart is shown as replaced whole.
const maxEdits = 800

// shortest adds the changes of the shortest edit script (Myers, 1986).
func (d *differ) shortest(a0, a1, b0, b1 int) {
	n, m := a1-a0, b1-b0
	most := min(n+m, maxEdits)
	v := make([]int, 2*most+2) // the furthest x on each diagonal, which is stored at k+most
	var trace [][]int          // v[-e..e] before each step e
	for e := 0; e <= most; e++ {
		trace = append(trace, slices.Clone(v[most-e:most+e+1]))
		for k := -e; k <= e; k += 2 {
			x := 0
			switch {
			case e == 0:
			case k == -e || k != e && v[most+k-1] < v[most+k+1]:
				x = v[most+k+1]
			default:
				x = v[most+k-1] + 1
			}
			for x < n && x-k < m && d.a[a0+x] == d.b[b0+x-k] {
				x++
			}
			v[most+k] = x
			if x >= n && x-k >= m {
				d.retrace(trace, a0, b0, n, m)
				return
			}
		}
	}
	d.add(change{a0, a1, b0, b1})
}

// retrace walks an edit script back from its end and adds its changes in order.
func (d *differ) retrace(trace [][]int, a0, b0, x, y int) {
	var steps []change
	for e := len(trace) - 1; e > 0; e-- {
		v := trace[e] // index k+e
		k := x - y
		from := k - 1
		if k == -e || k != e && v[k-1+e] < v[k+1+e] {
			from = k + 1
		}
		px := v[from+e]
		py := px - from
		for x > px && y > py {
			x, y = x-1, y-1
		}
		if x > px {
			steps = append(steps, change{a0 + px, a0 + px + 1, b0 + y, b0 + y})
		} else {
			steps = append(steps, change{a0 + x, a0 + x, b0 + py, b0 + py + 1})
		}
		x, y = px, py
	}
	for _, c := range slices.Backward(steps) {
		d.add(c)
	}
}
