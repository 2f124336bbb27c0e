package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// A Snapshot is the checkpoint of a call of which nobody can say beforehand
// what it will change, such as a command: all files are saved, as far as they
// are new since the last snapshot, and what was changed is found out afterwards.
type Snapshot struct {
	Notes []string // for the caller: what was not saved

	keeper *Keeper
	head   Checkpoint
	files  []File
	began  time.Time
	whole  bool // the tree was not too large to be compared
}

// maxDetail bounds what a checkpoint tells of its call, in bytes.
const maxDetail = 200

// told returns what a checkpoint tells of its call, without secrets.
func (k *Keeper) told(detail string) string {
	if k.opts.Redact != nil {
		detail = k.opts.Redact(detail)
	}
	detail = strings.ToValidUTF8(detail, "")
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "") + "…"
	}
	return detail
}

// An entry is a file in the list of all files.
type entry struct {
	Path  string     `json:"p"`
	State State      `json:"s"`
	Stamp root.Stamp `json:"t"`
}

// Snapshot saves what the root holds before c runs: all that is visible, but
// for the folders of Limits.Skip. Beyond Limits.MaxSnapshot the largest files
// are left out, which Notes tell. The detail says what c is about to do.
//
// An error means that c must not run.
func (k *Keeper) Snapshot(ctx context.Context, c *tool.Call, detail string) (*Snapshot, error) {
	if err := k.depot.open(ctx); err != nil {
		return nil, err
	}
	unlock, err := k.depot.lock(ctx, true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s := &Snapshot{keeper: k, head: k.headOf(c, k.opts.Now()), began: time.Now()}
	s.head.Detail = k.told(detail)
	sv := &saver{keeper: k, ctx: ctx, seen: map[string]bool{}, lenient: true}
	if err := k.scan(ctx, sv); errors.Is(err, root.ErrTooMany) {
		s.Notes = []string{fmt.Sprintf("no checkpoint was made: the root holds more than %d files and folders, so that what the command changes cannot be restored", maxEntries)}
		return s, nil
	} else if err != nil {
		return nil, err
	}
	known := k.loadCache()
	k.bound(sv, known)
	if err := sv.contents(); err != nil {
		return nil, err
	}
	s.files, s.Notes, s.whole = sv.files, sv.notes, true
	if err := k.saveCache(known, s.files, s.began); err != nil {
		return nil, err
	}
	if s.head.Manifest, err = k.addManifest(s.files); err != nil {
		return nil, err
	}
	if err := k.insert(ctx, &s.head, nil); err != nil {
		return nil, err
	}
	return s, nil
}

// scan notes all that is visible.
func (k *Keeper) scan(ctx context.Context, s *saver) error {
	return k.opts.Root.Walk(ctx, ".", root.WalkOptions{Stat: true, Limit: maxEntries}, func(e root.Entry) error {
		switch {
		case e.Err != nil:
			s.note(fmt.Sprintf("the folder %s cannot be read, and what it holds was not saved", e.Rel))
			return nil
		case e.Mode.IsDir() && slices.Contains(k.opts.Limits.Skip, e.Name):
			return fs.SkipDir
		}
		st, err := k.stateOf(e.Rel, e.Mode, e.Size, e.Stamp)
		if err != nil {
			return nil // a pipe or a socket: nothing that could be put back
		}
		return s.add(e.Rel, st)
	})
}

// bound leaves out the largest files if all together are too large, and takes
// over the digests that are known.
func (k *Keeper) bound(s *saver, known map[string]entry) {
	order := make([]int, 0, len(s.files))
	for i := range s.files {
		if s.files[i].Before.Kind == Regular {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(min(max(s.files[a].Before.Size-s.files[b].Before.Size, -1), 1))
	})
	total, left, bytes := int64(0), 0, int64(0)
	for _, i := range order {
		f := &s.files[i]
		if total+f.Before.Size > k.opts.Limits.MaxSnapshot || f.Before.Size > k.opts.Limits.MaxFile {
			f.Before.Kind = Unsaved
			left, bytes = left+1, bytes+f.Before.Size
			continue
		}
		total += f.Before.Size
		e, ok := known[f.Path]
		if ok && e.Stamp == f.Before.stamp && e.State.Size == f.Before.Size && k.depot.has(e.State.Digest) {
			f.Before.Digest = e.State.Digest
		}
	}
	if left > 0 {
		s.note(fmt.Sprintf("the largest %d of the files (%d bytes) were not saved before the command, because a snapshot holds at most %d bytes (runtime.checkpoints.max_snapshot): changes to them cannot be restored", left, bytes, k.opts.Limits.MaxSnapshot))
	}
}

// Done notes what the command changed. A command that changed nothing leaves no
// checkpoint. It must be called once; s may be nil.
func (s *Snapshot) Done(ctx context.Context) {
	if s == nil || !s.whole {
		return
	}
	k := s.keeper
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	changed, err := k.compare(ctx, s.files, s.began, true)
	if err == nil {
		s.head.Open, s.head.Manifest = false, ""
		s.head.count(changed)
		err = k.update(ctx, s.head, changed)
	}
	if err != nil {
		k.opts.Log.Warn("what a command changed could not be noted; its checkpoint is kept as one that was cut short", "checkpoint", s.head.ID, "error", err)
	}
	k.pruneSometimes()
}

// compare returns what differs between a list of all files and what there is.
func (k *Keeper) compare(ctx context.Context, before []File, at time.Time, after bool) ([]File, error) {
	now := &saver{keeper: k, ctx: ctx, seen: map[string]bool{}}
	if err := k.scan(ctx, now); err != nil {
		return nil, err
	}
	old := make(map[string]State, len(before))
	s := &settler{keeper: k, began: at, known: map[root.Stamp]State{}}
	for _, f := range before {
		old[f.Path] = f.Before
		if f.Before.Kind == Regular {
			s.known[moved(f.Before.stamp)] = f.Before
		}
	}
	var changed []File
	note := func(path string, was, is State) {
		f := File{Path: path, Before: was}
		if after {
			f.After = &is
		}
		changed = append(changed, f)
	}
	for _, f := range now.files {
		was, ok := old[f.Path]
		delete(old, f.Path)
		if !ok {
			was = State{Kind: Absent}
		}
		if was.Kind == Unsaved && f.Before.Kind == Regular && was.stamp == f.Before.stamp {
			continue
		}
		is, err := s.digest(ctx, f.Path, f.Before, was)
		if unreadable(err) {
			continue // it could not be saved either, or it has just gone
		}
		if err != nil {
			return nil, err
		}
		if !is.Same(was) {
			note(f.Path, was, is)
		}
	}
	for path, was := range old {
		note(path, was, State{Kind: Absent})
	}
	slices.SortFunc(changed, func(a, b File) int { return compareText(a.Path, b.Path) })
	return changed, nil
}

// addManifest saves the list of all files, by which a command that is cut short can be taken back.
func (k *Keeper) addManifest(files []File) (string, error) {
	list := make([]entry, len(files))
	for i, f := range files {
		list[i] = entry{f.Path, f.Before, f.Before.stamp}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	b := &batch{depot: &k.depot}
	digest, _, err := b.add(bytes.NewReader(data), 1<<40)
	if err == nil {
		err = b.sync()
	}
	return digest, err
}

// interrupted returns what has changed since a command was begun that was cut short, or is under way.
func (k *Keeper) interrupted(ctx context.Context, c Checkpoint) ([]File, error) {
	if err := k.here(ctx, c); err != nil {
		return nil, err
	}
	list, err := k.manifest(c.Manifest)
	if err != nil {
		return nil, err
	}
	files := make([]File, len(list))
	for i, e := range list {
		e.State.stamp = e.Stamp
		files[i] = File{Path: e.Path, Before: e.State}
	}
	return k.compare(ctx, files, c.Time, false)
}

func (k *Keeper) manifest(digest string) (list []entry, err error) {
	b, err := k.depot.get(digest)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return list, json.NewDecoder(b).Decode(&list)
}

// The cache is what the last snapshot of a root found, so that the next one
// need not read what has not changed. It may be lost at any time.

func (k *Keeper) cacheFile() string {
	sum := sha256.Sum256([]byte(k.opts.Root.Dir()))
	return filepath.Join(k.depot.dir, "cache-"+hex.EncodeToString(sum[:8])+".json")
}

func (k *Keeper) loadCache() map[string]entry {
	return readCache(k.cacheFile())
}

func readCache(file string) map[string]entry {
	var list []entry
	data, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(data, &list) != nil {
		return nil
	}
	known := make(map[string]entry, len(list))
	for _, e := range list {
		known[e.Path] = e
	}
	return known
}

func (k *Keeper) saveCache(known map[string]entry, files []File, at time.Time) error {
	var list []entry
	same := 0
	for _, f := range files {
		if f.Before.Kind != Regular || recent(f.Before.stamp, at) {
			continue
		}
		e := entry{f.Path, f.Before, f.Before.stamp}
		e.State.stamp = root.Stamp{}
		if known[f.Path] == e {
			same++
		}
		list = append(list, e)
	}
	if same == len(list) && same == len(known) {
		return nil
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Join(k.depot.dir, "tmp"), "cache-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if other := f.Close(); err == nil {
		err = other
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), k.cacheFile())
}
