package embed

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/helve-ai/helve/store"
)

// cacheBucket holds vectors by the digests of model and text.
const cacheBucket = "vectors"

// Cached returns src such that the vector of each text is kept in s, by the
// model's id and the digest of the text, and is computed once. A store that
// fails costs time, not answers. s may be a store.Sub; closing closes src alone.
func Cached(src Source, s store.Store) *Cache { return &Cache{src: src, store: s} }

// A Cache is a Source that remembers. It is for texts that come again; those
// of queries are better asked of the source itself.
type Cache struct {
	src   Source
	store store.Store
}

// ID is the source's.
func (c *Cache) ID(ctx context.Context) (string, error) { return c.src.ID(ctx) }

// Close closes the source.
func (c *Cache) Close() error { return c.src.Close() }

// perWrite is how many texts are computed before their vectors are kept, so
// that an end in the middle loses little.
const perWrite = 64

// Embed returns what is kept, and computes and keeps the rest.
func (c *Cache) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	id, err := c.src.ID(ctx)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(texts))
	for i, t := range texts {
		keys[i] = cacheKey(id, t)
	}
	out := c.kept(ctx, keys)
	var missing []int
	for i, v := range out {
		if v == nil {
			missing = append(missing, i)
		}
	}
	for len(missing) > 0 {
		n := min(perWrite, len(missing))
		if err := c.compute(ctx, texts, keys, missing[:n], out); err != nil {
			return nil, err
		}
		missing = missing[n:]
	}
	return out, nil
}

func cacheKey(id, text string) string {
	model, of := sha256.Sum256([]byte(id)), sha256.Sum256([]byte(text))
	return hex.EncodeToString(model[:8]) + "/" + hex.EncodeToString(of[:])
}

// kept returns the vectors of the keys that are kept, nil for others.
func (c *Cache) kept(ctx context.Context, keys []string) [][]float32 {
	out := make([][]float32, len(keys))
	err := c.store.View(ctx, func(r store.Reader) error {
		clear(out)
		for i, k := range keys {
			data, err := r.Get(cacheBucket, k)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			out[i] = decode(data)
		}
		return nil
	})
	if err != nil {
		clear(out)
	}
	return out
}

// compute computes the texts of some places, and keeps their vectors.
func (c *Cache) compute(ctx context.Context, texts, keys []string, places []int, out [][]float32) error {
	ask := make([]string, len(places))
	for i, at := range places {
		ask[i] = texts[at]
	}
	vectors, err := c.src.Embed(ctx, ask)
	if err != nil {
		return err
	}
	if len(vectors) != len(ask) {
		return fmt.Errorf("%d vectors of %d texts", len(vectors), len(ask))
	}
	for i, at := range places {
		out[at] = vectors[i]
	}
	// A failure is told by those who need the store; vectors are there all the same.
	_ = c.store.Update(ctx, func(w store.Writer) error {
		for _, at := range places {
			if err := w.Put(cacheBucket, keys[at], encode(out[at])); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// Prune forgets vectors of other texts and models than these, where they are
// more than twice as many as the texts and a thousand.
func (c *Cache) Prune(ctx context.Context, texts []string) error {
	id, err := c.src.ID(ctx)
	if err != nil {
		return err
	}
	current := make(map[string]bool, len(texts))
	for _, t := range texts {
		current[cacheKey(id, t)] = true
	}
	return c.store.Update(ctx, func(w store.Writer) error {
		var old []string
		for k := range w.Scan(cacheBucket, "") {
			if !current[k] {
				old = append(old, k)
			}
		}
		if len(old) <= 2*len(texts)+1000 {
			return nil
		}
		for _, k := range old {
			if err := w.Delete(cacheBucket, k); err != nil {
				return err
			}
		}
		return nil
	})
}

func encode(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// decode returns the vector that encode wrote, nil of anything else.
func decode(data []byte) []float32 {
	if len(data) == 0 || len(data)%4 != 0 {
		return nil
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}
