package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/internal/filelock"
)

// Options say how a log is kept. The zero value is what to use.
type Options struct {
	MaxBytes  int64            // size that a file may reach before the next is begun; 0: 64 MiB
	Now       func() time.Time // nil: time.Now
	SyncEvery time.Duration    // longest time between a line and its sync to the disk; 0: 1 s; negative: each line is synced
}

const (
	defaultMaxBytes  = 64 << 20
	defaultSyncEvery = time.Second

	// Disk space is set aside a quarter MiB at a time, when less than 64 KiB
	// of it are left: some hundred lines, for the calls now under way.
	reserveBytes = 256 << 10
	reserveLow   = 64 << 10

	// lookEvery is how often to look whether the files still have their names.
	lookEvery = time.Second

	// keepBuffer bounds the buffer that is kept from line to line.
	keepBuffer = 1 << 20
)

// A Log is a log open for appending. It is safe for concurrent use, and its
// folder may be open in any number of processes.
type Log struct {
	dir       string
	maxBytes  int64
	now       func() time.Time
	syncEvery time.Duration

	dirty chan struct{} // has one element while there is something to sync
	stop  chan struct{} // closed by Close
	done  chan struct{} // closed when the background sync has ended

	mu     sync.Mutex
	closed bool
	lock   *os.File  // the head file, locked while appending; nil: to be opened
	looked time.Time // when lock and file last had their names

	// What is known of the log; another process may have gone on since.
	file     *os.File // the newest file; nil: unknown
	last     head     // its name, and the last line
	size     int64    // of file
	dayEnd   time.Time
	reserved int64 // bytes of file set aside, from its start

	// What the next line of kind recovered has to tell.
	notes []string
	lost  int   // lines that could not be written
	why   error // the first of them could not

	buf []byte
}

// Open opens the log in dir for appending, and makes it if there is none. What
// a killed process left unfinished is put in order. The error says what to do.
func Open(dir string, o Options) (*Log, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	l := &Log{
		dir: dir, maxBytes: o.MaxBytes, now: o.Now, syncEvery: o.SyncEvery,
		dirty: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if l.maxBytes <= 0 {
		l.maxBytes = defaultMaxBytes
	}
	if l.now == nil {
		l.now = time.Now
	}
	if l.syncEvery == 0 {
		l.syncEvery = defaultSyncEvery
	}
	if err := l.start(); err != nil {
		l.closeFiles()
		return nil, explain(dir, err)
	}
	if l.syncEvery < 0 {
		close(l.done)
	} else {
		go l.syncLoop()
	}
	return l, nil
}

func (l *Log) start() error {
	now := l.now()
	if err := l.enter(now); err != nil {
		return err
	}
	defer l.leave()
	return l.settle(now)
}

// Reserve makes sure that a line can be written. Call it before anything that
// changes the world, and refuse the call if it returns an error.
//
// On Linux it keeps disk space set aside for the lines of the calls under way,
// 64 KiB at least for all of them together; elsewhere it looks whether there is
// as much. After a line could not be written, it fails until one can be.
func (l *Log) Reserve() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.closedError()
	}
	if l.file != nil && len(l.notes) == 0 && l.lost == 0 {
		size, growing, err := measure(l.file)
		if err == nil && growing && size+reserveLow <= l.reserved {
			return nil
		}
	}
	return explain(l.dir, l.secure())
}

// secure does what Reserve promises, the slow way.
func (l *Log) secure() error {
	now := l.now()
	if err := l.enter(now); err != nil {
		return err
	}
	defer l.leave()
	if err := l.settle(now); err != nil {
		return err
	}
	if l.size+reserveLow <= l.reserved {
		return nil
	}
	if err := reserve(l.file, l.size, reserveBytes); err != nil {
		return err
	}
	l.reserved = l.size + reserveBytes
	return nil
}

// Append writes one line that tells of e, and returns when the operating
// system has it; e is not kept. After an error the line is not in the log
// unless the error says that it is; the next line that can be written is
// preceded by one that tells how many could not.
func (l *Log) Append(e *Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.closedError()
	}
	if err := l.append(e); err != nil {
		err = explain(l.dir, err)
		if l.lost++; l.lost == 1 {
			l.why = err
		}
		return err
	}
	return nil
}

func (l *Log) append(e *Entry) error {
	now := l.now()
	if err := l.enter(now); err != nil {
		return err
	}
	defer l.leave()
	if err := l.settle(now); err != nil {
		return err
	}
	return l.put(e, now)
}

// settle writes the line of kind recovered that is due, if one is.
func (l *Log) settle(now time.Time) error {
	told := l.notes
	if l.lost > 0 {
		told = append(told[:len(told):len(told)], fmt.Sprintf("lines that could not be written: %d; the first: %v", l.lost, l.why))
	}
	if len(told) == 0 {
		return nil
	}
	if err := l.put(&Entry{Kind: Recovered, Reason: strings.Join(told, "; ")}, now); err != nil {
		return err
	}
	l.notes, l.lost, l.why = nil, 0, nil
	return nil
}

// put writes e as the next line. The lock is held, and what is known is true.
func (l *Log) put(e *Entry, now time.Time) error {
	var hash digest
	l.buf, hash = appendLine(l.buf[:0], e, l.last.seq+1, l.last.hash, now)
	if !now.Before(l.dayEnd) || l.size > 0 && l.size+int64(len(l.buf)) > l.maxBytes {
		l.rotate(now)
	}
	if _, err := l.file.Write(l.buf); err != nil {
		// Should the cut fail too, the size differs from what is known and
		// the next call takes away the rest.
		return errors.Join(err, truncate(l.file, l.size))
	}
	l.size += int64(len(l.buf))
	l.last.seq, l.last.hash = l.last.seq+1, hash
	if cap(l.buf) > keepBuffer {
		l.buf = nil
	}
	if err := l.settleDisk(); err != nil {
		return fmt.Errorf("line %d is written, but may not survive a power cut: %w", l.last.seq, err)
	}
	if err := l.putHead(l.last); err != nil {
		return fmt.Errorf("line %d is written, but not its head: %w", l.last.seq, err)
	}
	return nil
}

// settleDisk syncs the line just written, or has it synced later.
func (l *Log) settleDisk() error {
	if l.syncEvery < 0 {
		return l.file.Sync()
	}
	select {
	case l.dirty <- struct{}{}:
	default:
	}
	return nil
}

func (l *Log) putHead(h head) error {
	t := h.text()
	_, err := l.lock.WriteAt(t[:], 0)
	return err
}

// rotate begins the next file. If that fails, lines go on into the old one:
// it is the one for which space is set aside, and a line in yesterday's file
// is better than none.
func (l *Log) rotate(now time.Time) {
	files, err := listFiles(l.dir)
	if err != nil {
		return
	}
	name := nextFile(files, now)
	f, err := l.createFile(name)
	if err != nil {
		return
	}
	next := head{seq: l.last.seq, hash: l.last.hash, file: name.String()}
	if !l.hand(next) {
		f.Close()
		_ = os.Remove(f.Name())
		return
	}
	old, size := l.file, l.size
	l.take(f, next, 0)
	l.reserved = reserveBytes
	// The old file is done with: what was set aside for it is given back.
	if err := errors.Join(truncate(old, size), old.Sync(), old.Close()); err != nil {
		l.notes = append(l.notes, fmt.Sprintf("lines of %s may not survive a power cut: %v", filepath.Base(old.Name()), err))
	}
}

// hand tells all processes that lines now go on in another file.
func (l *Log) hand(next head) bool {
	if err := seal(l.file); err != nil {
		return false
	}
	// Where modes are not kept, the others could not know.
	if _, growing, err := measure(l.file); err == nil && !growing {
		if err := l.putHead(next); err == nil {
			return true
		}
	}
	_ = unseal(l.file)
	_ = l.putHead(l.last)
	return false
}

// createFile makes a new file and sets space aside for it.
func (l *Log) createFile(name fileName) (*os.File, error) {
	f, err := openRegular(l.path(name.String()), os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(reserve(f, 0, reserveBytes), filelock.SyncFolder(l.dir)); err != nil {
		f.Close()
		_ = os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// take makes f, which ends at size with the line that h names, the newest file.
func (l *Log) take(f *os.File, h head, size int64) {
	name, _ := parseName(h.file)
	l.file, l.last, l.size = f, h, size
	l.dayEnd, l.reserved = name.end(), 0
}

func (l *Log) path(name string) string { return filepath.Join(l.dir, name) }

func (l *Log) closedError() error { return fmt.Errorf("audit: %s: %w", l.dir, os.ErrClosed) }

func (l *Log) syncLoop() {
	defer close(l.done)
	timer := time.NewTimer(l.syncEvery)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.dirty:
		}
		timer.Reset(l.syncEvery)
		select {
		case <-l.stop:
			return
		case <-timer.C:
		}
		if err := l.sync(); err != nil {
			l.mu.Lock()
			l.notes = append(l.notes, fmt.Sprintf("lines up to %d may not survive a power cut: %v", l.last.seq, err))
			l.mu.Unlock()
		}
	}
}

// sync brings the newest file and the head to the disk, in this order. Lines
// may be appended meanwhile.
func (l *Log) sync() error {
	l.mu.Lock()
	file, lock := l.file, l.lock
	l.mu.Unlock()
	for _, f := range []*os.File{file, lock} {
		if f == nil {
			continue
		}
		// A file that was closed meanwhile was synced before.
		if err := f.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
	return nil
}

// Close syncs the log and closes it. Lines are refused from then on; closing
// again does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	var untold error
	if len(l.notes) > 0 || l.lost > 0 {
		untold = l.secure()
	}
	l.mu.Unlock()
	close(l.stop)
	<-l.done
	err := errors.Join(untold, l.sync())
	l.closeFiles()
	return explain(l.dir, err)
}

func (l *Log) closeFiles() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range []*os.File{l.file, l.lock} {
		if f != nil {
			f.Close()
		}
	}
	l.file, l.lock = nil, nil
}
