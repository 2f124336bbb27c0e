package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// checkSkills reads the skills that the app declares, each a folder with a
// SKILL.md in it, and those of its skill folders, and holds the agents'
// capabilities to them.
func (l *loader) checkSkills(root *node) {
	known := map[string]string{} // the files, by the skills' names
	for i, item := range root.get("dev", "skills").list() {
		at := fmt.Sprintf("dev.skills[%d]", i)
		folder := item.get("path")
		if l.broken[at] || l.broken[at+".path"] || folder == nil || item.get("command") == nil || folder.kind != isString {
			continue
		}
		file := *folder
		if !strings.HasSuffix(strings.ToLower(file.text), ".md") {
			file.text = strings.TrimSuffix(file.text, "/") + "/" + skill.File
		}
		text, ok := l.lexiconFile(&file, at+".path")
		if !ok {
			continue
		}
		s := module.Skill{Command: strings.TrimPrefix(item.get("command").str(), "/"), Description: item.get("description").str()}
		l.addSkill(s, item.get("command").at, at+".command", l.words[len(l.words)-1], text, known)
	}
	for i, item := range root.get("dev", "skill_folders").list() {
		if at := fmt.Sprintf("dev.skill_folders[%d]", i); item.kind == isString && !l.broken[at] {
			l.findSkills(item, at, known)
		}
	}
	l.checkServed(root, known)
	for i, a := range root.get("agents").list() {
		for j, c := range a.get("capabilities").list() {
			if c.kind == isString && known[c.text] == "" {
				l.fail(c.at, fmt.Sprintf("agents[%d].capabilities[%d]", i, j), fmt.Sprintf("there is no skill %q", c.text), cmp.Or(nearest(c.text, slices.Sorted(maps.Keys(known))), "declare it under dev.skills"))
			}
		}
	}
}

// findSkills reads the skills of a folder. Nothing may write in it but people:
// what lies there is told to agents.
func (l *loader) findSkills(item *node, at string, known map[string]string) {
	dir, rel, ok := l.within(item, at)
	if !ok {
		return
	}
	names, err := skillsIn(dir, rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.fail(item.at, at, fmt.Sprintf("%q cannot be read: %v", item.text, why(err)), "")
		return
	case err != nil:
		l.passOver(item.at, at, item.text, err)
		return
	}
	l.words = append(l.words, filepath.Join(dir, rel))
	for _, name := range names {
		file := filepath.Join(rel, name, skill.File)
		if slices.Contains(l.words, filepath.Join(dir, file)) {
			continue // declared by itself
		}
		text, err := readWithin(dir, file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			l.passOver(item.at, at, filepath.Join(item.text, name, skill.File), err)
			continue
		}
		l.addSkill(module.Skill{Command: name}, item.at, at, filepath.Join(dir, file), text, known)
	}
}

// passOver notes what of a folder of skills cannot be read. The app does without
// it: an agent that names one of its skills is told of as always.
func (l *loader) passOver(at place, path, name string, err error) {
	l.unread = append(l.unread, Problem{at.file, at.line, at.col, path, fmt.Sprintf("%s cannot be read: %v", name, why(err)), ""})
}

// skillsIn lists the folders in a folder of the app, none of which is hidden.
func skillsIn(dir, rel string) (names []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all, err := fs.ReadDir(root.FS(), filepath.ToSlash(rel))
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), ".") && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// skillTexts returns what there is of skills in a folder, to tell whether that
// has changed.
func skillTexts(folder string) (out []byte) {
	names, _ := skillsIn(folder, ".") // what cannot be read is not there
	for _, name := range names {
		text, _ := readWithin(folder, filepath.Join(name, skill.File))
		out = append(append(append(out, name...), 0), text...)
	}
	return out
}

// addSkill reads a skill's file and adds it, unless something is wrong with it.
func (l *loader) addSkill(s module.Skill, at place, path, file string, text []byte, known map[string]string) {
	if !idForm.MatchString(s.Command) || known[s.Command] != "" {
		l.fail(at, path, fmt.Sprintf("%q is no name for a skill, or taken", s.Command), "use small letters, digits, - and _, each name once")
		return
	}
	known[s.Command] = file
	if filepath.Base(file) == skill.File {
		s.Folder = filepath.Dir(file)
	}
	if faults := readSkill(&s, text); len(faults) > 0 {
		for _, f := range faults {
			l.fail(place{file, f.line, 1}, "", f.message, f.remedy)
		}
		return
	}
	l.skills = append(l.skills, s)
}

// A skillFault is what is wrong with a SKILL.md, and in which line.
type skillFault struct {
	line            int
	message, remedy string
}

var skillYAML = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s*)?line (\d+): `)

// readSkill reads a SKILL.md: front matter in YAML between lines of three
// dashes, then the instructions. Keys that are not ours are other readers'.
func readSkill(s *module.Skill, text []byte) (faults []skillFault) {
	fault := func(line int, message, remedy string) {
		faults = append(faults, skillFault{line, message, remedy})
	}
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	const form = "write ---, name and description, ---, and below it the instructions"
	rest, ok := bytes.CutPrefix(text, []byte("---\n"))
	if !ok {
		fault(1, "does not begin with front matter", form)
		return faults
	}
	front, body, closed := cutLine(rest, "---")
	if !closed {
		fault(1, "its front matter has no end", form)
		return faults
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(front, &doc); err != nil {
		line, message := 1, err.Error()
		if m := skillYAML.FindStringSubmatch(message); m != nil {
			line, _ = strconv.Atoi(m[1])
			message = message[len(m[0]):]
		}
		fault(line+1, "its front matter is no YAML: "+message, "put texts that hold \": \" into quotes")
		return faults
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		fault(2, "its front matter is no map", form)
		return faults
	}
	fields := doc.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		if message, remedy := (*skillReader)(s).field(fields[i].Value, fields[i+1]); message != "" {
			fault(fields[i+1].Line+1, fields[i].Value+": "+message, remedy)
		}
	}
	s.Text = strings.TrimSpace(string(body))
	if s.Description == "" && len(faults) == 0 {
		fault(1, "has no description", "add description: when it is of use, in its front matter")
	}
	if s.Text == "" {
		fault(1+bytes.Count(text, []byte("\n")), "has no instructions", "write them below its front matter")
	}
	return faults
}

// cutLine cuts a text at the first line that is sep.
func cutLine(text []byte, sep string) (before, after []byte, found bool) {
	for at := 0; at < len(text); {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if string(bytes.TrimRight(text[at:end], " \t\n")) == sep {
			return text[:at], text[end:], true
		}
		at = end
	}
	return text, nil, false
}

// A skillReader is a skill that takes what its front matter says.
type skillReader module.Skill

// field takes one field. What is wrong with it is said, with what would be right.
func (s *skillReader) field(key string, n *yaml.Node) (message, remedy string) {
	switch key {
	case "name":
		s.Name = n.Value
	case "description":
		if n.Kind != yaml.ScalarNode {
			return "is no text", "write a sentence"
		}
		if s.Description == "" {
			s.Description = strings.Join(strings.Fields(n.Value), " ")
		}
	case "needs_network", "needs-network":
		if n.Decode(&s.NeedsNet) != nil {
			return fmt.Sprintf("%q is neither true nor false", n.Value), ""
		}
	case "allowed-tools", "tool_loadout":
		names, ok := listOf(n)
		if !ok {
			return "is no list of tools", "write [filesystem.read, filesystem.list]"
		}
		if s.Tools == nil {
			s.Tools = []string{}
		}
		for _, name := range names {
			if strings.ContainsAny(name, "()") {
				return fmt.Sprintf("%q has a condition on arguments", name), "write the name alone, and the condition into tools.capabilities of the app file"
			}
			s.Tools = append(s.Tools, name)
		}
	case "pass_env", "pass-env":
		names, ok := listOf(n)
		if !ok {
			return "is no list of variables", "write [GOCACHE, LANG]"
		}
		for _, name := range names {
			switch {
			case !variable.MatchString(name):
				return fmt.Sprintf("%q is not the name of a variable", name), ""
			case guard.SecretKey(name):
				s.Withheld = append(s.Withheld, name)
			default:
				s.PassEnv = append(s.PassEnv, name)
			}
		}
	}
	return "", ""
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// listOf reads a list, or a text of names that commas or spaces separate.
func listOf(n *yaml.Node) (names []string, ok bool) {
	if n.Kind == yaml.ScalarNode {
		return strings.FieldsFunc(n.Value, func(r rune) bool { return r == ',' || r == ' ' }), true
	}
	return names, n.Kind == yaml.SequenceNode && n.Decode(&names) == nil
}

// loadedSkills knows which skill each session has loaded. It is kept in the
// store, so that a session that is taken up again is bound as before.
type loadedSkills struct {
	mu sync.Mutex
	by map[string]string
}

const skillBucket = store.Bucket[string]("skills in use")

func skillKey(from tool.Origin) string {
	key, _ := json.Marshal([]string{from.User, from.Session})
	return string(key)
}

// useSkill notes the skill that a session has loaded; "": none any more.
func (a *App) useSkill(ctx context.Context, from tool.Origin, name string) error {
	return a.noteSkill(ctx, from, name, nil)
}

// noteSkill is useSkill for a skill that was loaded from an entry; nil: none.
func (a *App) noteSkill(ctx context.Context, from tool.Origin, name string, entry json.RawMessage) error {
	if from.Session == "" {
		return tool.Errorf(tool.CodePermission, "a skill is loaded for a session, and this call has none")
	}
	a.loaded.mu.Lock()
	defer a.loaded.mu.Unlock()
	key := skillKey(from)
	err := store.Sub(a.Store, "app").Update(ctx, func(w store.Writer) error {
		if entry != nil {
			if err := heldBucket.Put(w, key, entry); err != nil {
				return err
			}
		} else if a.Config.lendsSkills() {
			if err := heldBucket.Delete(w, key); err != nil {
				return err
			}
		}
		if name == "" {
			return skillBucket.Delete(w, key)
		}
		return skillBucket.Put(w, key, name)
	})
	if err == nil {
		a.loaded.note(key, name)
	}
	return err
}

// note remembers what the store says. The lock is held.
func (s *loadedSkills) note(key, name string) {
	if s.by == nil || len(s.by) > 10_000 { // the store knows the rest
		s.by = map[string]string{}
	}
	s.by[key] = name
}

// skillOf returns the name of the skill that a session has loaded; "": none.
func (a *App) skillOf(from tool.Origin) (string, error) {
	if len(a.Config.skills) == 0 && !a.Config.lendsSkills() || from.Session == "" {
		return "", nil
	}
	a.loaded.mu.Lock()
	defer a.loaded.mu.Unlock()
	key := skillKey(from)
	if name, known := a.loaded.by[key]; known {
		return name, nil
	}
	var name string
	err := a.quietly("app").View(context.Background(), func(r store.Reader) (err error) {
		if name, err = skillBucket.Get(r, key); errors.Is(err, store.ErrNotFound) {
			name, err = "", nil
		}
		return err
	})
	if err == nil {
		a.loaded.note(key, name)
	}
	return name, err
}

// capabilities returns the skills that an agent has from the start.
func (a *App) capabilities(from tool.Origin) []string {
	if d := a.Config.agent(from.Agent); d != nil {
		return d.Capabilities
	}
	return nil
}

// withinSkills reports whether the skills that are loaded let a tool be called:
// that of the session, and those of the agent together. If it cannot be told
// which they are, nothing may be called.
func (a *App) withinSkills(from tool.Origin, t *tool.Tool) bool {
	if len(a.Config.skills) == 0 && !a.Config.lendsSkills() || t.Meta || from.Kind.Daemon() || from.Kind == tool.KindMCP || from.Kind == tool.KindCLI {
		return true
	}
	name, err := a.skillOf(from)
	if err != nil {
		return false
	}
	if _, _, theirs := ofServer(name); name != "" && !theirs && !a.inLoadout([]string{name}, t) {
		return false // what a skill of a server says of tools binds nobody, and lets nothing be called
	}
	own := a.capabilities(from)
	return len(own) == 0 || a.inLoadout(own, t)
}

// inLoadout reports whether one of the skills lets a tool be called. A skill
// that is not declared any more lets none.
func (a *App) inLoadout(names []string, t *tool.Tool) bool {
	for _, s := range a.Config.skills {
		if slices.Contains(names, s.Command) && (s.Tools == nil || a.named(s.Tools, t)) {
			return true
		}
	}
	return false
}

// granted returns what the skills that a caller has loaded let its commands
// have, which is nothing where it cannot be told which they are. Skills bind
// and serve agents: others have none. Whoever was set to work has nothing that
// those above it in the app have not, now; what another app calls has what its
// own skills grant it, as its modules are configured by itself.
func (a *App) granted(from tool.Origin) (g module.Grant) {
	if len(a.Config.skills) == 0 || from.Kind.Daemon() || from.Kind == tool.KindMCP || from.Kind == tool.KindCLI {
		return g
	}
	name, err := a.skillOf(from)
	if err != nil {
		return g
	}
	loaded := append(slices.Clone(a.capabilities(from)), name)
	for _, s := range a.Config.skills {
		if slices.Contains(loaded, s.Command) {
			g.Network = g.Network || s.NeedsNet
			g.Env = append(g.Env, s.PassEnv...)
		}
	}
	if u := from.Under; u != nil && u.By.App == a.Config.App.ID {
		theirs := a.granted(u.By)
		g.Network = g.Network && theirs.Network
		g.Env = slices.DeleteFunc(g.Env, func(name string) bool { return !slices.Contains(theirs.Env, name) })
	}
	return g
}
