package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// Amend returns the stage that takes a call through the stages after it once
// more when an approver wants it to be made with other arguments. Only its
// question is answered then: whatever refuses the new arguments refuses the call.
func Amend(redact *Redactor) pipeline.Stage {
	return pipeline.Stage{
		Name: "amend", Doc: "judge the arguments anew that an approver has changed",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				m := &amendment{call: c}
				ctx = context.WithValue(ctx, amendKey{}, m)
				res, err := next(ctx, c)
				if m.args == nil {
					return res, err
				}
				c.Args, c.Tool = m.args, nil
				*c.Trail = tool.Trail{Decision: tool.Allow, Approver: m.by}
				res, err = next(ctx, c)
				if res == nil {
					return res, err
				}
				own := *res
				own.Notes = slices.Concat([]string{"the operator changed the arguments of this call to " + string(redact.Call(c))}, res.Notes)
				return &own, err
			}
		},
	}
}

// An amendment is what an approver made of a call.
type amendment struct {
	call *tool.Call
	args json.RawMessage // nil: it stays as it is
	by   string
}

type amendKey struct{}

// amendmentOf returns that of this call, and of none that it makes or that made it.
func amendmentOf(ctx context.Context, c *tool.Call) *amendment {
	if m, _ := ctx.Value(amendKey{}).(*amendment); m != nil && m.call == c {
		return m
	}
	return nil
}

// errAmended ends the first way of a call that has been amended; nobody reads it.
var errAmended = errors.New("the call is judged anew")

// with takes the arguments of an answer.
func (m *amendment) with(a Answer, redact *Redactor, c *tool.Call) *tool.Error {
	if m == nil {
		return tool.Errorf(tool.CodeDenied, "%s was approved with other arguments, which cannot be judged here", c.Name)
	}
	args, err := unredacted(a.Args, redact.Call(c), c.Args)
	if err != nil {
		return tool.Errorf(tool.CodeDenied, "%s was approved with other arguments that cannot be used: %v", c.Name, err)
	}
	m.args, m.by = args, a.By
	return nil
}

// unredacted puts back what was taken out of the arguments as they were shown,
// wherever they are as shown.
func unredacted(args, shown, raw json.RawMessage) (json.RawMessage, error) {
	var trees [3]any
	for i, doc := range []json.RawMessage{args, shown, raw} {
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		if err := d.Decode(&trees[i]); err != nil {
			return nil, err
		}
	}
	if _, object := trees[0].(map[string]any); !object {
		return nil, errors.New("they are not a JSON object")
	}
	full, err := putBack(trees[0], trees[1], trees[2])
	if err != nil {
		return nil, err
	}
	return tool.Encode(full)
}

func putBack(v, shown, raw any) (_ any, err error) {
	switch v := v.(type) {
	case string:
		switch {
		case !strings.Contains(v, Redacted):
			return v, nil
		case shown == any(v):
			return raw, nil
		}
		return nil, errors.New(Redacted + " stands where nothing was taken out, or in a text that was changed; write the whole value")
	case map[string]any:
		shownIn, _ := shown.(map[string]any)
		rawIn, _ := raw.(map[string]any)
		for k := range v {
			if v[k], err = putBack(v[k], shownIn[k], rawIn[k]); err != nil {
				return nil, err
			}
		}
	case []any:
		shownIn, _ := shown.([]any)
		rawIn, _ := raw.([]any)
		for i := range v {
			var s, r any
			if i < len(shownIn) && i < len(rawIn) {
				s, r = shownIn[i], rawIn[i]
			}
			if v[i], err = putBack(v[i], s, r); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
