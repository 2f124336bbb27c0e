package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"unicode/utf8"

	"github.com/helve-ai/helve/root"
)

// A Sum is what a file's bytes tell.
type Sum struct {
	SHA256 string // in hexadecimal
	Lines  int    // line ends, and a last line without one
	Text   bool   // its beginning looks like text
	MIME   string
}

// Sum reads a file without holding it in memory.
func (f *Folder) Sum(ctx context.Context, p root.Path) (Sum, error) {
	file, err := f.Root.Open(p)
	if err != nil {
		return Sum{}, err
	}
	defer file.Close()
	hash := sha256.New()
	buf := make([]byte, 128<<10)
	var s Sum
	last := byte('\n')
	for begun := false; ; {
		if err := ctx.Err(); err != nil {
			return Sum{}, err
		}
		n, err := file.Read(buf)
		if n > 0 {
			if !begun {
				begun, s.MIME = true, MIME(buf[:n])
				_, _, s.Text = Decode(wholeRunes(buf[:n]))
			}
			hash.Write(buf[:n])
			s.Lines += bytes.Count(buf[:n], []byte{'\n'})
			last = buf[n-1]
		} else if !begun {
			s.Text = true
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return Sum{}, err
		}
	}
	if last != '\n' {
		s.Lines++
	}
	s.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

// wholeRunes drops the beginning of a character that a cut left at the end.
func wholeRunes(data []byte) []byte {
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
