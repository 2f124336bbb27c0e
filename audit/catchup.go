package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/helve-ai/helve/internal/filelock"
)

// enter takes the folder's lock and learns what other processes have appended.
// Unless it fails, leave must follow.
func (l *Log) enter(now time.Time) error {
	since := now.Sub(l.looked)
	look := l.lock == nil || since >= lookEvery || since < 0
	if err := l.takeLock(look); err != nil {
		return err
	}
	if err := l.catchUp(look); err != nil {
		filelock.Release(l.lock)
		return err
	}
	if look {
		l.looked = now
	}
	return nil
}

func (l *Log) leave() { filelock.Release(l.lock) }

// takeLock locks the head file, which it opens if need be. If look is set, it
// makes sure that it is the one in the folder.
func (l *Log) takeLock(look bool) error {
	for range 10 {
		if l.lock == nil {
			if err := l.openLock(); err != nil {
				return err
			}
		}
		if err := lockFile(l.lock, false); err != nil {
			return err
		}
		if !look || !displaced(l.lock, l.lock.Name()) {
			return nil
		}
		l.lock.Close() // and with it goes the lock
		l.lock = nil
	}
	return &os.PathError{Op: "lock", Path: l.path(headName), Err: errors.New("is being replaced again and again")}
}

func (l *Log) openLock() error {
	if err := makeFolder(l.dir); err != nil {
		return err
	}
	f, err := openRegular(l.path(headName), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	l.lock = f
	return nil
}

// catchUp makes what is known of the log true.
func (l *Log) catchUp(look bool) error {
	if l.file == nil || look && displaced(l.file, l.path(l.last.file)) {
		return l.survey()
	}
	// Whoever appends makes the file longer, or seals it before it begins the next.
	size, growing, err := measure(l.file)
	if err == nil && growing && size == l.size || l.follow() {
		return nil
	}
	return l.survey()
}

// follow takes over what the head says, if the file that it names ends with
// the line that it names: what another process leaves in the ordinary case.
func (l *Log) follow() bool {
	h, ok, err := readHead(l.lock)
	if !ok || err != nil {
		return false
	}
	f, reserved := l.file, l.reserved
	if h.file != l.last.file {
		var err error
		if f, err = openRegular(l.path(h.file), os.O_RDWR|os.O_APPEND); err != nil {
			return false
		}
		reserved = 0
	}
	size, growing, err := measure(f)
	if err != nil || !growing || !endsWith(f, size, h.hash) {
		if f != l.file {
			f.Close()
		}
		return false
	}
	if f != l.file {
		l.file.Close() // synced by the process that began the next
	}
	l.take(f, h, size)
	l.reserved = reserved
	return true
}

// endsWith reports whether the last line of f, size bytes long, claims hash.
func endsWith(f *os.File, size int64, hash digest) bool {
	var tail [hashLen]byte
	if size < int64(hashLen) {
		return false
	}
	if _, err := f.ReadAt(tail[:], size-int64(hashLen)); err != nil {
		return false
	}
	rest, ok := bytes.CutPrefix(tail[:], []byte(hashKey))
	return ok && bytes.HasPrefix(rest, hash[:]) && bytes.HasSuffix(rest, []byte(lineEnd))
}

// survey learns the state of the log from all its files, and puts in order
// what it finds amiss; notes tell of it.
func (l *Log) survey() error {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
	noted, ok, err := readHead(l.lock)
	if err != nil {
		return err
	}
	files, err := listFiles(l.dir)
	if err != nil {
		return err
	}
	name, f, err := l.openNewest(files, noted.file)
	if err != nil {
		return err
	}
	if err := l.resume(f, name, files, noted, ok); err != nil {
		f.Close()
		return err
	}
	return nil
}

// resume makes f the newest file, after what the head noted (if ok).
func (l *Log) resume(f *os.File, name fileName, files []fileName, noted head, ok bool) error {
	size, mended, err := mend(f)
	if err != nil {
		return err
	}
	found, bad, err := lastLine(l.dir, files, name)
	if err != nil {
		return err
	}
	state, missed := reconcile(found, bad, noted, ok, l.last)
	state.file = name.String()
	// A line is only ever written to the file that the head names.
	if err := l.putHead(state); err != nil {
		return err
	}
	l.take(f, state, size)
	l.notes = append(append(l.notes, mended...), missed...)
	return nil
}

// openNewest opens the file to which lines are appended: the one that the head
// names, or a later one with lines. It makes one if there is none.
func (l *Log) openNewest(files []fileName, noted string) (fileName, *os.File, error) {
	name, exists, err := l.pickNewest(files, noted)
	if err != nil {
		return name, nil, err
	}
	if !exists {
		f, err := l.createFile(name)
		return name, f, err
	}
	f, err := openRegular(l.path(name.String()), os.O_RDWR|os.O_APPEND)
	return name, f, err
}

func (l *Log) pickNewest(files []fileName, noted string) (name fileName, exists bool, err error) {
	for i, file := range slices.Backward(files) {
		info, err := os.Lstat(l.path(file.String()))
		if err != nil {
			return name, false, err
		}
		if info.Size() == 0 && file.String() != noted {
			continue
		}
		switch {
		case !sealed(info):
			return file, true, nil
		case i+1 < len(files):
			return files[i+1], true, nil // begun, and never used
		case file.String() == noted:
			return file, true, nil // not for us to make writable
		}
		return nextFile(files, l.now()), false, nil
	}
	if len(files) > 0 {
		return files[len(files)-1], true, nil
	}
	return nextFile(nil, l.now()), false, nil
}

// mend makes f end with a whole line, and returns its size then.
func mend(f *os.File) (size int64, notes []string, err error) {
	size, _, err = measure(f)
	if err != nil {
		return 0, nil, err
	}
	whole, err := wholeLines(f, size)
	if err != nil || whole == size {
		return size, nil, err
	}
	rest := make([]byte, size-whole)
	if _, err := f.ReadAt(rest, whole); err != nil {
		return 0, nil, err
	}
	name := filepath.Base(f.Name())
	if k, ok := parseLine(append(rest, '\n')); ok && k.sound {
		if _, err := f.Write([]byte{'\n'}); err != nil {
			return 0, nil, err
		}
		return size + 1, []string{fmt.Sprintf("ended line %d of %s, which had no line feed", k.seq, name)}, nil
	}
	if err := truncate(f, whole); err != nil {
		return 0, nil, err
	}
	return whole, []string{fmt.Sprintf("dropped %d bytes of an unfinished line at the end of %s", size-whole, name)}, nil
}

// wholeLines returns how many of the size bytes of f are whole lines.
func wholeLines(f *os.File, size int64) (int64, error) {
	var buf [4096]byte
	for end := size; end > 0; {
		b := buf[:min(end, int64(len(buf)))]
		if _, err := f.ReadAt(b, end-int64(len(b))); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return end - int64(len(b)) + int64(i) + 1, nil
		}
		end -= int64(len(b))
	}
	return 0, nil
}

// lastLine returns the last sound line in the files up to newest, with seq 0
// if there is none, and how many lines after it are not sound.
func lastLine(dir string, files []fileName, newest fileName) (last head, bad int, err error) {
	last.hash = genesis
	for _, name := range slices.Backward(files) {
		if name.compare(newest) > 0 {
			continue
		}
		for line, err := range linesOf(filepath.Join(dir, name.String()), true) {
			if err != nil {
				return last, bad, err
			}
			if k, ok := parseLine(line.text); ok && k.sound {
				last.seq, last.hash = k.seq, k.hash
				return last, bad, nil
			}
			bad++
		}
	}
	return last, bad, nil
}

// reconcile says where the chain goes on, given the last line found, what the
// head file notes (if ok), and what this process knew before (seq 0: nothing).
// Lines that are gone leave a gap: the chain goes on from the last of them.
func reconcile(found head, bad int, noted head, ok bool, known head) (state head, notes []string) {
	if bad > 0 {
		notes = append(notes, fmt.Sprintf("found altered or unreadable lines at the end: %d", bad))
	}
	if !ok && (found.seq > 0 || known.seq > 0) {
		notes = append(notes, "found the head missing or unreadable")
	}
	witness := noted
	if !ok || known.seq > noted.seq {
		witness = known
	}
	switch {
	case witness.seq > found.seq:
		notes = append(notes, fmt.Sprintf("found lines %d to %d missing at the end: cut off, or lost in a power cut", found.seq+1, witness.seq))
		return witness, notes
	case witness.seq == found.seq && found.seq > 0 && witness.hash != found.hash:
		notes = append(notes, fmt.Sprintf("found line %d replaced by another", found.seq))
		return witness, notes
	}
	return found, notes
}
