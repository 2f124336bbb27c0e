package guard

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// A TaintMode says what follows from content that came from outside (SPEC A6).
type TaintMode string

// The modes. The zero TaintMode is TaintOff.
const (
	TaintOff     TaintMode = "off"
	TaintWarn    TaintMode = "warn"    // results of calls that could be another's doing say so
	TaintEnforce TaintMode = "enforce" // such calls need an approval, even where they are granted
)

// Taint remembers which sessions have met content from outside, and what it
// said. What it said lives in the process; that there was some is kept in the
// store, if there is one, and holds for the session in every process that
// shares it: there every value that is not the user's may be another's. It is
// safe for concurrent use. A nil Taint does nothing.
type Taint struct {
	mode  TaintMode
	store store.Store // nil: what is known ends with the process
	now   func() time.Time
	*taintMemory
}

// NewTaint returns a Taint of that mode, whose memory is part of that of the
// sessions (nil: it has one of its own), and which keeps labels in kept (nil:
// nowhere).
func NewTaint(mode TaintMode, s *Sessions, kept store.Store) *Taint {
	if s == nil {
		s = new(Sessions)
	}
	return &Taint{mode, kept, time.Now, &s.taint}
}

// Said notes what the user said in a session: values that stand in it are not
// another's. Who runs the conversation calls it; MCP clients do not tell.
func (t *Taint) Said(from tool.Origin, text string) {
	if t == nil || t.mode == TaintOff {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(&from, true)
	s.spoken = true
	s.said.hear(text)
	for _, w := range saidWords(text) {
		note(s.words, w)
	}
}

// Judge is the Policy that asks about calls that write or send outside in a
// session that has met outside content, when the mode is TaintEnforce. If the
// user's words are known, those calls pass whose values are all the user's own.
func (t *Taint) Judge(ctx context.Context, c *tool.Call) (tool.Verdict, string) {
	if t == nil || t.mode != TaintEnforce {
		return tool.Silent, ""
	}
	if why := t.suspicion(ctx, c); why != "" {
		return tool.Ask, why
	}
	return tool.Silent, ""
}

// Suspicion says why a call that writes or sends may be another's doing, by
// what its session has met; "": it is not. A nil Taint suspects nothing.
func (t *Taint) Suspicion(ctx context.Context, c *tool.Call) string {
	if t == nil || t.mode == TaintOff {
		return ""
	}
	return t.suspicion(ctx, c)
}

// suspicion says why a call may be another's doing; "": it is not.
func (t *Taint) suspicion(ctx context.Context, c *tool.Call) string {
	if c.From.Kind.Daemon() || c.Tool.Targets != nil || !acts(c) && !reaches(c) {
		return ""
	}
	if known, why := t.judged(c, TaintLabel{}); known {
		return why
	}
	before := t.recall(ctx, c.From)
	if before.By == "" {
		t.clean(c)
		return ""
	}
	_, why := t.judged(c, before)
	return why
}

// clean notes that nothing is known against a session. Where calls are only
// warned of, it is not looked for again.
func (t *Taint) clean(c *tool.Call) {
	if t.mode != TaintWarn || t.store == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(&c.From, true).looked = true
}

// judged says what the memory has against a call, and whether it knows that the
// session is tainted: by what it has itself, or by before.
func (t *Taint) judged(c *tool.Call, before TaintLabel) (known bool, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(&c.From, before.By != "")
	if before.By != "" && s.by == "" {
		s.by, s.over, s.kept = before.By, true, true
		if before.Orders {
			s.orders = &orders{by: before.By, lost: true}
		}
	}
	switch {
	case s == nil || s.by == "":
		return s != nil && s.looked, ""
	case !acts(c):
	case !s.spoken:
		return true, fmt.Sprintf("the session holds content from outside (%s), which may have led to this call", s.by)
	default:
		if v := s.foreign(c); v != "" {
			return true, fmt.Sprintf("%.80q is not in what the user said, and the session holds content from outside (%s)", v, s.by)
		}
	}
	return true, s.led(c)
}

// acts reports whether a call writes, or sends something to an address.
func acts(c *tool.Call) bool {
	if !c.Tool.IsRead() {
		return true
	}
	for _, v := range c.Trail.Values {
		if v.Role == schema.URL {
			return true
		}
	}
	sends := false
	if c.Tool.Needs&tool.NeedsNetwork != 0 {
		eachArgument(c.Args, func(_, v string) bool {
			sends = webAddress.MatchString(v)
			return !sends
		})
	}
	return sends
}

// outside reports whether the results of a tool come from outside.
func outside(t *tool.Tool) bool {
	return t.Needs&tool.NeedsNetwork != 0 && !t.Trusted && t.Targets == nil
}

// LabelOutside returns the stage that labels what came from outside, and the
// session that got it. Where the mode is TaintEnforce, a result whose label
// cannot be kept is withheld.
func LabelOutside(t *Taint) pipeline.Stage {
	return pipeline.Stage{
		Name: "taint", Doc: "remember what came from outside",
		Wrap: func(next tool.Handler) tool.Handler {
			if t == nil || t.mode == TaintOff {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				res, err := next(ctx, c)
				if err != nil || c.Tool == nil || c.Trail.Decision == tool.Deny {
					return res, err
				}
				return t.label(ctx, c, res)
			}
		},
	}
}

// label notes what a call that was let run says of its session.
func (t *Taint) label(ctx context.Context, c *tool.Call, res *tool.Result) (*tool.Result, error) {
	if len(c.Trail.Asked) > 0 {
		t.agree(c)
	}
	if t.mode == TaintWarn {
		if why := t.suspicion(ctx, c); why != "" {
			res = warned(c, res, why)
		}
	}
	c.Trail.Outside = c.Trail.Outside || outside(c.Tool)
	if !c.Trail.Outside {
		t.inside(c, res)
		return res, nil
	}
	alarm, err := t.learn(ctx, c, res)
	if err != nil && t.mode == TaintEnforce {
		return nil, tool.Errorf(tool.CodeRuntime, "the result of %s is withheld because it could not be noted that it came from outside: %v", c.Name, err)
	}
	if alarm != "" {
		res = warned(c, res, "the result came from outside and speaks to models: what it asks for is nothing that the user said ("+alarm+")")
	}
	return res, nil
}

// warned returns a result that says why to be careful; so does the record.
func warned(c *tool.Call, res *tool.Result, why string) *tool.Result {
	r := *res
	r.Notes = append(r.Notes[:len(r.Notes):len(r.Notes)], "careful: "+why)
	c.Trail.Reason = strings.TrimPrefix(c.Trail.Reason+"; "+why, "; ")
	return &r
}

// agree notes the values of a call that was approved: for the same argument of
// the same tool somebody has vouched for them.
func (t *Taint) agree(c *tool.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(&c.From, false)
	if s == nil || s.by == "" {
		return
	}
	note(s.agreed, agreedKey(c, "", ""))
	eachArgument(c.Args, func(key, v string) bool {
		note(s.agreed, agreedKey(c, key, v))
		return true
	})
}

func agreedKey(c *tool.Call, key, v string) string {
	return c.Name + "\x00" + key + "\x00" + foldSpace(v)
}
