package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/helve-ai/helve/poison"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/textedit"
	"github.com/helve-ai/helve/tool"
)

// reviewsEvery is how soon a running Helve learns what an operator has said in
// another process; it looks only while tools are held.
const reviewsEvery = time.Second

// followReviews has servers whose tools are held reconsider them when what the
// store knows of them has changed.
func (u *Upstreams) followReviews(ctx context.Context, s store.Store) {
	tick := time.NewTicker(reviewsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, up := range u.servers {
			up.mu.Lock()
			waits, serial := len(up.held) > 0, up.serial
			up.mu.Unlock()
			if !waits {
				continue
			}
			err := s.View(ctx, func(r store.Reader) error {
				p, err := readPins(r, up.Name)
				if err == nil && p.Serial != serial {
					select {
					case up.reviewed <- struct{}{}:
					default:
					}
				}
				return err
			})
			if err != nil && ctx.Err() == nil {
				up.log.Debug("what was accepted of the MCP server cannot be read", "error", err)
			}
		}
	}
}

// Missing returns why a tool of that name is not on offer, if it is held back,
// or of a server whose tools are not known: an error for the caller that says
// what the operator must do. It returns nil for any other name, and for those
// of servers that shows does not accept.
func (u *Upstreams) Missing(name string, shows func(server string) bool) *tool.Error {
	if u == nil {
		return nil
	}
	if s := u.named(name); s != nil && shows(s.Name) {
		if err := s.unknown(); err != nil {
			return err
		}
	}
	want := squash(name)
	for _, s := range u.servers {
		own := squash(s.owner())
		if !strings.HasPrefix(want, own) || !shows(s.Name) {
			continue
		}
		s.mu.Lock()
		held := s.held
		s.mu.Unlock()
		for _, h := range held {
			if want == own+squash(h.name) {
				return s.heldBack(h)
			}
		}
	}
	return nil
}

// Serving returns the server whose tools have names such as this one, known or not.
func (u *Upstreams) Serving(name string) (server string, ok bool) {
	if u == nil {
		return "", false
	}
	if s := u.named(name); s != nil {
		return s.Name, true
	}
	return "", false
}

// Awaited reports whether calls wait for a server to be started.
func (u *Upstreams) Awaited(server string) bool {
	s, err := u.find(server, func(string) bool { return true })
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls > 0 && s.link == nil
}

// named returns the server that the name of a tool begins with; nil: none.
func (u *Upstreams) named(name string) *upstream {
	for _, s := range u.servers {
		if strings.HasPrefix(name, s.owner()+".") || strings.HasPrefix(name, "mcp__"+s.Name+"__") {
			return s
		}
	}
	return nil
}

// unknown returns why nobody knows the server's tools; nil: they are known.
func (s *upstream) unknown() *tool.Error {
	st := s.now()
	s.mu.Lock()
	known := s.last != nil
	s.mu.Unlock()
	if known {
		return nil
	}
	why := orElse(st.Error, "it has not been asked yet")
	if st.State == Stopped && st.Error == "" {
		why = "it is disabled"
	}
	if st.State == Configured || st.State == Failed {
		why += "; `helve upstreams` tells how it is doing"
	}
	return tool.Errorf(tool.CodeExternal, "the tools of the MCP server %s are not known (%s): %s", s.Name, st.State, why)
}

func (s *upstream) heldBack(h heldName) *tool.Error {
	if h.why == whyRejected || h.why == whyAnother {
		return tool.Errorf(tool.CodeNotVisible, "%s.%s is held back: %s; it is offered again when the server lists it as it was accepted, or when another definition of it is", s.owner(), h.name, h.why)
	}
	return tool.Errorf(tool.CodeNotVisible,
		"%s.%s is held back: %s; the operator looks at it with `helve upstreams review %s`, and lets it pass with `helve upstreams accept %s %s`",
		s.owner(), h.name, h.why, s.Name, s.Name, h.name)
}

// holds returns why a request is not sent: it would run a tool that is held.
func (s *upstream) holds(method, name string) error {
	if method != methodCallTool {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		if h.name == name {
			return s.heldBack(h)
		}
	}
	return nil
}

// squash takes from a name what its spellings differ in.
func squash(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// Reviews are the tools that are held back, as an operator sees and judges
// them. They need no server to run.
type Reviews struct {
	Store store.Store // the one of UpstreamOptions
}

// A Review is a tool that is held back.
type Review struct {
	Server  string           `json:"server"`
	Tool    string           `json:"tool"`
	Why     string           `json:"why"` // changed or flagged
	Since   time.Time        `json:"since"`
	Changes int              `json:"changes"` // how often it changed while it was held
	Back    bool             `json:"back"`    // the server has gone back to what was accepted
	Digest  string           `json:"digest"`  // of the definition that waits
	Flags   []poison.Finding `json:"flags"`
	Old     json.RawMessage  `json:"old,omitempty"` // the definition that was accepted, as it came
	New     json.RawMessage  `json:"new"`
	Diff    string           `json:"diff"` // of the two, as a unified diff; printable
}

// List returns what is held of one server, or for "" of all, and notes that
// it was shown: what was not shown cannot be accepted.
func (v Reviews) List(ctx context.Context, server string) ([]Review, error) {
	var all []Review
	err := v.Store.Update(ctx, func(w store.Writer) error {
		all = []Review{}
		for name, data := range w.Scan(pinBucket, server) {
			if server != "" && name != server {
				continue
			}
			p, err := decodePins(data)
			if err != nil {
				return fmt.Errorf("the MCP server %s: %w", name, err)
			}
			some, err := p.reviews(w, name)
			if err != nil {
				return err
			}
			if all = append(all, some...); len(some) == 0 {
				continue
			}
			if err := p.write(w, name); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

func (p *pins) reviews(r store.Reader, server string) ([]Review, error) {
	var all []Review
	for name, t := range p.tools {
		if t.Held == nil {
			continue
		}
		h := t.Held
		one := Review{Server: server, Tool: name, Why: "changed", Since: h.Since, Changes: h.Changes, Back: h.Back, Digest: h.Sum, Flags: h.Flags}
		if one.Flags == nil {
			one.Flags = []poison.Finding{}
		}
		var err error
		if one.New, err = r.Get(definitionBucket, server+"/"+h.Sum); err != nil {
			return nil, fmt.Errorf("the definition of %s of the MCP server %s: %w", name, server, err)
		}
		if t.sum == "" {
			one.Why = "flagged"
		} else if one.Old, err = r.Get(definitionBucket, server+"/"+t.sum); err != nil {
			return nil, fmt.Errorf("the accepted definition of %s of the MCP server %s: %w", name, server, err)
		}
		one.Diff = textedit.Diff("accepted/"+name, "listed/"+name, pretty(one.Old), pretty(one.New))
		h.Seen = h.Sum
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Review) int { return strings.Compare(a.Tool, b.Tool) })
	return all, nil
}

// pretty returns what a definition says as indented JSON, in which what
// people would not see is spelt out.
func pretty(raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	var b bytes.Buffer
	if json.Indent(&b, meaning(raw), "", "  ") != nil {
		return fmt.Sprintf("%q\n", raw)
	}
	var out strings.Builder
	for _, r := range b.String() {
		if r == '\n' || unicode.IsPrint(r) {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, "\\u{%04X}", r)
		}
	}
	return out.String() + "\n"
}

// ErrNotSeen is why a definition cannot be accepted that no operator was shown.
var ErrNotSeen = errors.New("it has not been shown as it is now; look at it with helve upstreams review")

// Accept lets the named tools of a server pass, or all that are held, as they
// were shown. It returns their names. All or none.
func (v Reviews) Accept(ctx context.Context, server string, names ...string) ([]string, error) {
	return v.decide(ctx, server, names, func(p *pin) error {
		h := p.Held
		switch {
		case h.Seen != h.Sum:
			return ErrNotSeen
		case !h.Back || p.sum == "":
			p.sum, p.Flags = h.Sum, h.Flags
			p.Rejected = slices.DeleteFunc(p.Rejected, func(says string) bool { return says == h.Says })
		}
		p.Held = nil
		return nil
	})
}

// Reject turns down the definitions of the named tools, or of all that are
// held. They stay held until the server lists them as they were accepted, or
// otherwise again. It returns their names.
func (v Reviews) Reject(ctx context.Context, server string, names ...string) ([]string, error) {
	return v.decide(ctx, server, names, func(p *pin) error {
		p.Rejected = append(p.Rejected, p.Held.Says)
		p.Rejected = p.Rejected[max(0, len(p.Rejected)-maxRejected):]
		p.Held = nil
		return nil
	})
}

func (v Reviews) decide(ctx context.Context, server string, names []string, do func(*pin) error) (done []string, err error) {
	err = v.Store.Update(ctx, func(w store.Writer) error {
		done = nil
		p, err := readPins(w, server)
		if err != nil {
			return err
		}
		for name, t := range p.tools {
			if t.Held == nil || len(names) > 0 && !slices.Contains(names, name) {
				continue
			}
			texts := []string{t.sum, t.Held.Sum}
			if err := do(t); err != nil {
				return fmt.Errorf("%s of the MCP server %s: %w", name, server, err)
			}
			for _, sum := range texts {
				if sum != "" && sum != t.sum {
					if err := w.Delete(definitionBucket, server+"/"+sum); err != nil {
						return err
					}
				}
			}
			done = append(done, name)
		}
		for _, name := range names {
			if !slices.Contains(done, name) {
				return fmt.Errorf("no tool %q of the MCP server %q is held; helve upstreams review lists those that are", name, server)
			}
		}
		slices.Sort(done)
		if len(done) == 0 {
			return nil
		}
		return p.write(w, server)
	})
	return done, err
}
