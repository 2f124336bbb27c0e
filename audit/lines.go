package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
)

// A rawLine is a line of a file.
type rawLine struct {
	text []byte // with its line feed, if it has one; valid until the next
	at   int64  // where in the file it begins
}

// linesOf yields the lines of a file, backward from the last if so asked.
// After an error there are no more.
func linesOf(path string, backward bool) iter.Seq2[rawLine, error] {
	return func(yield func(rawLine, error) bool) {
		f, err := openRegular(path, os.O_RDONLY)
		if err != nil {
			yield(rawLine{}, err)
			return
		}
		defer f.Close()
		if backward {
			err = linesBackward(f, func(l rawLine) bool { return yield(l, nil) })
		} else {
			err = linesForward(f, func(l rawLine) bool { return yield(l, nil) })
		}
		if err != nil {
			yield(rawLine{}, err)
		}
	}
}

// linesForward returns an error only if it has not been stopped by yield.
func linesForward(f *os.File, yield func(rawLine) bool) error {
	r := bufio.NewReaderSize(f, 256<<10)
	var at int64
	var long []byte
	for {
		part, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		text := part
		if len(long) > 0 {
			long = append(long, part...)
			text = long
		}
		if len(text) > 0 && !yield(rawLine{text, at}) {
			return nil
		}
		at += int64(len(text))
		long = long[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// linesBackward is linesForward from the end.
func linesBackward(f *os.File, yield func(rawLine) bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var rest []byte // begins at at, and ends where the line last yielded began
	for at := info.Size(); ; {
		for {
			i := bytes.LastIndexByte(rest[:max(len(rest)-1, 0)], '\n')
			if i < 0 {
				break
			}
			if !yield(rawLine{rest[i+1:], at + int64(i) + 1}) {
				return nil
			}
			rest = rest[:i+1]
		}
		if at == 0 {
			break
		}
		// Doubling keeps a very long line from being copied over and over.
		n := min(at, int64(max(64<<10, len(rest))))
		at -= n
		rest = slices.Grow(rest, int(n))[:len(rest)+int(n)]
		copy(rest[n:], rest[:len(rest)-int(n)])
		if _, err := f.ReadAt(rest[:n], at); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		yield(rawLine{rest, 0})
	}
	return nil
}
