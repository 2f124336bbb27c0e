package audit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/helve-ai/helve/internal/filelock"
)

const (
	headName    = "head"
	headFileLen = 32
	headLen     = 20 + 1 + len(digest{}) + 1 + headFileLen + 1
)

// A headText is the whole content of the head file.
type headText [headLen]byte

// A head names the last line of a log, and the file to which lines are appended.
type head struct {
	seq  uint64
	hash digest
	file string // a name that parseName takes
}

func (h head) text() (t headText) {
	for i, n := 19, h.seq; i >= 0; i-- {
		t[i] = byte('0' + n%10)
		n /= 10
	}
	b := append(t[:20], ' ')
	b = append(b, h.hash[:]...)
	b = append(b, ' ')
	b = append(b, h.file...)
	for len(b) < headLen-1 {
		b = append(b, ' ')
	}
	t[headLen-1] = '\n'
	return t
}

func parseHead(t headText) (h head, ok bool) {
	seq, err := strconv.ParseUint(string(t[:20]), 10, 64)
	file := strings.TrimRight(string(t[headLen-1-headFileLen:headLen-1]), " ")
	_, named := parseName(file)
	h = head{seq: seq, file: file}
	copy(h.hash[:], t[21:])
	return h, err == nil && named && h.text() == t
}

// readHead reads the head from f; ok is false if it holds none.
func readHead(f *os.File) (h head, ok bool, err error) {
	var t headText
	n, err := f.ReadAt(t[:], 0)
	if n < headLen {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return h, false, err
	}
	h, ok = parseHead(t)
	return h, ok, nil
}

// lockWait is how long to wait for a lock before giving up: another process
// holds it for some microseconds, unless it was stopped in the middle.
const lockWait = 10 * time.Second

var errLocked = errors.New("is locked by another process, which may be stopped; end it or let it go on")

// lockFile takes the lock on f, shared or exclusive.
func lockFile(f *os.File, shared bool) error {
	ok, err := filelock.Try(f, shared)
	if ok || err != nil {
		return err
	}
	start, pause := time.Now(), 20*time.Microsecond
	for time.Since(start) < lockWait {
		time.Sleep(pause)
		if ok, err := filelock.Try(f, shared); ok || err != nil {
			return err
		}
		pause = min(2*pause, 2*time.Millisecond)
	}
	return &os.PathError{Op: "lock", Path: f.Name(), Err: errLocked}
}

// lockHead returns the locked head of the log in dir; nil if it has none.
func lockHead(dir string) (*os.File, error) {
	f, err := openRegular(filepath.Join(dir, headName), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(f, true); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
