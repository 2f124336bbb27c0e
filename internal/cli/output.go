package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/term"
)

// printJSON prints v, indented and without escapes of HTML.
func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// A style colours text, if it goes to a terminal that wants colours.
type style struct{ on bool }

func (c *cli) style(w io.Writer) style {
	_, plain := os.LookupEnv("NO_COLOR")
	return style{isTerminal(w) && !plain && os.Getenv("TERM") != "dumb"}
}

func (s style) wrap(code, text string) string {
	if !s.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(t string) string { return s.wrap("1", t) }
func (s style) dim(t string) string  { return s.wrap("2", t) }
func (s style) good(t string) string { return s.wrap("32", t) }
func (s style) warn(t string) string { return s.wrap("33", t) }
func (s style) bad(t string) string  { return s.wrap("31", t) }

// diff returns a unified diff in colours, without what would disturb a terminal.
func (s style) diff(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		shown := cleanText(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
			shown = s.bold(shown)
		case strings.HasPrefix(line, "+"):
			shown = s.good(shown)
		case strings.HasPrefix(line, "-"):
			shown = s.bad(shown)
		case strings.HasPrefix(line, "@@"):
			shown = s.dim(shown)
		}
		b.WriteString(shown + "\n")
	}
	return b.String()
}

// width returns the columns of the terminal; where there is none, no limit.
func (c *cli) width() int {
	if f, ok := c.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			return w
		}
	}
	return 0
}

// The least columns of a table's cells on a narrow terminal.
const (
	narrowest = 8  // of a cell that is cut
	lastLeast = 20 // of the last one, if it is longer
)

// fit narrows columns, the widest first, until a row fits into total.
func fit(widths []int, total int) {
	last := len(widths) - 1
	for {
		sum, widest := min(widths[last], lastLeast), 0
		for i, w := range widths[:last] {
			sum += w + 2
			if w > widths[widest] {
				widest = i
			}
		}
		if sum <= total || last == 0 || widths[widest] <= narrowest {
			return
		}
		widths[widest] = max(narrowest, widths[widest]-(sum-total))
	}
}

// table prints rows in columns. What does not fit the terminal is cut: the last
// column first, then the widest.
func (c *cli) table(head []string, rows [][]string) {
	s := c.style(c.out)
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], displaywidth.String(clean(cell)))
		}
	}
	total := c.width()
	if total > 0 {
		fit(widths, total)
	}
	line := func(row []string, paint func(string) string) {
		var b strings.Builder
		used := 0
		for i, cell := range row {
			cell = clean(cell)
			if i == len(row)-1 {
				if total > 0 {
					cell = displaywidth.TruncateString(cell, max(total-used, narrowest), "…")
				}
				b.WriteString(cell)
				break
			}
			if total > 0 {
				cell = displaywidth.TruncateString(cell, widths[i], "…")
			}
			b.WriteString(cell + strings.Repeat(" ", widths[i]-displaywidth.String(cell)+2))
			used += widths[i] + 2
		}
		fmt.Fprintln(c.out, paint(strings.TrimRight(b.String(), " ")))
	}
	line(head, s.bold)
	for _, row := range rows {
		line(row, func(t string) string { return t })
	}
}

// escapes are the control sequences of terminals.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])`)

// clean takes out what would disturb a terminal: descriptions and names come
// from elsewhere.
func clean(s string) string {
	if strings.IndexByte(s, '\x1b') >= 0 {
		s = escapes.ReplaceAllString(s, "")
	}
	if strings.ContainsFunc(s, turns) {
		s = visible(s)
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// turns reports whether r turns the direction of what follows: a terminal that
// obeys it shows another text than the one that is approved, or run.
func turns(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// visible writes what turns directions as its number.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if turns(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cleanPiece is clean for a piece of a text of several lines, whose spaces all
// count.
func cleanPiece(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = clean(strings.ReplaceAll(l, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// cleanText is clean for texts of several lines.
func cleanText(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(clean(strings.ReplaceAll(l, "\t", "    ")), " ")
	}
	return strings.Join(lines, "\n")
}
