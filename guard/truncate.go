package guard

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// DefaultMaxResult is how many characters of a result the caller sees (SPEC X6).
const DefaultMaxResult = 10_000

// Truncate returns the stage that holds a result's text to most characters
// (zero: DefaultMaxResult). The whole text is kept under a fresh id, with
// which results.read returns any part of it; so are binary data that its
// caller cannot take, which results.save writes to a file.
func Truncate(most int, spill store.Store, now func() time.Time) pipeline.Stage {
	if most == 0 {
		most = DefaultMaxResult
	}
	return pipeline.Stage{
		Name: "truncate", Doc: "cut long results, and keep the whole",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				res, err := next(ctx, c)
				if err != nil {
					return res, err
				}
				limit := most
				if c.Tool != nil && c.Tool.MaxResult > 0 {
					limit = c.Tool.MaxResult
				}
				unfit := hasUnfit(c.From.Kind, res)
				if !unfit && !tooLarge(res, limit) {
					return res, nil
				}
				k := &keeper{call: c, spill: spill, now: now()}
				if unfit {
					res = k.refer(ctx, res)
				}
				if tooLarge(res, limit) {
					res = k.cut(ctx, res, limit)
				}
				return res, nil
			}
		},
	}
}

func tooLarge(res *tool.Result, most int) bool {
	n := 0
	for _, c := range res.Content {
		n += len(c.Text)
	}
	if res.Err != nil {
		n = max(n, len(res.Err.Message))
	}
	return n > most && characters(res) > most
}

func characters(res *tool.Result) int {
	n := 0
	for _, c := range res.Content {
		n += utf8.RuneCountInString(c.Text)
	}
	if res.Err != nil {
		n = max(n, utf8.RuneCountInString(res.Err.Message))
	}
	return n
}

func (k *keeper) cut(ctx context.Context, res *tool.Result, most int) *tool.Result {
	c, out := k.call, *res
	if res.Err != nil && utf8.RuneCountInString(res.Err.Message) > most {
		e := *res.Err
		e.Message = k.shorten(ctx, e.Message, most)
		e.Details = nil
		out.Err = &e
	}
	var texts []string
	var rest []tool.Content // what is not text stays as it is
	for _, content := range res.Content {
		if content.Text != "" {
			texts = append(texts, content.Text)
		} else {
			rest = append(rest, content)
		}
	}
	whole := strings.Join(texts, "\n")
	if utf8.RuneCountInString(whole) > most {
		out.Content = append([]tool.Content{{Text: k.shorten(ctx, whole, most)}}, rest...)
		c.Trail.Bytes = len(whole)
		if c.Tool == nil || c.Tool.Output == nil {
			out.Structured = nil
		}
	}
	c.Trail.Truncated = true
	return &out
}

// markerRoom is what the marker of a cut text may take.
const markerRoom = 300

// shorten takes binary data out of a text. If it is still too long, the whole
// is kept, and what the tool says of it, or its head and tail, stand around a
// marker that says how to read the rest.
func (k *keeper) shorten(ctx context.Context, whole string, most int) string {
	whole = k.withoutBase64(ctx, whole)
	total := utf8.RuneCountInString(whole)
	if total <= most {
		return whole
	}
	id, err := k.keep(ctx, Spill{Text: whole})
	how := fmt.Sprintf(`call results.read with {"id": %q, "offset": N} or {"id": %q, "search": "…"} for any part`, id, id)
	if err != nil {
		how = "the whole could not be kept: " + err.Error()
	}
	room := max(most-markerRoom, most/2)
	if s := k.summary(whole, room); s != "" {
		return fmt.Sprintf("%s\n\n[… this is a summary of a result of %d characters; %s …]", s, total, how)
	}
	head := runes(whole, room*2/3)
	tail := lastRunes(whole, room-room*2/3)
	left := total - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	return fmt.Sprintf("%s\n\n[… %d of %d characters left out; %s …]\n\n%s", head, left, total, how, tail)
}

// summary returns what the tool says of a whole text, held to most characters;
// "": nothing. A failure has no summary.
func (k *keeper) summary(whole string, most int) (s string) {
	t := k.call.Tool
	if t == nil || t.Summarize == nil {
		return ""
	}
	defer func() {
		if recover() != nil { // a tool's error, which must not cost the result
			s = ""
		}
	}()
	return runes(strings.TrimSpace(t.Summarize(whole, most)), most)
}

// runes returns the first n characters of s.
func runes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// lastRunes returns the last n characters of s.
func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}
