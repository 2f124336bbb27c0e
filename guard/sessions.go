package guard

import (
	"container/list"
	"sync"

	"github.com/helve-ai/helve/tool"
)

// maxSessions is how many sessions are remembered; of more, those that called
// longest ago are forgotten. One takes about 2 KB.
const maxSessions = 2000

// Sessions remembers what each session did lately, for the stages that look
// for loops. It is safe for concurrent use. The zero Sessions is empty.
//
// It lives in the process: a session that is served by several has a memory in
// each.
type Sessions struct {
	mu    sync.Mutex
	byKey map[callerKey]*list.Element
	order list.List // of *session, the latest caller first
	taint taintMemory
}

// A callerKey tells one line of work from another.
type callerKey struct{ app, agent, user, session string }

type session struct {
	key      callerKey
	calls    []pastCall // oldest first
	serial   uint64     // of the next call
	mistakes int        // in a row
	batch    string     // the call whose members made the last mistake
	replies  int        // whose calls are under way
	erred    bool       // one of their calls was a mistake, and none since went well
}

// of returns the memory of the session that makes a call. The lock is held.
func (s *Sessions) of(from *tool.Origin) *session {
	key := callerKey{from.App, from.Agent, from.User, from.Session}
	if e, ok := s.byKey[key]; ok {
		s.order.MoveToFront(e)
		return e.Value.(*session)
	}
	if s.byKey == nil {
		s.byKey = map[callerKey]*list.Element{}
	}
	if s.order.Len() >= maxSessions {
		oldest := s.order.Back()
		delete(s.byKey, oldest.Value.(*session).key)
		s.order.Remove(oldest)
	}
	m := &session{key: key}
	s.byKey[key] = s.order.PushFront(m)
	return m
}

// Callers says whose calls the stages that look for loops watch. The zero
// Callers are the agents.
type Callers string

// The callers. What acts as the app, watchers and schedules are never
// watched: repeating is what they are for.
const (
	Agents     Callers = "agents" // models in our own loop, their background work and scripts
	AllCallers Callers = "all"    // MCP and HTTP clients and the command line as well
	NoCallers  Callers = "none"
)

func (w Callers) include(k tool.Kind) bool {
	switch k {
	case tool.KindModel, "", tool.KindBackground, tool.KindScript:
		return w != NoCallers
	case tool.KindMCP, tool.KindHTTP, tool.KindCLI:
		return w == AllCallers
	}
	return false
}
