package http

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/helve-ai/helve/egress"
)

// shownHeaders are what a reader of an answer may need. HEAD shows all.
var shownHeaders = []string{
	"Content-Type", "Content-Language", "Content-Disposition", "Content-Range", "Last-Modified", "Etag", "Location", "Allow",
	"Retry-After", "Link", "Www-Authenticate", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
}

const (
	maxHeaderValue = 500  // characters
	maxHeaderLines = 60   // of an answer to HEAD
	maxPretty      = 2048 // bytes of JSON that is shown indented: more would cost more than it helps
)

// render returns an answer as text: the status, headers, and the body.
func render(method, asked string, resp *egress.Response) string {
	var b strings.Builder
	b.WriteString(resp.Status + "\n")
	if resp.FinalURL != asked {
		b.WriteString("URL: " + resp.FinalURL + "\n")
	}
	all := method == http.MethodHead || method == http.MethodOptions
	writeHeaders(&b, resp.Header, all)
	if method == http.MethodHead {
		return strings.TrimSuffix(b.String(), "\n")
	}
	b.WriteString("\n" + body(resp))
	return b.String()
}

func writeHeaders(b *strings.Builder, h http.Header, all bool) {
	names := shownHeaders
	if all {
		names = slices.Sorted(maps.Keys(h))
	}
	lines := 0
	for _, name := range names {
		if name == "Set-Cookie" || name == "Set-Cookie2" { // they are credentials
			continue
		}
		for _, v := range h[name] {
			if lines++; lines > maxHeaderLines {
				b.WriteString("[further headers are left out]\n")
				return
			}
			fmt.Fprintf(b, "%s: %s\n", name, clip(v, maxHeaderValue))
		}
	}
}

func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}

// body returns the body as text, or a line that names it.
func body(resp *egress.Response) string {
	if len(resp.Body) == 0 {
		return "[empty body]"
	}
	contentType := resp.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(strings.ToLower(contentType), ";")
		media = strings.TrimSpace(media)
	}
	text, ok := decode(resp.Body, media, params["charset"], resp.Truncated)
	if !ok {
		return reference(resp, media)
	}
	if isWeb(media) {
		text = withoutNoise(text)
	}
	if isJSON(media) && !resp.Truncated {
		text = pretty(text)
	}
	if resp.Truncated {
		text += fmt.Sprintf("\n\n[the body is cut after %d bytes: ask for less, or for a part of it with a Range header]", len(resp.Body))
	}
	return text
}

// reference names a binary body instead of showing it.
func reference(resp *egress.Response, media string) string {
	if media == "" {
		media, _, _ = strings.Cut(http.DetectContentType(resp.Body), ";")
	}
	size := fmt.Sprintf("%d bytes", len(resp.Body))
	if resp.Truncated {
		size = fmt.Sprintf("more than %d bytes, of which these were read", len(resp.Body))
	}
	return fmt.Sprintf("[binary body, not shown: %s, %s, SHA-256 %x]", clip(media, 100), size, sha256.Sum256(resp.Body))
}

// decode returns data as UTF-8, and whether it is text at all.
func decode(data []byte, media, label string, truncated bool) (string, bool) {
	if isBinary(media) {
		return "", false
	}
	if label == "" && !isText(media) {
		if cut := wholeRunes(data, truncated); utf8.Valid(cut) && isPlain(string(cut)) {
			return string(cut), true
		}
		return "", false
	}
	if label == "" && utf8.Valid(wholeRunes(data, truncated)) {
		label = "utf-8"
	}
	contentType := media
	if label != "" {
		contentType += "; charset=" + label
	}
	encoding, name, _ := charset.DetermineEncoding(data, contentType)
	if name == "utf-8" {
		data = bytes.TrimPrefix(wholeRunes(data, truncated), []byte("\ufeff"))
	} else if decoded, err := encoding.NewDecoder().Bytes(data); err == nil {
		data = decoded
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	return text, isPlain(text)
}

// wholeRunes drops the beginning of a character that a cut left at the end.
func wholeRunes(data []byte, truncated bool) []byte {
	if !truncated {
		return data
	}
	for i := len(data) - 1; i >= 0 && i >= len(data)-utf8.UTFMax; i-- {
		if utf8.RuneStart(data[i]) {
			if !utf8.FullRune(data[i:]) {
				return data[:i]
			}
			break
		}
	}
	return data
}

// isPlain reports whether text has none of the characters that only binary
// data has.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r)
	})
}

func isBinary(media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	return slices.Contains([]string{"image", "audio", "video", "font"}, kind) && media != "image/svg+xml"
}

func isJSON(media string) bool {
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// isText reports whether a type is one of text, so that its bytes are
// characters of some set.
func isText(media string) bool {
	return strings.HasPrefix(media, "text/") || isJSON(media) || strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "+yaml") ||
		slices.Contains([]string{"application/xml", "application/xhtml+xml", "application/javascript", "application/ecmascript",
			"application/yaml", "application/x-yaml", "application/toml", "application/graphql", "application/sql",
			"application/x-ndjson", "application/x-www-form-urlencoded", "application/x-javascript"}, media)
}

// pretty indents JSON that is short and stands on one line.
func pretty(text string) string {
	trimmed := strings.TrimSpace(text)
	if len(trimmed) > maxPretty || strings.Contains(trimmed, "\n") {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(trimmed), "", "  ") != nil {
		return text
	}
	return b.String()
}
