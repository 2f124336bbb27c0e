package store

import (
	"context"
	"iter"
)

// Sub returns the part of s whose buckets' names begin with prefix and a
// slash; in the part they go without, but it counts towards [MaxName]. Parts with different prefixes share
// nothing, unless one prefix begins with another and a slash: then it lies
// within that one. Close of a part does nothing, since s is its owner's to
// close.
func Sub(s Store, prefix string) Store {
	return part{s, prefix + "/"}
}

type part struct {
	whole  Store
	prefix string
}

func (p part) View(ctx context.Context, fn func(Reader) error) error {
	return p.whole.View(ctx, func(r Reader) error { return fn(partReader{r, p.prefix}) })
}

func (p part) Update(ctx context.Context, fn func(Writer) error) error {
	return p.whole.Update(ctx, func(w Writer) error {
		return fn(partWriter{partReader{w, p.prefix}, w})
	})
}

func (p part) Close() error { return nil }

type partReader struct {
	r      Reader
	prefix string
}

func (p partReader) Get(bucket, key string) ([]byte, error) { return p.r.Get(p.prefix+bucket, key) }

func (p partReader) Scan(bucket, prefix string) iter.Seq2[string, []byte] {
	return p.r.Scan(p.prefix+bucket, prefix)
}

func (p partReader) Fail(err error) { p.r.Fail(err) }

type partWriter struct {
	partReader
	w Writer
}

func (p partWriter) Put(bucket, key string, value []byte) error {
	return p.w.Put(p.prefix+bucket, key, value)
}

func (p partWriter) Delete(bucket, key string) error { return p.w.Delete(p.prefix+bucket, key) }
