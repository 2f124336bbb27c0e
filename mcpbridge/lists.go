package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// allKinds are the kinds of things beside tools.
var allKinds = []*kind{resources, templates, prompts, skills}

// recallLists believes the lists of a record while the server does not run.
func (s *upstream) recallLists(r *record) {
	s.mu.Lock()
	s.lists = r.Lists
	s.mu.Unlock()
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	for _, kept := range r.Lists {
		for _, k := range allKinds {
			if k.key == kept.Key && slices.Contains(r.Offers, k.capability()) {
				s.relay.put(k, newList(k, kept.raws))
			}
		}
	}
}

// keepList has the store keep a list beside the tools, and reports whether it
// is another than before.
func (s *upstream) keepList(k *kind, raws []json.RawMessage) bool {
	s.mu.Lock()
	lists := slices.Clone(s.lists)
	at := slices.IndexFunc(lists, func(l keptList) bool { return l.Key == k.key })
	same := at >= 0 && slices.EqualFunc(lists[at].raws, raws, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	if at >= 0 {
		lists[at].raws = raws
	} else {
		lists = append(lists, keptList{Key: k.key, raws: raws})
	}
	s.lists = lists
	last := s.last
	s.mu.Unlock()
	if last != nil && !same {
		s.save(last)
	}
	return !same
}

// kept returns what is kept of a list, if anything is.
func (s *upstream) kept(k *kind) ([]json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lists {
		if l.Key == k.key {
			return l.raws, true
		}
	}
	return nil, false
}

// learn reads over a connection that was just made what the server offers
// beside tools, so that it is known when the server does not run.
func (s *upstream) learn(ctx context.Context, l *link) {
	if s.o.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	for _, k := range allKinds {
		has, tells := k.of(l.session.InitializeResult().Capabilities)
		if !has {
			s.dropList(k)
			continue
		}
		change := s.relay.change(k)
		raws, err := pages(k.key, func(cursor string) (json.RawMessage, error) {
			return l.call(ctx, k.method, rawParams{Cursor: cursor}, nil)
		})
		if e := refusedBy(err); e != nil && e.Code == jsonrpc.CodeMethodNotFound {
			raws, err = nil, nil
		}
		if err != nil {
			s.log.Debug("the MCP server does not list", "what", k.key, "error", plain(err))
			continue
		}
		s.learned(k, raws, tells, change)
	}
}

// learned notes a list that was read after the change of that number.
func (s *upstream) learned(k *kind, raws []json.RawMessage, tells bool, change int) *list {
	l := newList(k, raws)
	if s.keepList(k, raws) {
		for _, why := range l.leftOut {
			s.log.Warn("a skill of the MCP server cannot be used", "why", why)
		}
	}
	r := &s.relay
	r.mu.Lock()
	defer r.mu.Unlock()
	if tells && r.changes[k] == change {
		l.until = time.Now().Add(listLasts)
	}
	r.put(k, l)
	return l
}

// dropList is for a server that no longer has such things.
func (s *upstream) dropList(k *kind) {
	s.mu.Lock()
	before := len(s.lists)
	s.lists = slices.DeleteFunc(slices.Clone(s.lists), func(l keptList) bool { return l.Key == k.key })
	last, fewer := s.last, len(s.lists) < before
	s.mu.Unlock()
	if fewer && last != nil {
		s.save(last)
	}
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	delete(s.relay.lists, k)
}

func (r *relay) change(k *kind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes[k]
}

// put replaces a list. The caller holds r.mu.
func (r *relay) put(k *kind, l *list) {
	if r.lists == nil {
		r.lists = map[*kind]*list{}
	}
	r.lists[k] = l
}
