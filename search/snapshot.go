package search

import (
	"cmp"
	"slices"

	"github.com/helve-ai/helve/tool"
)

// A view is a segment and which of its documents are gone. It never changes.
type view struct {
	seg *segment
	*engine
	gone  []uint64 // bits by document; nil: none
	lost  []uint32 // by term: how many of the documents that are gone contain it; nil: none is gone
	goner int      // how many are gone
	warm  bool     // not to be merged: more of its documents are to come
	base  int      // added to a document's place, tells it from those of other views
}

func (v *view) isGone(doc int) bool { return v.gone != nil && v.gone[doc>>6]&(1<<(doc&63)) != 0 }

// df returns how many of the documents that are there contain the term.
func (v *view) df(id uint32) uint32 {
	n := v.seg.first[id+1] - v.seg.first[id]
	if v.lost != nil {
		n -= v.lost[id]
	}
	return n
}

func (v *view) live() int { return len(v.seg.tools) - v.goner }

// A place is where a tool is indexed.
type place struct {
	view uint32
	doc  uint32
}

// A snapshot is what the index holds at one time. It never changes.
type snapshot struct {
	*engine
	views  []view
	places []place // in the order of the tools' names
	warm   *warm   // what Prime gave; nil: nothing, or used up
	docs   int     // of all views, those that are gone included
}

func (s *snapshot) tool(p place) *tool.Tool { return s.views[p.view].seg.tools[p.doc] }

func (s *snapshot) at(doc int) *tool.Tool {
	v := s.viewOf(doc)
	return v.seg.tools[doc-v.base]
}

func (s *snapshot) viewOf(doc int) *view {
	for i := len(s.views) - 1; i > 0; i-- {
		if doc >= s.views[i].base {
			return &s.views[i]
		}
	}
	return &s.views[0]
}

// next returns the snapshot that holds exactly the tools of set.
func (s *snapshot) next(set *tool.Set) *snapshot {
	added, removed := s.diff(set)
	if len(added) == 0 && len(removed) == 0 {
		return s
	}
	views := slices.Clone(s.views)
	drop(views, removed)
	w := s.warm
	if w != nil && len(added) > 0 {
		views, added = s.revive(views, added)
		if slices.ContainsFunc(views, func(v view) bool { return v.seg.warm == w && !v.warm }) {
			w = nil // all of it has come
		}
	}
	for part := range slices.Chunk(added, maxDocs) {
		views = append(views, view{engine: s.engine, seg: buildSegment(part, s.engine)})
	}
	return assemble(compact(views), s.engine, w)
}

// diff returns the tools of set that s does not hold, and where those are that
// s holds and set does not. Both are walked in the order of names.
func (s *snapshot) diff(set *tool.Set) (added []*tool.Tool, removed []place) {
	i := 0
	for t := range set.All() {
		for i < len(s.places) {
			old := s.tool(s.places[i])
			if old == t || old.Name >= t.Name {
				break
			}
			removed = append(removed, s.places[i])
			i++
		}
		switch {
		case i == len(s.places) || s.tool(s.places[i]).Name != t.Name:
			added = append(added, t)
			continue
		case s.tool(s.places[i]) != t:
			added = append(added, t)
			removed = append(removed, s.places[i])
		}
		i++
	}
	return added, append(removed, s.places[min(i, len(s.places)):]...)
}

// drop marks documents as gone, in copies of what the views shared.
func drop(views []view, removed []place) {
	byView := map[uint32][]uint32{}
	for _, p := range removed {
		byView[p.view] = append(byView[p.view], p.doc)
	}
	for i, docs := range byView {
		v := &views[i]
		lost := make([]uint32, v.seg.terms())
		copy(lost, v.lost)
		gone := make([]uint64, (len(v.seg.tools)+63)/64)
		copy(gone, v.gone)
		for _, d := range docs {
			gone[d>>6] |= 1 << (d & 63)
			v.seg.eachTerm(uint16(d), func(id uint32) { lost[id]++ })
		}
		v.gone, v.lost, v.goner = gone, lost, v.goner+len(docs)
	}
}

// compact merges views until each has more than twice the documents of the
// next smaller one, and none more that are gone than a quarter. So there are
// few views, and a tool is merged again only every time its view doubles.
func compact(views []view) []view {
	views = slices.DeleteFunc(views, func(v view) bool { return v.live() == 0 })
	if i := slices.IndexFunc(views, func(v view) bool { return v.warm }); i >= 0 {
		return append(compact(slices.Delete(slices.Clone(views), i, i+1)), views[i])
	}
	for i := range views {
		if 4*views[i].goner > len(views[i].seg.tools) {
			views[i] = view{engine: views[i].engine, seg: merge(views[i : i+1])}
		}
	}
	slices.SortStableFunc(views, func(a, b view) int { return cmp.Compare(b.live(), a.live()) })
	for i := len(views) - 1; i > 0; i-- {
		total := 0
		for _, v := range views[i:] {
			total += v.live()
		}
		if both := views[i-1].live() + total; 2*total > views[i-1].live() && both <= maxDocs {
			views = append(views[:i-1], view{engine: views[i].engine, seg: merge(views[i-1:])})
		}
	}
	return views
}

func assemble(views []view, e *engine, w *warm) *snapshot {
	s := &snapshot{engine: e, warm: w, views: views, places: inOrder(views)}
	for i := range views {
		views[i].base = s.docs
		s.docs += len(views[i].seg.tools)
	}
	return s
}

// inOrder returns where the tools are that are there, in the order of their
// names. The documents of each segment are in that order already.
func inOrder(views []view) []place {
	total := 0
	for i := range views {
		total += views[i].live()
	}
	out := make([]place, 0, total)
	next := make([]int, len(views))
	for {
		least := -1
		for i := range views {
			tools := views[i].seg.tools
			for next[i] < len(tools) && views[i].isGone(next[i]) {
				next[i]++
			}
			if next[i] < len(tools) && (least < 0 || tools[next[i]].Name < views[least].seg.tools[next[least]].Name) {
				least = i
			}
		}
		if least < 0 {
			return out
		}
		out = append(out, place{uint32(least), uint32(next[least])})
		next[least]++
	}
}
