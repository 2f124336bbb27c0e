package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/helve-ai/helve/root"
)

// Sum returns a file's SHA-256 in hexadecimal and the number of its lines,
// without holding it in memory.
func (f *Folder) Sum(ctx context.Context, p root.Path) (digest string, lines int, err error) {
	file, err := f.Root.Open(p)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	hash := sha256.New()
	buf := make([]byte, 128<<10)
	last := byte('\n')
	for {
		if err := ctx.Err(); err != nil {
			return "", 0, err
		}
		n, err := file.Read(buf)
		hash.Write(buf[:n])
		lines += bytes.Count(buf[:n], []byte{'\n'})
		if n > 0 {
			last = buf[n-1]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", 0, err
		}
	}
	if last != '\n' {
		lines++
	}
	return hex.EncodeToString(hash.Sum(nil)), lines, nil
}
