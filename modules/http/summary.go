package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// summarize tells what a page or data is that is too long to be shown: of a
// page its title, headings and how it begins, of JSON its shape with samples.
func summarize(whole string, most int) string {
	head, body, ok := strings.Cut(whole, "\n\n")
	if !ok {
		return ""
	}
	media := ""
	for line := range strings.SplitSeq(head, "\n") {
		if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, "Content-Type") {
			media, _, _ = mime.ParseMediaType(value)
		}
	}
	head = clip(head, most/4)
	most -= utf8.RuneCountInString(head) + 2
	var out string
	switch {
	case media == "text/html" || media == "application/xhtml+xml":
		out = pageSummary(body, most)
	case isJSON(media) || media == "" && json.Valid([]byte(body)):
		out = jsonSummary(body, most)
	}
	if out == "" {
		return ""
	}
	return head + "\n\n" + out
}

// A page is what a summary tells of one.
type page struct {
	title, about string
	headings     []string
	links        int
	text         strings.Builder
}

// maxHeadings bounds the headings of a page that are shown.
const maxHeadings = 60

func pageSummary(body string, most int) string {
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		return ""
	}
	p := new(page)
	p.read(root)
	var b strings.Builder
	fmt.Fprintf(&b, "[page of %d characters, %d links]\n", utf8.RuneCountInString(body), p.links)
	if p.title != "" {
		fmt.Fprintf(&b, "Title: %s\n", clip(p.title, 300))
	}
	if p.about != "" {
		fmt.Fprintf(&b, "Description: %s\n", clip(p.about, 500))
	}
	if len(p.headings) > 0 {
		b.WriteString("Headings:\n")
	}
	used := utf8.RuneCountInString(b.String())
	for i, h := range p.headings {
		if n := utf8.RuneCountInString(h) + 1; i < maxHeadings && used+n < most*2/3 {
			b.WriteString(h + "\n")
			used += n
			continue
		}
		fmt.Fprintf(&b, "  … %d more\n", len(p.headings)-i)
		break
	}
	const title = "Text begins:\n"
	if left := most - utf8.RuneCountInString(b.String()) - len(title) - 1; left > 100 && p.text.Len() > 0 {
		b.WriteString(title + clip(p.text.String(), left))
	}
	return b.String()
}

// read takes in a node and what it holds.
func (p *page) read(n *html.Node) {
	switch {
	case n.Type == html.TextNode:
		if text := strings.Join(strings.Fields(n.Data), " "); text != "" {
			p.text.WriteString(text + " ")
		}
	case n.Type == html.ElementNode:
		switch n.DataAtom {
		case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg:
			return
		case atom.Title:
			p.title = textOf(n)
			return
		case atom.Meta:
			if strings.EqualFold(attribute(n, "name"), "description") {
				p.about = attribute(n, "content")
			}
		case atom.A:
			p.links++
		case atom.H1, atom.H2, atom.H3:
			if text := textOf(n); text != "" {
				p.headings = append(p.headings, strings.Repeat("  ", int(n.Data[1]-'0'))+clip(text, 120))
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		p.read(c)
	}
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return strings.Join(strings.Fields(a.Val), " ")
		}
	}
	return ""
}

func jsonSummary(body string, most int) string {
	if !json.Valid([]byte(body)) {
		return ""
	}
	first := fmt.Sprintf("[JSON of %d characters]\n", utf8.RuneCountInString(body))
	for _, each := range []shape{{20, 400, 3}, {10, 200, 3}, {5, 100, 2}, {3, 60, 2}, {1, 40, 1}} {
		var b strings.Builder
		if !each.value(&b, json.RawMessage(body), 0) {
			return ""
		}
		if text := first + b.String(); utf8.RuneCountInString(text) <= most || each.samples == 1 {
			return clip(text, most-1)
		}
	}
	return ""
}

// A shape says how much of JSON is shown.
type shape struct {
	samples int // elements of an array
	chars   int // of a value
	deep    int // levels
}

// maxKeys bounds the keys of an object that are shown.
const maxKeys = 50

// value writes the shape of raw, and reports whether it is JSON.
func (s shape) value(b *strings.Builder, raw json.RawMessage, level int) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	start, err := d.Token()
	delim, nested := start.(json.Delim)
	if err != nil {
		return false
	}
	raw = bytes.TrimSpace(raw)
	if !nested || level >= s.deep || len(raw) <= s.chars {
		b.WriteString(s.compact(raw) + "\n")
		return true
	}
	var items []string
	n := 0
	most := s.samples
	if delim == '{' {
		most = maxKeys
	}
	for ; d.More(); n++ {
		label := "- "
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return false
			}
			label = fmt.Sprintf("%s: ", clip(fmt.Sprint(key), 80))
		}
		var item json.RawMessage
		if d.Decode(&item) != nil {
			return false
		}
		if n >= most {
			continue
		}
		var inner strings.Builder
		if !s.value(&inner, item, level+1) {
			return false
		}
		items = append(items, strings.Repeat("  ", level)+label+inner.String())
	}
	kind := "array of %d\n"
	if delim == '{' {
		kind = "object with %d keys\n"
	}
	fmt.Fprintf(b, kind, n)
	b.WriteString(strings.Join(items, ""))
	if n > most {
		fmt.Fprintf(b, "%s… %d more\n", strings.Repeat("  ", level), n-most)
	}
	return true
}

func (s shape) compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		b.Write(raw)
	}
	return clip(b.String(), s.chars)
}
