package mcpbridge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/poison"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

const (
	pinBucket        = "pins"        // which definitions of a server were accepted, by its name
	definitionBucket = "definitions" // their texts, by the server's name, a slash and the digest
	pinFormat        = 1
	maxPins          = 40_000 // names that one server may ever have listed
	maxRejected      = 32     // definitions of one tool that are remembered as rejected; the oldest are forgotten
)

// OnChange says what becomes of a tool whose definition has changed since it
// was accepted.
type OnChange string

// The values of OnChange. The zero OnChange holds tools of servers that are
// not trusted, and accepts the changes of those that are.
const (
	Quarantine   OnChange = "quarantine" // it is held until an operator has accepted the change
	AcceptChange OnChange = "accept"
)

// OnFlagged says what becomes of a tool in whose definition something was
// found that may mislead models or people (see the package poison).
type OnFlagged string

// The values of OnFlagged. The zero OnFlagged is HoldSevere.
const (
	HoldSevere  OnFlagged = "hold_severe" // what is hardly ever meant well is held, the rest offered with a warning
	HoldFlagged OnFlagged = "hold"
	WarnFlagged OnFlagged = "warn"
)

// A pin is what is known of one tool of a server beside the digest that was accepted.
type pin struct {
	sum   string           // of the definition that was accepted; "": none was
	Flags []poison.Finding `json:"flags,omitempty"`
	Held  *heldPin         `json:"held,omitempty"`
	// Rejected are the digests of what definitions say that an operator turned down.
	Rejected []string `json:"rejected,omitempty"`
}

// A heldPin is a definition that waits for an operator.
type heldPin struct {
	Sum     string           `json:"sum"`     // of its bytes
	Says    string           `json:"says"`    // digest of what it says
	Since   time.Time        `json:"since"`   // when it came first
	Changes int              `json:"changes"` // how often the tool changed while it was held
	Back    bool             `json:"back"`    // the server has gone back to what was accepted
	Seen    string           `json:"seen"`    // Sum of what an operator was shown
	Flags   []poison.Finding `json:"flags,omitempty"`
}

func (p *pin) plain() bool { return len(p.Flags) == 0 && p.Held == nil && len(p.Rejected) == 0 }

// worst returns a severe finding, if there is one.
func worst(found []poison.Finding) poison.Finding {
	if i := slices.IndexFunc(found, func(f poison.Finding) bool { return f.Kind.Severe() }); i >= 0 {
		return found[i]
	}
	return found[0]
}

// pins are the definitions that were accepted of one server, by tool.
type pins struct {
	Format  int             `json:"format"`
	Serial  uint64          `json:"serial"` // counts the writes
	Special map[string]*pin `json:"special"`

	tools map[string]*pin
}

// encode returns pins as the store keeps them: a line of JSON, and one for
// each tool with its digest, which is read faster.
func (p *pins) encode() ([]byte, error) {
	head := pins{Format: pinFormat, Serial: p.Serial, Special: map[string]*pin{}}
	var body bytes.Buffer
	for name, t := range p.tools {
		if !t.plain() {
			head.Special[name] = t
		}
		fmt.Fprintf(&body, "%-32s %s\n", t.sum, name)
	}
	line, err := tool.Encode(head)
	return slices.Concat(line, []byte("\n"), body.Bytes()), err
}

// decodePins reads what encode wrote; nil is what nobody has written yet.
func decodePins(data []byte) (*pins, error) {
	p := &pins{tools: map[string]*pin{}}
	if data == nil {
		return p, nil
	}
	line, body, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(line, p); err != nil {
		return nil, fmt.Errorf("what was accepted of the server cannot be read: %w", err)
	}
	if p.Format != pinFormat {
		return nil, fmt.Errorf("what was accepted of the server is kept in the format %d, not %d", p.Format, pinFormat)
	}
	rest := string(body)
	p.tools = make(map[string]*pin, len(rest)/64)
	for rest != "" {
		var one string
		one, rest, _ = strings.Cut(rest, "\n")
		if len(one) < 34 {
			return nil, fmt.Errorf("what was accepted of the server cannot be read: the line %.60q", one)
		}
		name := one[33:]
		t := p.Special[name]
		if t == nil {
			t = &pin{}
		}
		t.sum = strings.TrimSpace(one[:32])
		p.tools[name] = t
	}
	return p, nil
}

func readPins(r store.Reader, server string) (*pins, error) {
	data, err := r.Get(pinBucket, server)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return decodePins(data)
}

func (p *pins) write(w store.Writer, server string) error {
	p.Serial++
	data, err := p.encode()
	if err != nil {
		return err
	}
	return w.Put(pinBucket, server, data)
}

// digest returns a digest of bytes, in 32 hexadecimal digits.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// told is what a definition says to models and clients: what is compared. The
// rest (_meta, icons) may change.
type told struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Input       any    `json:"inputSchema,omitempty"`
	Output      any    `json:"outputSchema,omitempty"`
	Annotations any    `json:"annotations,omitempty"`
}

// meaning returns what a definition says, the same for the same whatever the
// order of its keys.
func meaning(raw json.RawMessage) []byte {
	var t told
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&t) != nil {
		return raw
	}
	out, err := tool.Encode(t)
	if err != nil {
		return raw
	}
	return out
}

// A judging holds the tools of a list against what was accepted.
type judging struct {
	s     *upstream
	now   bool // the server has just listed these tools
	pins  *pins
	text  func(sum string) []byte    // of a definition that is kept; nil: none is
	texts map[string]json.RawMessage // that are to be kept
	drop  []string                   // digests of texts that are not needed any more
	dirty bool
	fresh map[string]string // the tools that are held from now on, and why
}

// all looks at every tool of m.
func (j *judging) all(m *manifest) {
	j.texts, j.fresh = map[string]json.RawMessage{}, map[string]string{}
	for name, e := range m.made {
		// A list of earlier is no word that the server went back to it.
		if p := j.pins.tools[name]; j.now || p == nil || p.Held == nil && j.s.acceptsChanges() {
			j.one(name, e)
		}
	}
}

func (j *judging) one(name string, e *manifestEntry) {
	p := j.pins.tools[name]
	switch {
	case p == nil && len(j.pins.tools) >= maxPins:
		return // holding keeps what has no pin
	case p == nil:
		j.meet(name, e)
		return
	case p.sum == e.sum:
		if p.Held != nil && !p.Held.Back && p.sum != "" {
			p.Held.Back, j.dirty = true, true
		}
		return
	case p.Held != nil && p.Held.Sum == e.sum && !p.Held.Back:
		return
	}
	now := meaning(e.raw)
	if p.sum != "" {
		if old := j.text(p.sum); old != nil && bytes.Equal(meaning(old), now) {
			j.drop = append(j.drop, p.sum)
			p.sum = e.sum
			j.keep(e)
			return
		}
	}
	sum := digest(now)
	switch {
	case slices.Contains(p.Rejected, sum):
	case p.Held != nil && p.Held.Says == sum:
		if p.Held.Back || p.Held.Sum != e.sum {
			if p.Held.Back {
				p.Held.Changes++
			}
			if p.Held.Seen == p.Held.Sum && p.Held.Seen != "" {
				p.Held.Seen = e.sum // it says what the operator has seen
			}
			j.drop = append(j.drop, p.Held.Sum)
			p.Held.Back, p.Held.Sum = false, e.sum
			j.keep(e)
		}
	default:
		j.changed(name, p, e, sum)
	}
}

// meet looks at a tool for the first time.
func (j *judging) meet(name string, e *manifestEntry) {
	p := &pin{Flags: poison.Definition(e.raw)}
	j.pins.tools[name] = p
	if j.s.holdsFlags(p.Flags) {
		p.Held = &heldPin{Sum: e.sum, Says: digest(meaning(e.raw)), Since: time.Now().UTC(), Flags: p.Flags}
		p.Flags = nil
		j.fresh[name] = "suspicious: " + worst(p.Held.Flags).String()
	} else {
		p.sum = e.sum
	}
	j.keep(e)
}

func (j *judging) changed(name string, p *pin, e *manifestEntry, sum string) {
	flags := poison.Definition(e.raw)
	j.keep(e)
	if p.Held == nil && j.s.acceptsChanges() && !j.s.holdsFlags(flags) {
		j.drop = append(j.drop, p.sum)
		p.sum, p.Flags = e.sum, flags
		return
	}
	h := &heldPin{Sum: e.sum, Says: sum, Since: time.Now().UTC(), Flags: flags}
	if p.Held != nil {
		j.drop = append(j.drop, p.Held.Sum)
		h.Since, h.Changes = p.Held.Since, p.Held.Changes+1
	} else {
		j.fresh[name] = "its definition changed after it was accepted"
	}
	p.Held = h
}

func (j *judging) keep(e *manifestEntry) {
	j.dirty = true
	j.texts[e.sum] = e.raw
}

func (s *upstream) acceptsChanges() bool {
	return s.OnChange == AcceptChange || s.OnChange == "" && s.Trusted
}

func (s *upstream) holdsFlags(found []poison.Finding) bool {
	switch s.OnFlagged {
	case WarnFlagged:
		return false
	case HoldFlagged:
		return len(found) > 0
	}
	return poison.Severe(found)
}

const (
	whyRejected = "an operator rejected its definition"
	whyAnother  = "another definition of it was accepted"
)

// holding says why a tool is held back; "": it is not.
func (p *pins) holding(name, sum string) string {
	t := p.tools[name]
	switch {
	case t == nil:
		return fmt.Sprintf("the server has listed more than %d names of tools", maxPins)
	case t.Held != nil && t.sum == "":
		return "its definition is suspicious"
	case t.Held != nil:
		return "its definition changed after it was accepted"
	case t.sum != sum && len(t.Rejected) == 0:
		return whyAnother
	case t.sum != sum:
		return whyRejected
	}
	return ""
}

// matches reports whether every tool of m is one that was accepted as it is.
func (p *pins) matches(m *manifest) bool {
	for name, e := range m.made {
		if t := p.tools[name]; t == nil || t.sum != e.sum || t.Held != nil {
			return false
		}
	}
	return true
}

// judge holds back the tools of m that are not as they were accepted, and
// accepts those that were never seen before; now tells that m was listed just
// now, not remembered. What is not accepted for want of
// a store that can be read is an error: nothing is offered unseen.
func (s *upstream) judge(ctx context.Context, m *manifest, now bool) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var j *judging
	look := func(r store.Reader) (err error) {
		j = &judging{s: s, now: now, text: func(sum string) []byte {
			data, _ := r.Get(definitionBucket, s.Name+"/"+sum)
			return data
		}}
		if j.pins, err = readPins(r, s.Name); err == nil {
			j.all(m)
		}
		return err
	}
	if err := s.keptStore().View(ctx, look); err != nil {
		return fmt.Errorf("what was accepted of the MCP server cannot be read: %w", err)
	}
	if j.dirty {
		fresh := j.fresh
		if err := s.keptStore().Update(ctx, func(w store.Writer) error {
			if err := look(w); err != nil {
				return err
			}
			return j.write(w)
		}); err != nil {
			return fmt.Errorf("what is accepted of the MCP server cannot be kept: %w", err)
		}
		for name, why := range fresh {
			s.log.Warn("a tool of the MCP server is held back; see helve upstreams review", "tool", name, "why", why)
			if s.o.Held != nil {
				s.o.Held(s.owner()+"."+name, why)
			}
		}
	}
	m.release(s, j.pins)
	return nil
}

func (j *judging) write(w store.Writer) error {
	if !j.dirty {
		return nil
	}
	for _, sum := range j.drop {
		if err := w.Delete(definitionBucket, j.s.Name+"/"+sum); err != nil {
			return err
		}
	}
	for sum, raw := range j.texts {
		if err := w.Put(definitionBucket, j.s.Name+"/"+sum, raw); err != nil {
			return err
		}
	}
	return j.pins.write(w, j.s.Name)
}

// keptStore is the store of what was accepted.
func (s *upstream) keptStore() store.Store {
	if s.o.Store != nil {
		return s.o.Store
	}
	return &s.memory
}

// release fills in which tools are offered, and why the others are not.
func (m *manifest) release(s *upstream, p *pins) {
	m.tools, m.held, m.flagged, m.serial = nil, nil, nil, p.Serial
	for _, name := range m.order {
		e := m.made[name]
		if s.Overrides[name].Hidden || s.Only != nil && !slices.Contains(s.Only, name) {
			continue
		}
		if why := p.holding(name, e.sum); why != "" {
			m.held = append(m.held, heldName{name, why})
			continue
		}
		if f := p.tools[name].Flags; len(f) > 0 {
			m.flagged = append(m.flagged, fmt.Sprintf("tool %.60q: %s at %s", name, f[0].Kind, f[0].Where))
		}
		m.tools = append(m.tools, e.tool)
	}
}

type heldName struct{ name, why string }
