// Package embed gives texts vectors by a model in a folder or behind an
// endpoint, and the same text never twice.
package embed

import (
	"context"
	"sync"

	"github.com/helve-ai/helve/embed/encoder"
)

// A Source maps texts to vectors of one length, each of length 1 or 0. It is
// safe for concurrent use.
type Source interface {
	// Embed returns a vector for each text, or an error and none.
	Embed(ctx context.Context, texts []string) ([][]float32, error)

	// ID names what computes the vectors: those of different ids cannot be
	// compared.
	ID(ctx context.Context) (string, error)

	Close() error
}

// Folder returns the sentence model in a folder (see encoder.Open), which is
// loaded when it is first used. An error of loading stays: it is returned by
// every later use.
func Folder(dir string) Source {
	f := &folder{}
	f.load = sync.OnceValues(func() (*encoder.Encoder, error) { return encoder.Open(dir) })
	return f
}

type folder struct {
	load func() (*encoder.Encoder, error)

	mu   sync.Mutex
	open *encoder.Encoder
}

func (f *folder) get() (*encoder.Encoder, error) {
	e, err := f.load()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = e
	return e, nil
}

func (f *folder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e, err := f.get()
	if err != nil {
		return nil, err
	}
	return e.Embed(ctx, texts)
}

func (f *folder) ID(context.Context) (string, error) {
	e, err := f.get()
	if err != nil {
		return "", err
	}
	return "folder " + e.ID(), nil
}

// Close closes the model if it was loaded.
func (f *folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		return nil
	}
	return f.open.Close()
}
