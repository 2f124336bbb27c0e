package guard

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"go.yaml.in/yaml/v3"

	"github.com/helve-ai/helve/poison"
	"github.com/helve-ai/helve/tool"
)

// orders are what results said that speak to models.
type orders struct {
	by    string          // the tool of the first such result, and its call
	about vocabulary      // what such texts say
	texts map[string]bool // such texts, folded
	lost  bool            // that there were some is known, and not all that they said
}

// passage returns a text from the line before what speaks to models on: what
// stands further above is what the text is else about.
func passage(text string) string {
	lines := strings.SplitAfter(text, "\n")
	says := func(from, to int) bool {
		return slices.ContainsFunc(poison.Text("result", strings.Join(lines[from:to], "")), speaks)
	}
	if len(text) > maxPassage || !says(0, len(lines)) {
		return text
	}
	end := sort.Search(len(lines), func(n int) bool { return says(0, n) })
	start := sort.Search(end, func(n int) bool { return !says(n, end) }) - 1
	return strings.Join(lines[max(start-1, 0):], "")
}

// maxPassage bounds in which texts a passage is looked for, and what is read as
// a list or object.
const maxPassage = 64 << 10

// order notes texts that speak to models, of the result of a call. The lock is held.
func (s *tainted) order(c *tool.Call, alarms []string) {
	if s.orders == nil {
		s.orders = &orders{by: c.Name + ", call " + c.ID}
	}
	o := s.orders
	if o.texts == nil {
		o.texts = map[string]bool{}
	}
	for _, text := range alarms {
		if len(o.texts) < 100 {
			o.texts[foldSpace(text)] = true
		}
		o.about.hear(passage(text))
	}
	o.lost = o.lost || o.about.full
}

// reaches reports whether a call reads something that is not in the process.
func reaches(c *tool.Call) bool { return c.Tool.Needs != 0 }

// led says why a call may follow orders that a result gave; "": there are none,
// or the call is the user's. It may, if a value of it is what the orders name,
// or if they speak of what its tool is about, and
//
//   - they say more of the call than the user said; or
//   - they say as much, and it has no values; or
//   - it reads again what was read, and the user said no more of it than they,
//     or named no value of it; or
//   - a value of it is named by nobody: not by the user, and by no result
//     without orders.
//
// Calls that write are led if they destroy and orders say more of them. Somebody
// who has approved a call has vouched for its values; and for its tool, as long
// as no value is what the orders name. The lock is held.
func (s *tainted) led(c *tool.Call) string {
	o, read := s.orders, c.Tool.IsRead()
	switch {
	case o == nil && read:
		return s.talkedInto(c)
	case o == nil || !read && c.Tool.RiskLevel() < tool.High:
		return ""
	}
	vouched := s.agreed[agreedKey(c, "", "")]
	theirs, both, users := s.evidence(c, &o.about)
	about := theirs+both > 0 || o.lost
	switch {
	case vouched:
	case theirs > users:
		return fmt.Sprintf("a result gave orders to models (%s), which say more of this call than the user did", o.by)
	case !read:
		return ""
	case about && s.read[readKey(c)] && (users <= theirs || !s.chosen(c)):
		return fmt.Sprintf("a result gave orders to models (%s), and this was read before", o.by)
	case theirs+both > 0 && users == 0 && valueless(c):
		return fmt.Sprintf("a result gave orders to models (%s), which say as much of this call as the user did", o.by)
	case o.lost && users == 0:
		return fmt.Sprintf("a result gave orders to models (%s), and it is not known any more what they were", o.by)
	}
	why := ""
	ok := eachArgument(c.Args, func(key, v string) bool {
		switch {
		case s.agreed[agreedKey(c, key, v)]:
		case s.ordered(v):
			why = fmt.Sprintf("a result gave orders to models (%s), and %.80q is in them, and not in what the user said", o.by, v)
		case about && !vouched && !webAddress.MatchString(v) && !s.named(v):
			why = fmt.Sprintf("a result gave orders to models (%s), and nobody else named %.80q", o.by, v)
		}
		return why == ""
	})
	switch {
	case !ok:
		return string(c.Args)
	case why == "":
		return s.talkedInto(c)
	}
	return why
}

// talkedInto says why a call that reads may follow what texts from outside say,
// whether they look like orders or not: they speak more of it than the user
// did, or an address in it stands in them, and neither in what the user said
// nor as a field of a result; "": it is the user's, whose words are not known, or
// somebody has approved it. The lock is held.
func (s *tainted) talkedInto(c *tool.Call) (why string) {
	if !s.spoken {
		return ""
	}
	vouched := s.agreed[agreedKey(c, "", "")]
	if theirs, both, users := s.evidence(c, &s.heard.about); !vouched && theirs > both+users {
		return fmt.Sprintf("what came from outside (%s) speaks more of this call than the user did", s.by)
	}
	eachArgument(c.Args, func(key, v string) bool {
		if a := s.mentioned(v); a != "" && !s.agreed[agreedKey(c, key, v)] {
			why = fmt.Sprintf("%.80q is only mentioned in what came from outside (%s), and not in what the user said", a, s.by)
		}
		return why == ""
	})
	return why
}

// mentioned returns an address in a value that stands in a text from outside
// and nowhere else; "": there is none. Those that are fetched are not meant, nor
// those in what is called so.
func (s *tainted) mentioned(v string) string {
	v = foldSpace(v)
	if s.heard.fields[v] {
		return ""
	}
	for _, a := range addresses.FindAllString(v, 100) {
		if !webAddress.MatchString(a) && !s.owns(saidWords(a)) && !s.owned(a) && !s.heard.fields[a] && namesIn(s.heard.texts.String(), a, "-_@/") {
			return a
		}
	}
	return ""
}

// ordered reports whether a value, an address in it, or a part of a path is what
// the orders name, and not the user. A name that holds orders itself is not.
func (s *tainted) ordered(v string) bool {
	v = foldSpace(v)
	if flags.MatchString(v) || s.orders.texts[v] {
		return false
	}
	strange := func(part, joined string) bool {
		words := saidWords(part)
		return len(words) > 0 && !s.owns(words) && namesIn(s.alarms, part, joined)
	}
	if strings.ContainsAny(v, `/\`) && !strings.Contains(v, " ") && !webAddress.MatchString(v) {
		for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '/' || r == '\\' }) {
			if len(part) > 3 && strange(part, "-_@") {
				return true
			}
		}
	}
	return strange(v, "-_@/") || slices.ContainsFunc(addresses.FindAllString(v, 100), func(a string) bool { return strange(a, "-_@/") })
}

// namesIn reports whether a value stands in a text, and not as a part of a word
// or of what is joined by one of those bytes.
func namesIn(text, v, joined string) bool {
	part := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80 || strings.IndexByte(joined, c) >= 0
	}
	for from := 0; ; {
		i := strings.Index(text[from:], v)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(v)
		before := i == 0 || !part(text[i-1]) && text[i-1] != '.'
		after := end == len(text) || !part(text[end]) && (text[end] != '.' || end+1 == len(text) || !part(text[end+1]))
		if before && after {
			return true
		}
		from = i + 1
	}
}

// named reports whether a value is of words that the user said, or that stand
// in results without orders; long texts are the model's own.
func (s *tainted) named(v string) bool {
	content := len(v) > longText || strings.Contains(strings.TrimSpace(v), "\n")
	v = foldSpace(v)
	if flags.MatchString(v) || datesAndTimes.MatchString(v) || s.owned(v) || content && len(addresses.FindAllString(v, 1)) == 0 {
		return true
	}
	for _, w := range saidWords(v) {
		if !s.words[w] && !hasWord(s.clean.String(), w) && !hasWord(s.house.String(), w) {
			return false
		}
	}
	return true
}

// evidence counts the words of a call, of what its tool is about and of its
// values, that only others say, both they and the user, and only the user.
func (s *tainted) evidence(c *tool.Call, others *vocabulary) (theirs, both, users int) {
	count := func(w word, about bool) {
		said, told := s.said.has(w), others.full || others.has(w)
		switch {
		case said && told:
			if about {
				both++
			}
		case said:
			users++
		case told && about:
			theirs++
		}
	}
	seen := map[string]bool{}
	for _, text := range subjects(c.Name, c.Tool.IsRead()) {
		w := wordOf(text)
		seen[w.stem] = true
		count(w, true)
	}
	eachArgument(c.Args, func(_, v string) bool {
		if len(v) <= longText {
			for _, text := range saidWords(v) {
				if w := stem(text); len(w) > 2 && !seen[w] {
					seen[w] = true
					count(wordOf(text), false) // values that the orders name are looked at one by one
				}
			}
		}
		return true
	})
	return theirs, both, users
}

// chosen reports whether a value of a call is of words that the user said.
func (s *tainted) chosen(c *tool.Call) (found bool) {
	eachArgument(c.Args, func(_, v string) bool {
		found = s.users(v)
		return !found
	})
	return found
}

// valueless reports whether a call names nothing.
func valueless(c *tool.Call) bool {
	none := true
	ok := eachArgument(c.Args, func(_, v string) bool {
		none = len(saidWords(v)) == 0
		return none
	})
	return ok && none
}

// subjects returns the words in the name of a tool that say what
// it is about; for tools that change something, how as well.
func subjects(name string, reads bool) []string {
	if rest, ok := strings.CutPrefix(name, "mcp."); ok {
		_, name, _ = strings.Cut(rest, ".")
	}
	var found []string
	for w := range strings.FieldsFuncSeq(camel.ReplaceAllString(name, "${1}_$2"), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if w = strings.ToLower(w); len(w) > 2 && !(reads && ways[w]) {
			found = append(found, w)
		}
	}
	return found
}

// ways are words in the names of tools that say how, and not what.
var ways = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("get list search read describe count fetch check view show status find query look lookup retrieve load open " +
		"see watch all any and the for from with into out new one ids tool mcp api") {
		m[w] = true
	}
	return m
}()

func stem(word string) string {
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

// readKey is the key of a call that reads.
func readKey(c *tool.Call) string {
	args, err := canonical(c.Args)
	if err != nil {
		args = string(c.Args)
	}
	return c.Name + "\x00" + args
}

// inside notes what a result says that is not from outside, of a session where
// it may matter.
func (t *Taint) inside(c *tool.Call, res *tool.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(&c.From, false)
	if s == nil || !s.spoken && s.by == "" {
		return
	}
	if !c.Tool.IsRead() {
		clear(s.read)
	}
	if room := maxTainted/4 - s.house.Len(); room > 0 {
		text := foldSpace(unescape(res.JoinText() + "\n" + string(res.Structured)))
		s.house.WriteByte(' ')
		s.house.WriteString(text[:min(len(text), room)])
		t.trim(s)
	}
}

// yamlTexts returns the texts in a list or object that is nearly JSON, such as
// what Python prints.
func yamlTexts(text string) (texts []string) {
	var doc yaml.Node
	if t := strings.TrimSpace(text); len(t) > maxPassage || !strings.HasPrefix(t, "[") && !strings.HasPrefix(t, "{") || yaml.Unmarshal([]byte(text), &doc) != nil {
		return nil
	}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			texts = append(texts, n.Value)
		}
		for _, c := range n.Content {
			visit(c)
		}
	}
	visit(&doc)
	return texts
}
