package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/textedit"
	"github.com/helve-ai/helve/tool"
)

// A Read says what part of a file is wanted, and how.
type Read struct {
	Path     string
	Offset   int    // the first line, from 1; zero: 1
	Limit    int    // how many lines; zero: all
	Numbered bool   // each line begins with its number and a tab
	Encoding string // as in HTML; "": what the bytes tell
	Images   bool   // give images as they are
}

// maxImage bounds an image that is given as it is.
const maxImage = 5 << 20

// Read returns a file's text or a part of it; for what is not text, a line that
// names it, or the image itself.
func (f *Folder) Read(ctx context.Context, in Read) (*tool.Result, error) {
	p, err := f.File(ctx, in.Path, root.ToRead)
	if err != nil {
		return nil, err
	}
	file, err := f.Root.Open(p)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > f.maxRead() {
		if in.Offset == 0 && in.Limit == 0 {
			return nil, tool.Errorf(tool.CodeRuntime, "%s has %d bytes, and at most %d are read at once; read a part with offset (the first line) and limit (how many lines), or search it",
				f.Show(p.Rel), info.Size(), f.maxRead())
		}
		return f.readPart(ctx, p, file, in)
	}
	data, err := io.ReadAll(io.LimitReader(file, f.maxRead()+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > f.maxRead():
		return nil, tool.Errorf(tool.CodeRuntime, "%s grew while it was read; try again", f.Show(p.Rel)).Retry()
	}
	res, text, err := f.decode(p, data, in)
	if res != nil || err != nil {
		return res, err
	}
	res, err = slice(f.Show(p.Rel), text.body, in)
	if err != nil {
		return nil, err
	}
	res.Notes = append(res.Notes, text.notes...)
	res.Notes = append(res.Notes, "sha256 "+Digest(data)[:16])
	return res, nil
}

// Digest returns the SHA-256 of data in hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

type decoded struct {
	body  string
	notes []string
}

// decode returns the text of a file or, for what is not text, the whole result.
func (f *Folder) decode(p root.Path, data []byte, in Read) (*tool.Result, decoded, error) {
	if in.Encoding != "" {
		text, err := decodeAs(data, in.Encoding)
		if err != nil {
			return nil, decoded{}, tool.Errorf(tool.CodeValidation, "%v", err)
		}
		return nil, decoded{body: text}, nil
	}
	text, enc, ok := Decode(data)
	if !ok {
		return binaryResult(f.Show(p.Rel), data, in.Images), decoded{}, nil
	}
	d := decoded{body: text}
	switch enc {
	case UTF8:
	case Latin1:
		d.notes = []string{"the file is not UTF-8; it was read as " + string(enc) + ", which may be wrong: state the encoding if the text looks odd"}
	default:
		d.notes = []string{"the file is in " + string(enc) + ", which edits keep"}
	}
	return nil, d, nil
}

// binaryResult names what is not text, or shows it if it is an image.
func binaryResult(name string, data []byte, images bool) *tool.Result {
	kind := MIME(data)
	line := fmt.Sprintf("[%s is not text: %s, %d bytes, sha256 %s]", name, kind, len(data), Digest(data))
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if images && len(data) <= maxImage {
			return &tool.Result{Content: []tool.Content{{Text: line}, {MIME: kind, Data: data}}}
		}
	}
	return tool.Text(line)
}

// slice returns the wanted lines of a text.
func slice(name, text string, in Read) (*tool.Result, error) {
	total := textedit.Lines(text)
	first := max(in.Offset, 1)
	if first > total && (in.Offset > 1 || total > 0) {
		return nil, tool.Errorf(tool.CodeValidation, "/offset: is %d, but %s has only %s", first, name, plural(total, "line"))
	}
	last := total
	if in.Limit > 0 && in.Limit < total-first+1 {
		last = first + in.Limit - 1
	}
	part := text
	if first > 1 || last < total {
		part = text[lineStart(text, first):lineStart(text, last+1)]
	}
	res := tool.Text(part)
	switch {
	case total == 0:
		res.Notes = append(res.Notes, "the file is empty")
	case first > 1 || last < total:
		res.Notes = append(res.Notes, fmt.Sprintf("lines %d to %d of %d", first, last, total))
	}
	if in.Numbered {
		res.Content[0].Text = number(part, first)
	}
	return res, nil
}

// lineStart returns where line n, counted from 1, begins; the end of the text
// if there is no such line.
func lineStart(text string, n int) int {
	at := 0
	for ; n > 1; n-- {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}

// number writes the number of each line and a tab before it.
func number(text string, first int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "%d\t%s", first, line)
		first++
	}
	return b.String()
}

// readPart reads lines of a file that is too large to be read whole.
func (f *Folder) readPart(ctx context.Context, p root.Path, file io.Reader, in Read) (*tool.Result, error) {
	if in.Encoding != "" {
		return nil, tool.Errorf(tool.CodeRuntime, "%s is too large to be read in a stated encoding; at most %d bytes are", f.Show(p.Rel), f.maxRead())
	}
	first := max(in.Offset, 1)
	part, err := linesFrom(ctx, file, first, in.Limit, f.maxRead())
	switch {
	case errors.Is(err, errTooLong):
		return nil, tool.Errorf(tool.CodeRuntime, "the lines wanted of %s have more than %d bytes; state a smaller limit (how many lines), or search it", f.Show(p.Rel), f.maxRead())
	case err != nil:
		return nil, err
	case part.lines == 0:
		return nil, tool.Errorf(tool.CodeValidation, "/offset: is %d, but %s has only %s", first, f.Show(p.Rel), plural(part.skipped, "line"))
	case bytes.IndexByte(part.text, 0) >= 0:
		return tool.Text(fmt.Sprintf("[%s is not text, and too large to be shown]", f.Show(p.Rel))), nil
	}
	text := strings.ToValidUTF8(string(part.text), "\uFFFD")
	if first == 1 {
		text = strings.TrimPrefix(text, bom)
	}
	res := tool.Text(text)
	if in.Numbered {
		res.Content[0].Text = number(text, first)
	}
	res.Notes = []string{fmt.Sprintf("lines %d to %d of a large file", first, first+part.lines-1)}
	if !utf8.Valid(part.text) {
		res.Notes = append(res.Notes, "the file is not UTF-8; what could not be read is shown as \uFFFD")
	}
	return res, nil
}

var errTooLong = errors.New("too long")

type run struct {
	text           []byte
	skipped, lines int
}

// linesFrom reads count lines from line first on, of at most most bytes.
func linesFrom(ctx context.Context, r io.Reader, first, count int, most int64) (run, error) {
	var out run
	br := bufio.NewReaderSize(r, 64<<10)
	begun := false // in the middle of a line
	for {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		chunk, err := br.ReadSlice('\n')
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return out, err
		}
		wanted := out.skipped >= first-1
		if wanted && len(chunk) > 0 {
			if out.text = append(out.text, chunk...); int64(len(out.text)) > most {
				return out, errTooLong
			}
		}
		begun = begun || len(chunk) > 0
		if err == bufio.ErrBufferFull {
			continue
		}
		if begun && wanted {
			out.lines++
		} else if begun {
			out.skipped++
		}
		begun = false
		if err == io.EOF || count > 0 && out.lines == count {
			return out, nil
		}
	}
}

// plural returns a number and what it counts.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
