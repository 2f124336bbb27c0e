package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxName is how many bytes the name of a bucket or a key may have: what
// PostgreSQL can always index, and so the same for every store.
const MaxName = 1024

// A Tx is what a kind of store brings for one transaction; [Read] and [Write]
// make a Reader or Writer of it that keeps the rest of the contract. Its
// methods are called by one goroutine, with names that have been checked.
type Tx interface {
	// Get returns a value that is the caller's, or ErrNotFound itself.
	Get(bucket, key string) ([]byte, error)
	// Scan calls yield in the order of keys until it returns false, with
	// values that are yield's to keep, on the bucket as it was at the call.
	Scan(bucket, prefix string, yield func(key string, value []byte) bool) error
	// Put keeps nothing of value.
	Put(bucket, key string, value []byte) error
	Delete(bucket, key string) error
}

// Read runs fn on tx and returns what View must return. The caller ends the
// transaction, also when fn panics.
func Read(ctx context.Context, tx Tx, fn func(Reader) error) error {
	r := &reader{ctx: ctx, tx: tx}
	defer r.end()
	return r.outcome(fn(r))
}

// Write runs fn on tx. If it returns nil, the caller commits and returns what
// came of it; otherwise, or when fn panics, the caller rolls back.
func Write(ctx context.Context, tx Tx, fn func(Writer) error) error {
	w := &writer{reader{ctx: ctx, tx: tx}}
	defer w.end()
	return w.outcome(fn(w))
}

// CheckName tells what is wrong with the name of a bucket or a key; nil if
// nothing is.
func CheckName(name string) error {
	switch {
	case len(name) > MaxName:
		return fmt.Errorf("%.32q... has %d bytes, at most %d are allowed", name, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%q is not valid UTF-8", name)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("%q contains a NUL", name)
	}
	return nil
}

// prefixEnd returns the least string of bytes after all names that begin with
// prefix. It need not be UTF-8.
func prefixEnd(prefix string) string {
	if prefix == "" {
		return "\xff"
	}
	last := len(prefix) - 1
	return prefix[:last] + string([]byte{prefix[last] + 1}) // no byte of UTF-8 is 0xff
}

// reader holds a Tx to the contract.
type reader struct {
	ctx    context.Context
	tx     Tx
	failed error
	ended  bool
}

func (r *reader) end() { r.ended = true }

// outcome is what the transaction comes to when fn has returned err. What fn
// concluded after a failure is worth nothing, so the failure goes first.
func (r *reader) outcome(err error) error {
	if r.failed != nil && !errors.Is(err, r.failed) {
		return r.failed
	}
	if err == nil {
		err = r.ctx.Err()
	}
	return err
}

func (r *reader) Fail(err error) {
	if r.failed == nil && !r.ended {
		r.failed = err
	}
}

// alive tells whether a call may go on to the transaction.
func (r *reader) alive(bucket string) error {
	if r.ended {
		return fmt.Errorf("bucket %q: used after its View or Update has ended: %w", bucket, ErrClosed)
	}
	r.Fail(r.ctx.Err())
	return r.failed
}

// check tells whether a call with these names may go on to the transaction.
func (r *reader) check(bucket, key string) error {
	if err := r.alive(bucket); err != nil {
		return err
	}
	if err := CheckName(bucket); err != nil {
		r.Fail(fmt.Errorf("name of bucket: %w", err))
	} else if err := CheckName(key); err != nil {
		r.Fail(fmt.Errorf("bucket %s: key: %w", bucket, err))
	}
	return r.failed
}

// done records how a call on a key went.
func (r *reader) done(bucket, key string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("bucket %s: key %q: %w", bucket, key, err)
	if !errors.Is(err, ErrNotFound) {
		r.Fail(err)
	}
	return err
}

func (r *reader) Get(bucket, key string) ([]byte, error) {
	if err := r.check(bucket, key); err != nil {
		return nil, err
	}
	value, err := r.tx.Get(bucket, key)
	if err == nil && value == nil {
		value = []byte{}
	}
	return value, r.done(bucket, key, err)
}

func (r *reader) Scan(bucket, prefix string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		if r.check(bucket, prefix) != nil {
			return
		}
		err := r.tx.Scan(bucket, prefix, func(key string, value []byte) bool {
			if value == nil {
				value = []byte{}
			}
			return r.alive(bucket) == nil && yield(key, value)
		})
		if err != nil {
			r.Fail(fmt.Errorf("bucket %s: scan of %q: %w", bucket, prefix, err))
		}
	}
}

type writer struct{ reader }

func (w *writer) Put(bucket, key string, value []byte) error {
	if err := w.check(bucket, key); err != nil {
		return err
	}
	return w.done(bucket, key, w.tx.Put(bucket, key, value))
}

func (w *writer) Delete(bucket, key string) error {
	if err := w.check(bucket, key); err != nil {
		return err
	}
	return w.done(bucket, key, w.tx.Delete(bucket, key))
}

// A Gate is how a store closes: it lets transactions in until it is shut, and
// shutting waits until all are out. The zero Gate is open.
type Gate struct {
	mu   sync.Mutex
	shut bool
	in   sync.WaitGroup
}

// Enter lets a transaction in; the caller must call leave at its end. It
// fails with ErrClosed once the gate is shut, and with the context's error
// when that has ended.
func (g *Gate) Enter(ctx context.Context) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil, ErrClosed
	}
	g.in.Add(1)
	return g.in.Done, nil
}

// Shut closes the gate and waits until all are out. Only the first call
// returns true; the others wait too.
func (g *Gate) Shut() (first bool) {
	g.mu.Lock()
	first = !g.shut
	g.shut = true
	g.mu.Unlock()
	g.in.Wait()
	return first
}
