package search

import (
	"slices"
	"strings"
	"unicode"
)

// What a request gives a tool to work on tells little by its letters and much
// by its kind: "summarise report.pdf" wants a tool for files, not for reports.

// extensions are those of file names, and what such files are called besides.
var extensions = map[string]string{
	"txt": "text", "md": "markdown", "pdf": "", "doc": "word document", "docx": "word document", "odt": "document", "rtf": "document", "tex": "latex",
	"xls": "excel spreadsheet", "xlsx": "excel spreadsheet", "ods": "spreadsheet", "csv": "", "tsv": "csv", "ppt": "powerpoint presentation",
	"pptx": "powerpoint presentation", "odp": "presentation", "key": "presentation", "json": "", "jsonl": "json", "xml": "", "yaml": "", "yml": "yaml",
	"toml": "", "ini": "configuration", "cfg": "configuration", "conf": "configuration", "env": "configuration", "log": "", "html": "", "htm": "html",
	"png": "image", "jpg": "image", "jpeg": "image", "gif": "image", "svg": "image", "webp": "image", "bmp": "image", "tiff": "image", "heic": "image",
	"mp3": "audio", "wav": "audio", "flac": "audio", "ogg": "audio", "m4a": "audio", "mp4": "video", "mov": "video", "avi": "video", "mkv": "video", "webm": "video",
	"zip": "archive", "tar": "archive", "gz": "archive", "7z": "archive", "rar": "archive", "py": "python", "go": "", "ts": "typescript", "tsx": "typescript",
	"jsx": "javascript", "rb": "ruby", "rs": "rust", "java": "", "c": "", "cpp": "", "h": "", "cs": "", "php": "", "sh": "script", "sql": "", "css": "",
	"ipynb": "notebook", "db": "database", "sqlite": "database", "bib": "bibliography", "ics": "calendar", "eml": "email", "parquet": "",
}

// hosts are the top-level domains by which a word is taken for a host.
var hosts = strings.Fields("com org net io dev ai app co gov edu info eu de fr es it nl pl ru cn jp kr br in uk us ch at se dk pt tr")

// argument returns what stands for a word of a query that is a file, an
// address or a page; empty: it is none of them.
func argument(w string) string {
	w = strings.TrimFunc(w, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(`/~\`, r)
	})
	if v := value(w); v != "" {
		return v
	}
	if !strings.ContainsAny(w, `./\@`) || len(w) < 4 {
		return ""
	}
	lower := strings.ToLower(w)
	at := strings.IndexByte(w, '@')
	switch {
	case strings.Contains(w, "://"), strings.HasPrefix(lower, "www."):
		return page(lower)
	case at > 0 && strings.Contains(w[at:], "."):
		return "email address"
	case isPath(w):
		return pathKind(lower)
	}
	dot := strings.LastIndexByte(lower, '.')
	if dot <= 0 || strings.ContainsAny(w, "(){}<>=") {
		return ""
	}
	last := lower[dot+1:]
	if kind, ok := extensions[last]; ok && !strings.Contains(lower, "/") {
		return "file " + last + " " + kind
	}
	host, _, _ := strings.Cut(lower, "/")
	if i := strings.LastIndexByte(host, '.'); i > 0 && w == lower && slices.Contains(hosts, host[i+1:]) {
		return page(lower)
	}
	return ""
}

// value returns what stands for a word of a query that is a time of day, an
// address of a machine or the key of an issue; empty: it is none of them.
func value(w string) string {
	if w == "" || w[0] < '0' || w[0] > '9' {
		if isKey(w) {
			return `"issue ` + w + `"`
		}
		return ""
	}
	if isClock(w) {
		return "time"
	}
	if strings.Count(w, ".") == 3 && strings.Trim(w, "0123456789.") == "" {
		return `"ip address"`
	}
	return ""
}

// isClock reports whether a word is a time of day, such as 3pm, 15:30 or 9h.
func isClock(w string) bool {
	hour, rest := 0, strings.ToLower(w)
	digits := 0
	for len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' && digits < 3 {
		hour = 10*hour + int(rest[0]-'0')
		rest = rest[1:]
		digits++
	}
	if digits == 0 || digits > 2 || hour > 24 || rest == "" {
		return false
	}
	if rest[0] == ':' || rest[0] == 'h' {
		if len(rest) >= 3 && rest[1] >= '0' && rest[1] <= '5' && rest[2] >= '0' && rest[2] <= '9' {
			rest = rest[3:]
			return rest == "" || rest == "am" || rest == "pm"
		}
		return rest == "h"
	}
	return rest == "am" || rest == "pm"
}

// isKey reports whether a word is the key of an issue, such as ABC-123.
func isKey(w string) bool {
	project, number, ok := strings.Cut(w, "-")
	if !ok || len(project) < 2 || number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}
	return strings.Trim(project, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// page returns what stands for an address in the web: its kind, and the name of its host.
func page(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "www."), "/")
	labels := strings.Split(host, ".")
	name := ""
	if len(labels) > 1 {
		name = labels[len(labels)-2]
	}
	return `website url "` + name + `"`
}

func isPath(w string) bool {
	return len(w) > 3 && (strings.HasPrefix(w, "/") || strings.HasPrefix(w, "~/") || strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../") ||
		w[1] == ':' && w[2] == '\\')
}

func pathKind(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		return "file " + name[dot+1:] + " " + extensions[name[dot+1:]]
	}
	return "path"
}

// withKinds returns a query with its files, addresses and pages replaced by
// what they are.
func withKinds(text string) string {
	if !strings.ContainsAny(text, `./\@0123456789`) {
		return text
	}
	var b strings.Builder
	rest := text
	for len(rest) > 0 {
		n := strings.IndexFunc(rest, unicode.IsSpace)
		if n < 0 {
			n = len(rest)
		}
		if kind := argument(rest[:n]); kind != "" {
			b.WriteString(kind)
		} else {
			b.WriteString(rest[:n])
		}
		rest = rest[n:]
		for i, r := range rest {
			if !unicode.IsSpace(r) {
				n = i
				break
			}
			n = len(rest)
		}
		if rest == "" {
			break
		}
		b.WriteString(rest[:n])
		rest = rest[n:]
	}
	return b.String()
}
