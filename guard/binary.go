package guard

import (
	"context"
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/helve-ai/helve/tool"
)

const (
	minBase64    = 1000     // characters of a run that is taken for binary data
	maxViewed    = 5 << 20  // bytes of an image or sound that models take
	maxKeptBytes = 32 << 20 // bytes of one piece that is kept
	maxPieces    = 32       // pieces of one text that are kept
)

// viewed are the types that models see or hear.
var viewed = []string{
	"image/png", "image/jpeg", "image/gif", "image/webp",
	"audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/ogg", "audio/flac", "audio/aac", "audio/mp4", "audio/webm",
}

// takesData reports whether callers of a kind read results by a protocol that
// carries data, not as text.
func takesData(k tool.Kind) bool { return k == tool.KindMCP || k == tool.KindHTTP }

// unfit reports whether c is data that a model can make nothing of.
func unfit(c *tool.Content) bool {
	return c.Data != nil && (len(c.Data) > maxViewed || !slices.Contains(viewed, mediaType(c.MIME)))
}

func hasUnfit(k tool.Kind, res *tool.Result) bool {
	if takesData(k) {
		return false
	}
	return slices.ContainsFunc(res.Content, func(c tool.Content) bool { return unfit(&c) })
}

// mediaType returns a MIME type without its parameters, in small letters.
func mediaType(s string) string {
	if t, _, err := mime.ParseMediaType(s); err == nil {
		return t
	}
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

// refer returns res with references in place of its unfit data.
func (k *keeper) refer(ctx context.Context, res *tool.Result) *tool.Result {
	out := *res
	out.Content = slices.Clone(res.Content)
	for i := range out.Content {
		if c := &out.Content[i]; unfit(c) {
			k.call.Trail.Bytes += len(c.Data)
			*c = tool.Content{Text: strings.TrimSpace(c.Text + "\n" + k.reference(ctx, c.MIME, c.Data))}
		}
	}
	return &out
}

// reference keeps data, and returns the line that stands for it.
func (k *keeper) reference(ctx context.Context, kind string, data []byte) string {
	if kind = mediaType(kind); kind == "" { // it says something of any data
		kind = mediaType(http.DetectContentType(data))
	}
	what := fmt.Sprintf("%s, %s bytes", runes(kind, 100), grouped(len(data)))
	if len(data) > maxKeptBytes {
		return fmt.Sprintf("[%s, not kept: more than %s bytes]", what, grouped(maxKeptBytes))
	}
	id, err := k.keep(ctx, Spill{MIME: kind, Data: data})
	if err != nil {
		return fmt.Sprintf("[%s, not kept: %v]", what, err)
	}
	return fmt.Sprintf("[%s, kept as %s]", what, id)
}

// grouped writes a number with commas between its thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// withoutBase64 returns text with references in place of binary data that is
// written out in it as base64.
func (k *keeper) withoutBase64(ctx context.Context, text string) string {
	var b strings.Builder
	done, found := 0, 0
	for at := 0; at < len(text); {
		if !isBase64(text[at]) {
			at++
			continue
		}
		run := base64At(text, at)
		if at = run.end; run.digits < minBase64 {
			continue
		}
		start, kind := dataURI(text, run.start)
		data, ok := run.decode(text, kind != "")
		if !ok {
			continue
		}
		b.WriteString(text[done:start])
		if found++; found <= maxPieces {
			b.WriteString(k.reference(ctx, kind, data))
		} else {
			fmt.Fprintf(&b, "[base64, %s bytes, not kept: more than %d of them]", grouped(len(data)), maxPieces)
		}
		done = run.end
	}
	if found == 0 {
		return text
	}
	return b.String() + text[done:]
}

// A base64Run is a part of a text that may be base64, on one line or several.
type base64Run struct {
	start, end int
	digits     int // characters that are neither line ends nor padding
	padded     bool
}

// minLine is how long the lines are, but for the last, of base64 on several.
const minLine = 60

func base64At(text string, start int) base64Run {
	r := base64Run{start: start}
	at, line := start, 0
	for at < len(text) {
		if isBase64(text[at]) {
			at, line, r.digits = at+1, line+1, r.digits+1
			continue
		}
		n := lineEnd(text[at:])
		if n == 0 || line < minLine || at+n >= len(text) || !isBase64(text[at+n]) {
			break
		}
		at, line = at+n, 0
	}
	for range 2 {
		if at < len(text) && text[at] == '=' {
			at, r.padded = at+1, true
		}
	}
	r.end = at
	return r
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// lineEnd returns how long the line end is with which s begins, as it is or as
// JSON writes it.
func lineEnd(s string) int {
	for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`} {
		if strings.HasPrefix(s, end) {
			return len(end)
		}
	}
	return 0
}

// decode returns the data of a run, and whether it is base64 at all and not a
// long word: what is neither padded nor said to be has to look as if chance
// had mixed its letters.
func (r base64Run) decode(text string, said bool) ([]byte, bool) {
	digits := make([]byte, 0, r.digits)
	var upper, lower, number, url, std int
	for i := r.start; i < r.end; i++ {
		if n := lineEnd(text[i:r.end]); n > 0 {
			i += n - 1
			continue
		}
		switch c := text[i]; {
		case c == '=':
			continue
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			lower++
		case c >= '0' && c <= '9':
			number++
		case c == '-' || c == '_':
			url++
		default:
			std++
		}
		digits = append(digits, text[i])
	}
	mixed := upper > r.digits/10 && lower > r.digits/10 && number > r.digits/50
	if url > 0 && std > 0 || !said && !r.padded && !mixed {
		return nil, false
	}
	if len(digits)%4 == 1 { // its end was cut off
		digits = digits[:len(digits)-1]
	}
	enc := base64.RawStdEncoding
	if url > 0 {
		enc = base64.RawURLEncoding
	}
	data, err := enc.DecodeString(string(digits))
	return data, err == nil
}

// dataURI returns where the data: URI begins whose data begins at at, and the
// type that it states; at and "" if there is none.
func dataURI(text string, at int) (start int, kind string) {
	const mark, scheme = ";base64,", "data:"
	before := text[max(0, at-200):at]
	if !strings.HasSuffix(before, mark) {
		return at, ""
	}
	i := strings.LastIndex(before, scheme)
	if i < 0 {
		return at, ""
	}
	kind = mediaType(strings.TrimSuffix(before[i+len(scheme):], mark))
	if kind == "" {
		kind = "application/octet-stream"
	}
	return at - len(before) + i, kind
}
