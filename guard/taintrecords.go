package guard

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/helve-ai/helve/tool"
)

// A record is what a result says of something that has an id.
type record struct {
	id    string
	names []string // its texts, folded
}

// recordsOf returns an object as a record, under each id that it has.
func recordsOf(object map[string]any) []record {
	var ids, names []string
	for key, v := range object {
		text, isText := v.(string)
		switch {
		case isID.MatchString(key):
			switch v.(type) {
			case string, float64:
				ids = append(ids, foldSpace(fmt.Sprint(v)))
			}
		case isText && len(text) <= longText:
			names = append(names, foldSpace(text))
		}
	}
	found := make([]record, len(ids))
	for i, id := range ids {
		found[i] = record{id, names}
	}
	return found
}

// records are those that came from outside, by the module or server of the tool
// that told them.
type records struct {
	byID map[string][][]string      // the names of each record of that id
	ids  map[string]map[string]bool // the ids that have a name
	full bool
}

func ownerOf(name string) string { return name[:strings.LastIndexByte(name, '.')+1] }

func (r *records) add(name string, found []record) {
	if r.byID == nil && len(found) > 0 {
		r.byID, r.ids = map[string][][]string{}, map[string]map[string]bool{}
	}
	owner := ownerOf(name)
	for _, rec := range found {
		if len(r.byID) >= maxTaintValues || len(r.ids) >= maxTaintValues || len(r.byID[owner+rec.id]) >= 20 {
			r.full = true
			return
		}
		r.byID[owner+rec.id] = append(r.byID[owner+rec.id], rec.names)
		for _, n := range rec.names {
			if r.ids[owner+n] == nil {
				r.ids[owner+n] = map[string]bool{}
			}
			r.ids[owner+n][rec.id] = true
		}
	}
}

// names reports whether an id is of a record that the user named: each record
// of that id has a text of words that the user said, which no record of another
// id has. All must be of the server whose tool is called: others could say that
// it is called so.
func (s *tainted) names(c *tool.Call, id string) bool {
	id = foldSpace(id)
	owner := ownerOf(c.Name)
	all := s.records.byID[owner+id]
	if len(all) == 0 || s.over || s.records.full {
		return false
	}
	for _, names := range all {
		if !s.namesOne(owner, names) {
			return false
		}
	}
	return true
}

func (s *tainted) namesOne(owner string, names []string) bool {
	for _, n := range names {
		words := saidWords(n)
		if len(n) > 3 && strings.ContainsFunc(n, unicode.IsLetter) && len(words) > 0 && s.owns(words) && len(s.records.ids[owner+n]) == 1 {
			return true
		}
	}
	return false
}
