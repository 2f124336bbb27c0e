package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/helve-ai/helve/store"
)

// A Pruning says what to drop: checkpoints that are older than MaxAge, and then
// the oldest until their contents take at most MaxBytes on disk.
type Pruning struct {
	MaxAge   time.Duration // negative: whatever their age
	MaxBytes int64         // negative: whatever their size
	DryRun   bool          // only tell
}

// Pruned tells what was dropped, or would be.
type Pruned struct {
	Checkpoints int   `json:"checkpoints"`
	Contents    int   `json:"contents"`
	Freed       int64 `json:"freed_bytes"`
	Kept        int   `json:"kept_checkpoints"`
	KeptBytes   int64 `json:"kept_bytes"`
}

// Prune drops checkpoints in the store, of every root, whose contents lie in
// this folder, and then the contents that no checkpoint needs. It works alone: calls that save
// wait for it. Killed at any moment, it has dropped nothing that is needed.
func (k *Keeper) Prune(ctx context.Context, p Pruning) (Pruned, error) {
	if err := k.depot.open(ctx); err != nil {
		return Pruned{}, err
	}
	unlock, err := k.depot.lock(ctx, p.DryRun)
	if err != nil {
		return Pruned{}, err
	}
	defer unlock()
	u := &usage{keeper: k, refs: map[string]int{}}
	if err := u.read(ctx); err != nil {
		return Pruned{}, err
	}
	drop := u.choose(p, k.opts.Now())
	out := Pruned{Checkpoints: len(drop), Kept: len(u.rows) - len(drop), KeptBytes: u.total}
	if !p.DryRun {
		if err := k.drop(ctx, drop); err != nil {
			return Pruned{}, err
		}
	}
	for digest, size := range u.sizes {
		if u.refs[digest] > 0 {
			continue
		}
		out.Contents, out.Freed = out.Contents+1, out.Freed+size
		if p.DryRun {
			continue
		}
		if err := os.Remove(k.depot.place(digest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return out, err
		}
	}
	if !p.DryRun {
		err = k.depot.clean(u.dropCaches)
	}
	return out, err
}

// usage is who needs which contents.
type usage struct {
	keeper     *Keeper
	rows       []usedBy
	refs       map[string]int   // how often a content is needed
	sizes      map[string]int64 // on disk, of every content
	caches     []string         // what the caches name
	total      int64            // bytes of what is needed
	dropCaches bool
}

type usedBy struct {
	head    Checkpoint
	digests []string
}

func (u *usage) read(ctx context.Context) error {
	d := &u.keeper.depot
	err := u.keeper.opts.Store.View(ctx, func(r store.Reader) error {
		u.rows = nil
		for key, c := range heads.All(r) {
			if c.Node != d.node {
				continue
			}
			files, err := lists.Get(r, key)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			row := usedBy{head: c}
			for _, f := range files {
				if f.Before.Digest != "" {
					row.digests = append(row.digests, f.Before.Digest)
				}
			}
			u.rows = append(u.rows, row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if u.sizes, err = d.sizes(); err != nil {
		return err
	}
	for i := range u.rows {
		if err := u.manifest(&u.rows[i]); err != nil {
			return err
		}
		u.use(u.rows[i].digests)
	}
	u.caches, err = d.cached()
	u.use(u.caches)
	return err
}

// manifest adds what a command under way needs.
func (u *usage) manifest(row *usedBy) error {
	if row.head.Manifest == "" {
		return nil
	}
	row.digests = append(row.digests, row.head.Manifest)
	list, err := u.keeper.manifest(row.head.Manifest)
	for _, e := range list {
		if e.State.Digest != "" {
			row.digests = append(row.digests, e.State.Digest)
		}
	}
	return err
}

func (u *usage) use(digests []string) {
	for _, d := range digests {
		if u.refs[d]++; u.refs[d] == 1 {
			u.total += u.sizes[d]
		}
	}
}

func (u *usage) leave(digests []string) {
	for _, d := range digests {
		if u.refs[d]--; u.refs[d] == 0 {
			u.total -= u.sizes[d]
		}
	}
}

// choose returns the checkpoints to drop. When all are dropped and it is still
// too much, what the caches name goes, too.
func (u *usage) choose(p Pruning, now time.Time) (drop []int64) {
	for _, row := range u.rows {
		old := p.MaxAge >= 0 && now.Sub(row.head.Time) > p.MaxAge
		large := p.MaxBytes >= 0 && u.total > p.MaxBytes
		if old || large {
			drop = append(drop, row.head.ID)
			u.leave(row.digests)
		}
	}
	if p.MaxBytes >= 0 && u.total > p.MaxBytes {
		u.leave(u.caches)
		u.dropCaches = true
	}
	return drop
}

func (k *Keeper) drop(ctx context.Context, ids []int64) error {
	return k.opts.Store.Update(ctx, func(w store.Writer) error {
		for _, id := range ids {
			if err := heads.Delete(w, keyOf(id)); err != nil {
				return err
			}
			if err := lists.Delete(w, keyOf(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// sizes returns the bytes on disk of every content.
func (d *depot) sizes() (map[string]int64, error) {
	sizes := map[string]int64{}
	top := filepath.Join(d.dir, "blobs")
	err := filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			sizes[filepath.Base(filepath.Dir(file))+e.Name()] = info.Size()
		}
		return err
	})
	return sizes, err
}

// cached returns the digests that the caches name.
func (d *depot) cached() (digests []string, err error) {
	entries, err := os.ReadDir(d.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "cache-") {
			for _, c := range readCache(filepath.Join(d.dir, e.Name())) {
				digests = append(digests, c.State.Digest)
			}
		}
	}
	return digests, err
}

// clean removes what writers left behind that were killed, and the caches.
func (d *depot) clean(caches bool) error {
	left, err := os.ReadDir(filepath.Join(d.dir, "tmp"))
	for _, e := range left {
		if strings.HasPrefix(e.Name(), "node-") {
			continue // of a process that is just opening the folder
		}
		err = errors.Join(err, os.Remove(filepath.Join(d.dir, "tmp", e.Name())))
	}
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(d.dir)
	for _, e := range entries {
		if caches && strings.HasPrefix(e.Name(), "cache-") {
			err = errors.Join(err, os.Remove(filepath.Join(d.dir, e.Name())))
		}
	}
	return err
}

// pruneEvery is how often the limits of age and size are enforced.
const pruneEvery = 24 * time.Hour

// pruneSometimes enforces the limits in the background, if that was not done for a day.
func (k *Keeper) pruneSometimes() {
	mark := filepath.Join(k.depot.dir, "pruned")
	info, err := os.Stat(mark)
	if err == nil && k.opts.Now().Sub(info.ModTime()) < pruneEvery {
		return
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return
	}
	if now := k.opts.Now(); os.Chtimes(mark, now, now) != nil || info == nil {
		return // a new folder holds nothing to prune
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop.Err() != nil {
		return
	}
	k.pruning.Go(func() {
		l := k.opts.Limits
		if _, err := k.Prune(k.stop, Pruning{MaxAge: l.MaxAge, MaxBytes: l.MaxTotal}); err != nil && k.stop.Err() == nil {
			k.opts.Log.Warn("old checkpoints could not be pruned", "error", err)
		}
	})
}
