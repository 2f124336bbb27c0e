// Package mem is a store that forgets.
package mem

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/helve-ai/helve/store"
)

// A Store keeps its values in memory, until Close. The zero Store is empty
// and ready to use. It must not be copied.
//
// The values are in a tree whose nodes never change: a View keeps the root it
// began with, so that it neither waits nor holds up, and an Update makes new
// nodes for the few on the way to what it writes, and sets the root at its
// end. Updates run one after the other, each once.
type Store struct {
	gate store.Gate
	root atomic.Pointer[node]

	once  sync.Once
	write chan struct{} // holds one token while an Update runs
}

var _ store.Store = (*Store)(nil)

// View is part of the contract of store.Store.
func (s *Store) View(ctx context.Context, fn func(store.Reader) error) error {
	leave, err := s.gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return store.Read(ctx, &tx{s.root.Load()}, fn)
}

// Update is part of the contract of store.Store.
func (s *Store) Update(ctx context.Context, fn func(store.Writer) error) error {
	leave, err := s.gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	s.once.Do(func() { s.write = make(chan struct{}, 1) })
	select {
	case s.write <- struct{}{}:
		defer func() { <-s.write }()
	case <-ctx.Done():
		return ctx.Err()
	}
	t := &tx{s.root.Load()}
	if err := store.Write(ctx, t, fn); err != nil {
		return err
	}
	s.root.Store(t.root)
	return nil
}

// Close is part of the contract of store.Store. It lets go of the values.
func (s *Store) Close() error {
	s.gate.Shut()
	s.root.Store(nil)
	return nil
}

// tx is one transaction: the root as it has made it so far.
type tx struct{ root *node }

var _ store.Tx = (*tx)(nil)

func (t *tx) Get(bucket, key string) ([]byte, error) {
	n := t.root.find(id{bucket, key})
	if n == nil {
		return nil, store.ErrNotFound
	}
	return bytes.Clone(n.value), nil
}

func (t *tx) Scan(bucket, prefix string, yield func(string, []byte) bool) error {
	t.root.ascend(id{bucket, prefix}, func(n *node) bool {
		return n.bucket == bucket && strings.HasPrefix(n.key, prefix) && yield(n.key, bytes.Clone(n.value))
	})
	return nil
}

func (t *tx) Put(bucket, key string, value []byte) error {
	t.root = t.root.put(id{bucket, key}, append([]byte{}, value...))
	return nil
}

func (t *tx) Delete(bucket, key string) error {
	t.root = t.root.remove(id{bucket, key})
	return nil
}
