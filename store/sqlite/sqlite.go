// Package sqlite is a store in one SQLite file.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/helve-ai/helve/store"
)

const (
	readers  = 8                // Views at once; more wait
	patience = 10 * time.Second // for other processes that hold the file
)

// Open opens the store in the file, which it makes if need be, for its owner
// alone (0600), in folders likewise (0700). Any number of processes may have
// the same file open, on one machine: not on a network file system.
//
// The file is in WAL mode with synchronous=FULL: an Update that has returned
// survives the end of the process and, where the disk keeps its word, a power
// failure; the price is one fsync for each. (Those of [store.Unsynced] are not
// synced themselves, only by the next that is.) Updates run one at a time, each
// once; one that waits for another process gives up after 10 seconds, or when
// its context ends. Views wait for nobody, at most 8 run at once.
//
// A file that is damaged, belongs to another program, or was written by a
// newer Helve is refused and left as it is.
func Open(ctx context.Context, path string) (store.Store, error) {
	f, err := newFile(path)
	if err != nil {
		return nil, err
	}
	s := &db{file: f, write: newPool(f, 1, true), read: newPool(f, readers, false)}
	w, err := s.write.take(ctx)
	if err == nil {
		err = w.setup(ctx)
		s.write.give(w, err != nil)
	}
	if err != nil {
		f.db.Close()
		return nil, f.explain(err)
	}
	return s, nil
}

type db struct {
	gate        store.Gate
	file        *file
	write, read pool
}

func (s *db) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.run(ctx, s.read, "BEGIN", func(t *tx) error { return store.Read(ctx, t, fn) })
}

func (s *db) Update(ctx context.Context, fn func(store.Writer) error) error {
	return s.run(ctx, s.write, "BEGIN IMMEDIATE", func(t *tx) error { return store.Write(ctx, t, fn) })
}

// run runs fn in a transaction on a session of the pool, and commits it if fn
// returns nil.
func (s *db) run(ctx context.Context, from pool, begin string, fn func(*tx) error) error {
	leave, err := s.gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	c, err := from.take(ctx)
	if err != nil {
		return s.file.explain(err)
	}
	if err := c.sync(!store.IsUnsynced(ctx)); err != nil {
		from.give(c, true)
		return s.file.explain(err)
	}
	if err := patiently(ctx, func() error { return c.exec(begin) }); err != nil {
		from.give(c, false)
		return s.file.explain(err)
	}
	open := true
	defer func() { from.give(c, open && c.exec("ROLLBACK") != nil) }()
	if err := fn(newTx(c)); err != nil {
		return s.file.explain(err)
	}
	if err := patiently(background, func() error { return c.exec("COMMIT") }); err != nil {
		return s.file.explain(err)
	}
	open = false
	return nil
}

func (s *db) Close() error {
	if !s.gate.Shut() {
		return nil
	}
	return errors.Join(s.read.close(), s.write.close(), s.file.db.Close())
}

// patiently repeats fn while another process holds the file. Waiting here and
// not in SQLite lets the context end it.
func patiently(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := fn()
		if code(err) != sqlite3.SQLITE_BUSY || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(pause)):
		}
	}
}

// code is the primary result code of an error of SQLite's, 0 of others.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// explain adds to an error of SQLite's which file it is about, and what can be
// done.
func (f *file) explain(err error) error {
	switch code(err) {
	case 0:
		return err
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("store %s is damaged: %w; put back a copy of it, or move it away to start with an empty one", f.path, err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("store %s: another process has been writing for %s: %w", f.path, patience, err)
	}
	return fmt.Errorf("store %s: %w", f.path, err)
}
