package store

import (
	"encoding/json"
	"fmt"
	"iter"
)

// Bucket is a typed view of the bucket of that name, whose values are JSON.
type Bucket[T any] string

// Get returns the value of key, and ErrNotFound without one.
func (b Bucket[T]) Get(r Reader, key string) (v T, err error) {
	data, err := r.Get(string(b), key)
	if err != nil {
		return v, err
	}
	return b.decode(key, data)
}

// Put sets the value of key.
func (b Bucket[T]) Put(w Writer, key string, v T) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("bucket %s: key %q: %w", string(b), key, err)
	}
	return w.Put(string(b), key, data)
}

// Delete removes key. It is no error that there is none.
func (b Bucket[T]) Delete(w Writer, key string) error {
	return w.Delete(string(b), key)
}

// All ranges over every key and value, as Scan does.
func (b Bucket[T]) All(r Reader) iter.Seq2[string, T] { return b.Scan(r, "") }

// Scan ranges over the keys with the prefix and their values, under the terms
// of Reader.Scan. A value that is not the JSON of a T ends the loop, and View
// or Update returns the error.
func (b Bucket[T]) Scan(r Reader, prefix string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for key, data := range r.Scan(string(b), prefix) {
			v, err := b.decode(key, data)
			if err != nil {
				r.Fail(err)
				return
			}
			if !yield(key, v) {
				return
			}
		}
	}
}

func (b Bucket[T]) decode(key string, data []byte) (v T, err error) {
	if err := json.Unmarshal(data, &v); err != nil {
		return *new(T), fmt.Errorf("bucket %s: key %q: %w", string(b), key, err)
	}
	return v, nil
}
