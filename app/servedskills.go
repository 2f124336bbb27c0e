package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/skill"
)

// checkServed holds dev.serve_skills to the skills that there are, and to what
// the protocol lets be served.
func (l *loader) checkServed(root *node, known map[string]string) {
	for i, item := range root.get("dev", "serve_skills").list() {
		at := fmt.Sprintf("dev.serve_skills[%d]", i)
		if item.kind != isString || l.broken[at] {
			continue
		}
		if item.text != "*" && known[item.text] == "" {
			l.fail(item.at, at, fmt.Sprintf("there is no skill %q", item.text), cmp.Or(nearest(item.text, slices.Sorted(maps.Keys(known))), "declare it under dev.skills"))
		}
		for _, s := range l.skills { // those that are broken were told of
			switch {
			case s.Command != item.text && item.text != "*":
			case s.Folder == "":
				l.fail(item.at, at, fmt.Sprintf("the skill %s is a file alone, and what is served is a folder", s.Command), "put it into a folder of its own as "+skill.File)
			case l.holdsApp(s.Folder):
				l.fail(item.at, at, fmt.Sprintf("the skill %s cannot be served: files of the app lie in its folder, and would be", s.Command), "give the skill a folder of its own")
			case !skill.Named(s.Name):
				l.fail(item.at, at, fmt.Sprintf("the skill %s cannot be served: its %s has the name %q", s.Command, skill.File, s.Name),
					"write name: there, of small letters, digits and single -, 64 at most")
			}
		}
	}
}

// holdsApp reports whether a folder holds one of the app's files.
func (l *loader) holdsApp(folder string) bool {
	return slices.ContainsFunc(l.files, func(file string) bool {
		rel, err := filepath.Rel(folder, file)
		return err == nil && filepath.IsLocal(rel)
	})
}

// ServedSkills returns the skills that clients may read.
func (a *App) ServedSkills() []*skill.Folder { return a.served }

// openServed opens the folders of the skills that clients may read: by the
// rules of the app's root if they lie there, else by those of the app's folder.
func (a *App) openServed(context.Context) error {
	for _, s := range a.Config.skills {
		if !slices.Contains(a.Config.Dev.ServeSkills, s.Command) && !slices.Contains(a.Config.Dev.ServeSkills, "*") {
			continue
		}
		f, err := a.openSkill(s)
		if err != nil {
			a.log.Warn("a skill of the app cannot be served", "skill", s.Command, "why", err)
			continue
		}
		a.served = append(a.served, f)
	}
	return nil
}

func (a *App) openSkill(s module.Skill) (*skill.Folder, error) {
	real, err := filepath.EvalSymlinks(s.Folder)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, err
	}
	r := a.Root
	rel, err := filepath.Rel(r.Dir(), real)
	if err != nil || !filepath.IsLocal(rel) {
		if r, err = root.Open(filepath.Dir(a.Config.file)); err != nil {
			return nil, err
		}
		a.closers = append(a.closers, r.Close)
		if rel, err = filepath.Rel(r.Dir(), real); err != nil || !filepath.IsLocal(rel) {
			return nil, fmt.Errorf("%s lies neither in the root nor in the app's folder", s.Folder)
		}
	}
	return skill.NewFolder(s.Command, s.Name, r, filepath.ToSlash(rel)), nil
}
