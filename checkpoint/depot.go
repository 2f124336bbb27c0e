package checkpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/helve-ai/helve/internal/filelock"
	"github.com/helve-ai/helve/store"
)

// A depot is the folder of the contents: blobs/ab/cdef…, named by the SHA-256
// of what they hold. Each store has a depot of its own in the base folder, so
// that pruning by one store never takes what another needs.
//
// Who adds contents holds the lock shared until the checkpoint that needs them
// is on record; who removes contents holds it alone.
type depot struct {
	base  string
	store store.Store

	mu   sync.Mutex
	dir  string // "" until open
	node string // names this folder among those of all machines
}

// open makes the folder, if it is missing.
func (d *depot) open(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir != "" {
		return nil
	}
	id, err := storeID(ctx, d.store)
	if err != nil {
		return fmt.Errorf("the index of checkpoints cannot be used: %w", err)
	}
	dir := filepath.Join(d.base, id)
	for _, sub := range []string{"blobs", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	node, err := nodeID(dir)
	if err != nil {
		return err
	}
	d.dir, d.node = dir, node
	return nil
}

func (d *depot) remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir == "" {
		return nil
	}
	return os.RemoveAll(d.dir)
}

// storeID returns the name that a store has given itself.
func storeID(ctx context.Context, s store.Store) (id string, err error) {
	read := func(r store.Reader) (err error) {
		id, err = meta.Get(r, "id")
		return err
	}
	if err = s.View(ctx, read); !errors.Is(err, store.ErrNotFound) {
		return id, err
	}
	err = s.Update(ctx, func(w store.Writer) error {
		err := read(w)
		if errors.Is(err, store.ErrNotFound) {
			id = rand.Text()[:12]
			return meta.Put(w, "id", id)
		}
		return err
	})
	return id, err
}

// nodeID returns the name of the depot in dir, which it gives it if it has none.
func nodeID(dir string) (string, error) {
	file := filepath.Join(dir, "node")
	if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
		return string(data), nil
	}
	temp := filepath.Join(dir, "tmp", "node-"+rand.Text())
	if err := writeSynced(temp, []byte(rand.Text()[:12])); err != nil {
		return "", err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, file); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(temp, file); err != nil { // a file system without links
			return "", err
		}
	}
	data, err := os.ReadFile(file)
	if err == nil && len(data) == 0 {
		err = fmt.Errorf("%s is empty; remove it", file)
	}
	return string(data), err
}

func writeSynced(file string, data []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if other := f.Close(); err == nil {
		err = other
	}
	if err != nil {
		os.Remove(file)
	}
	return err
}

// lock waits for the lock, shared or alone.
func (d *depot) lock(ctx context.Context, shared bool) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(d.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		ok, err := filelock.Try(f, shared)
		if ok {
			return func() { f.Close() }, nil
		}
		if err == nil {
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
				err = fmt.Errorf("the folder of the checkpoints is locked by a pruning: %w", context.Cause(ctx))
			}
		}
		f.Close()
		return nil, err
	}
}

func (d *depot) place(digest string) string {
	return filepath.Join(d.dir, "blobs", digest[:2], digest[2:])
}

func (d *depot) has(digest string) bool {
	info, err := os.Stat(d.place(digest))
	return err == nil && info.Mode().IsRegular()
}

// small is the size up to which a content is held in memory.
const small = 1 << 20

// encoders compress; they are costly to make.
var encoders = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}}

// A batch is contents on their way into the depot. They are there, and will
// survive a power cut, once sync has returned. It is safe for concurrent use.
type batch struct {
	depot *depot
	mu    sync.Mutex
	dirs  map[string]bool // in which names were added
}

// add adds what src holds, which must be at most most bytes, and returns its digest and size.
func (b *batch) add(src io.Reader, most int64) (digest string, size int64, err error) {
	head, err := io.ReadAll(io.LimitReader(src, min(small, most)+1))
	if err != nil {
		return "", 0, err
	}
	if int64(len(head)) > most {
		return "", 0, &LimitError{fmt.Sprintf("it grew beyond %d bytes while it was saved", most)}
	}
	if len(head) <= small {
		sum := sha256.Sum256(head)
		digest = hex.EncodeToString(sum[:])
		if b.depot.has(digest) {
			b.dir(filepath.Dir(b.depot.place(digest)))
			return digest, int64(len(head)), nil
		}
	}
	return b.stream(io.MultiReader(bytes.NewReader(head), src), most)
}

// stream compresses a content to a file, and gives the file its name when the digest is known.
func (b *batch) stream(src io.Reader, most int64) (digest string, size int64, err error) {
	f, err := os.CreateTemp(filepath.Join(b.depot.dir, "tmp"), "blob-")
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(f.Name())
	e := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(e)
	e.Reset(f)
	sum := sha256.New()
	size, err = io.Copy(io.MultiWriter(sum, e), io.LimitReader(src, most+1))
	if err == nil && size > most {
		err = &LimitError{fmt.Sprintf("it grew beyond %d bytes while it was saved", most)}
	}
	if other := e.Close(); err == nil {
		err = other
	}
	if err == nil {
		err = f.Sync()
	}
	if other := f.Close(); err == nil {
		err = other
	}
	if err != nil {
		return "", 0, err
	}
	digest = hex.EncodeToString(sum.Sum(nil))
	place := b.depot.place(digest)
	if err := os.Mkdir(filepath.Dir(place), 0o700); err == nil {
		b.dir(filepath.Dir(filepath.Dir(place)))
	} else if !errors.Is(err, fs.ErrExist) {
		return "", 0, err
	}
	if err := os.Rename(f.Name(), place); err != nil {
		return "", 0, err
	}
	b.dir(filepath.Dir(place))
	return digest, size, nil
}

// dir notes a folder in which a name was added, perhaps by another process that has yet to sync it.
func (b *batch) dir(dir string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dirs == nil {
		b.dirs = map[string]bool{}
	}
	b.dirs[dir] = true
}

func (b *batch) sync() error {
	for dir := range b.dirs {
		if err := filelock.SyncFolder(dir); err != nil {
			return err
		}
	}
	return nil
}

// A blob is a content that is being read. It fails in place of io.EOF if it is
// not what its name says.
type blob struct {
	file *os.File
	z    *zstd.Decoder
	sum  hash.Hash
	want string
}

// get opens a content.
func (d *depot) get(digest string) (*blob, error) {
	if len(digest) != 2*sha256.Size {
		return nil, fmt.Errorf("%q is not the digest of a content", digest)
	}
	f, err := os.Open(d.place(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the content %.12s… is no longer in %s", digest, d.dir)
	}
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		f.Close()
		return nil, err
	}
	return &blob{f, z, sha256.New(), digest}, nil
}

func (b *blob) Read(p []byte) (int, error) {
	n, err := b.z.Read(p)
	b.sum.Write(p[:n])
	if err == io.EOF && hex.EncodeToString(b.sum.Sum(nil)) != b.want {
		err = fmt.Errorf("the content %.12s… is damaged in %s", b.want, b.file.Name())
	}
	return n, err
}

// Close closes the content.
func (b *blob) Close() error {
	b.z.Close()
	return b.file.Close()
}

var hostName = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
})
