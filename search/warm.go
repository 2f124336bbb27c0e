package search

import (
	"slices"

	"github.com/helve-ai/helve/tool"
)

// Export returns what the index has made of the tools that it holds, for Prime
// of a later process to take over. It is some hundred bytes to two kilobytes
// for each tool, and worth storing anew when the set of tools has changed. It is
// nil if there are no tools, or more than 65,536.
func (ix *Index) Export() []byte {
	s := ix.load()
	if len(s.places) == 0 || len(s.places) > maxDocs {
		return nil
	}
	seg := s.views[0].seg
	if len(s.views) > 1 || s.views[0].goner > 0 {
		seg = merge(s.views)
	}
	p := pack{seg, make([]digest, len(seg.tools))}
	for i, t := range seg.tools {
		p.digests[i] = digestOf(t)
	}
	return p.encode(s.key())
}

// Prime gives the index what an earlier one has exported, before the first
// Sync: tools of which nothing has changed since then are not analysed again.
// They may come in one Sync or in several. What was exported is kept until all
// of it has come, or Settle is called. The index keeps data, which must not
// change.
//
// Prime fails, and the index works as it would without, if data is damaged or
// of another version (ErrStale).
func (ix *Index) Prime(data []byte) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	now := ix.load()
	p, err := decode(data, now.key())
	if err != nil {
		return err
	}
	docs := make(map[digest]uint32, len(p.digests))
	for i, d := range p.digests {
		docs[d] = uint32(i)
	}
	next := *now
	next.warm = &warm{p.seg, docs}
	p.seg.warm = next.warm
	ix.snap.Store(&next)
	return nil
}

// Settle lets go of what Prime was given and no Sync has asked for: all tools
// that are there at the start have come. Without Prime it does nothing.
func (ix *Index) Settle() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	now := ix.load()
	if now.warm == nil {
		return
	}
	views := slices.Clone(now.views)
	for i := range views {
		views[i].warm = false
	}
	ix.snap.Store(assemble(compact(views), now.engine, nil))
}

// A warm is what is left of what Prime was given.
type warm struct {
	seg  *segment          // without tools
	docs map[digest]uint32 // where tools are
}

// revive takes those of added that the warm segment knows out of it, into the
// view that stands for it. It returns the views, and what is left to be
// analysed.
func (s *snapshot) revive(views []view, added []*tool.Tool) ([]view, []*tool.Tool) {
	at := map[uint32]*tool.Tool{}
	rest := added[:0:0]
	for _, t := range added {
		if d, ok := s.warm.docs[digestOf(t)]; ok {
			at[d] = t
		} else {
			rest = append(rest, t)
		}
	}
	if len(at) == 0 {
		return views, added
	}
	i := slices.IndexFunc(views, func(v view) bool { return v.warm })
	if i < 0 {
		i = len(views)
		views = append(views, s.frozen())
	}
	views[i] = views[i].with(at)
	return views, rest
}

// frozen is the view on the warm segment of which no document is there yet.
func (s *snapshot) frozen() view {
	seg := s.warm.seg
	v := view{engine: s.engine, seg: seg, warm: true, goner: len(seg.tools), gone: make([]uint64, (len(seg.tools)+63)/64), lost: make([]uint32, seg.terms())}
	for i := range v.gone {
		v.gone[i] = ^uint64(0)
	}
	for id := range v.lost {
		v.lost[id] = seg.first[id+1] - seg.first[id]
	}
	return v
}

// with returns the view with documents that were gone and are there again.
func (v view) with(at map[uint32]*tool.Tool) view {
	seg := *v.seg
	seg.tools = slices.Clone(seg.tools)
	v.gone, v.lost = slices.Clone(v.gone), slices.Clone(v.lost)
	for d, t := range at {
		seg.tools[d] = t
		if !v.isGone(int(d)) {
			continue
		}
		v.gone[d>>6] &^= 1 << (d & 63)
		v.goner--
		if v.goner > 0 {
			seg.eachTerm(uint16(d), func(id uint32) { v.lost[id]-- })
		}
	}
	v.seg = &seg
	if v.goner == 0 {
		v.gone, v.lost, v.warm = nil, nil, false
	}
	return v
}
