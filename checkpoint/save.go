package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// maxEntries bounds the files and folders of one checkpoint.
const maxEntries = 200_000

// modeBits are the bits of a mode that are saved and restored.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// A Pending is a checkpoint whose call is under way.
type Pending struct {
	Notes []string // for the caller: what could not be saved

	keeper  *Keeper
	head    Checkpoint
	targets []Target
	files   []File
	release func()
	undoes  *Span
	began   time.Time
}

// Begin saves the state of the targets before c runs. When it returns without
// an error the checkpoint is on disk, and no other call of this process changes
// the targets until Done. Nil targets need no checkpoint: both results are nil.
//
// A *LimitError says that there is too much to save. Any error means that
// nothing is on record, and that c must not run.
func (k *Keeper) Begin(ctx context.Context, c *tool.Call, targets []Target) (*Pending, error) {
	targets = distinct(targets)
	if len(targets) == 0 {
		return nil, nil
	}
	if err := k.depot.open(ctx); err != nil {
		return nil, err
	}
	release, err := k.holds.take(ctx, c, targets)
	if err != nil {
		return nil, err
	}
	p := &Pending{keeper: k, targets: targets, release: release, began: time.Now()}
	if err := p.save(ctx, c); err != nil {
		release()
		return nil, err
	}
	k.register(c.ID, p)
	return p, nil
}

func (k *Keeper) register(call string, p *Pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending[call] = p
}

// distinct sorts targets and leaves out those that others cover.
func distinct(targets []Target) []Target {
	all := slices.Clone(targets)
	slices.SortFunc(all, func(a, b Target) int {
		if n := strings.Compare(a.Path, b.Path); n != 0 || a.Tree == b.Tree {
			return n
		}
		if a.Tree {
			return -1
		}
		return 1
	})
	out := all[:0]
	for _, t := range all {
		if !slices.ContainsFunc(out, func(o Target) bool { return o.Path == t.Path || o.Tree && within(t.Path, o.Path) }) {
			out = append(out, t)
		}
	}
	return out
}

// save writes the contents and then the record.
func (p *Pending) save(ctx context.Context, c *tool.Call) error {
	k := p.keeper
	unlock, err := k.depot.lock(ctx, true)
	if err != nil {
		return err
	}
	defer unlock()
	p.head = k.headOf(c, k.opts.Now())
	s := &saver{keeper: k, ctx: ctx, seen: map[string]bool{}}
	for _, t := range p.targets {
		if err := s.target(t); err != nil {
			return err
		}
	}
	if err := s.limits(); err != nil {
		return err
	}
	if err := s.contents(); err != nil {
		return err
	}
	p.files, p.Notes = s.files, s.notes
	return k.insert(ctx, &p.head, p.files)
}

// saver collects the states of files, and then saves their contents.
type saver struct {
	keeper  *Keeper
	ctx     context.Context
	seen    map[string]bool
	files   []File
	notes   []string
	lenient bool // what cannot be read is left out, with a note
}

func (s *saver) add(rel string, st State) error {
	if s.seen[rel] {
		return nil
	}
	if len(s.files) >= maxEntries {
		return &LimitError{fmt.Sprintf("more than %d files and folders would have to be saved", maxEntries)}
	}
	s.seen[rel] = true
	s.files = append(s.files, File{Path: rel, Before: st})
	return nil
}

// target notes what stands at a target. Folders that are missing on the way are
// noted, too: the call may make them.
func (s *saver) target(t Target) error {
	st, err := s.keeper.look(t.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	if st.Kind == Absent {
		for dir := path.Dir(t.Path); dir != "."; dir = path.Dir(dir) {
			above, err := s.keeper.look(dir)
			if err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			if above.Kind != Absent {
				break
			}
			if err := s.add(dir, above); err != nil {
				return err
			}
		}
	}
	if err := s.add(t.Path, st); err != nil {
		return err
	}
	if st.Kind != Folder || !t.Tree {
		return nil
	}
	return s.keeper.beneath(s.ctx, t.Path, s.add)
}

// beneathLink reports whether a link stands where a folder above the place
// would be: then nothing stands at the place itself.
func (k *Keeper) beneathLink(rel string) bool {
	for i := range len(rel) {
		if rel[i] != '/' {
			continue
		}
		p, err := k.opts.Root.At(rel[:i], root.ToList)
		if err != nil || !p.Exists {
			return false
		}
		if p.Mode.Type() == fs.ModeSymlink {
			return true
		}
	}
	return false
}

// look returns what stands at a place, without the digest of a file.
func (k *Keeper) look(rel string) (State, error) {
	r := k.opts.Root
	p, err := r.At(rel, root.ToList)
	switch {
	case err != nil && k.beneathLink(rel):
		return State{Kind: Absent}, nil
	case err != nil:
		return State{}, err
	case !p.Exists:
		return State{Kind: Absent}, nil
	}
	info, err := r.Stat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return State{Kind: Absent}, nil
	}
	if err != nil {
		return State{}, err
	}
	return k.stateOf(rel, info.Mode, info.Size, info.Stamp)
}

func (k *Keeper) stateOf(rel string, mode fs.FileMode, size int64, stamp root.Stamp) (State, error) {
	st := State{Mode: mode & modeBits, stamp: stamp}
	switch mode.Type() {
	case 0:
		st.Kind, st.Size = Regular, size
	case fs.ModeDir:
		st.Kind = Folder
	case fs.ModeSymlink:
		target, err := k.opts.Root.Readlink(root.Path{Rel: rel, Exists: true, Mode: mode})
		if err != nil {
			return st, err
		}
		if !utf8.ValidString(target) {
			return st, errors.New("it is a link whose target is not UTF-8, which cannot be saved")
		}
		st.Kind, st.Mode, st.Target = Link, 0, target // links have no permissions of their own
	default:
		return st, errors.New("it is neither a file nor a folder nor a link, and cannot be saved")
	}
	return st, nil
}

// beneath calls visit with everything that lies beneath a folder.
func (k *Keeper) beneath(ctx context.Context, rel string, visit func(rel string, st State) error) error {
	return k.opts.Root.Walk(ctx, rel, root.WalkOptions{Stat: true, All: true, Limit: maxEntries}, func(e root.Entry) error {
		if e.Err != nil {
			return fmt.Errorf("%s: %w", e.Rel, e.Err)
		}
		if _, err := k.opts.Root.At(e.Rel, root.ToList); err != nil {
			if root.CodeOf(err) == root.Blocked && e.Mode.IsRegular() && strings.HasPrefix(e.Name, ".helve-tmp-") {
				return nil // left behind by a write that was cut short
			}
			return fmt.Errorf("%s cannot be saved: %w", e.Rel, err)
		}
		st, err := k.stateOf(e.Rel, e.Mode, e.Size, e.Stamp)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Rel, err)
		}
		return visit(e.Rel, st)
	})
}

// limits refuses what is too large, or leaves it out if the app has chosen so.
func (s *saver) limits() error {
	l, total := s.keeper.opts.Limits, int64(0)
	for i := range s.files {
		f := &s.files[i]
		if f.Before.Kind != Regular {
			continue
		}
		why := ""
		switch {
		case f.Before.Size > l.MaxFile:
			why = fmt.Sprintf("%s has %d bytes, and files of more than %d are not saved", f.Path, f.Before.Size, l.MaxFile)
		case total+f.Before.Size > l.MaxCall:
			why = fmt.Sprintf("the files that it may change have more than %d bytes, the most that is saved for one call", l.MaxCall)
		}
		if why == "" {
			total += f.Before.Size
			continue
		}
		if !l.RunUnsaved {
			return &LimitError{why}
		}
		f.Before.Kind, f.Before.Digest = Unsaved, ""
		s.note(why + ": it cannot be restored")
	}
	return nil
}

func (s *saver) note(text string) {
	const most = 5
	if len(s.notes) < most && !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// atOnce is how many contents are saved at the same time: what takes long is
// to wait for the disk.
const atOnce = 8

// contents saves the content of every file whose digest is not known.
func (s *saver) contents() error {
	b := &batch{depot: &s.keeper.depot}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	places := make(chan struct{}, atOnce)
	for i := range s.files {
		f := &s.files[i]
		if f.Before.Kind != Regular || f.Before.Digest != "" {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if err := s.ctx.Err(); err != nil {
				return
			}
			err := s.content(b, f)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && s.lenient && unreadable(err) {
				f.Before.Kind, f.Before.Digest = Unsaved, ""
				s.note(fmt.Sprintf("%s cannot be read and was not saved", f.Path))
				err = nil
			}
			first = cmp.Or(first, err)
		})
	}
	wg.Wait()
	if first == nil {
		first = s.ctx.Err()
	}
	if first != nil {
		return first
	}
	return b.sync()
}

func unreadable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || root.CodeOf(err) != 0
}

func (s *saver) content(b *batch, f *File) error {
	file, err := s.keeper.opts.Root.Open(root.Path{Rel: f.Path, Exists: true})
	if err != nil {
		return fmt.Errorf("%s cannot be saved: %w", f.Path, err)
	}
	defer file.Close()
	digest, size, err := b.add(contextReader{s.ctx, file}, s.keeper.opts.Limits.MaxFile)
	if err != nil {
		return fmt.Errorf("%s cannot be saved: %w", f.Path, err)
	}
	f.Before.Digest, f.Before.Size = digest, size
	return nil
}

// A contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// settling is how long Done works at most, whatever became of the call.
const settling = 60 * time.Second

// Done notes what became of the targets, and lets other calls change them. A
// call that changed nothing leaves no checkpoint. It must be called once, when
// the call has ended; p may be nil.
func (p *Pending) Done(ctx context.Context) {
	if p == nil {
		return
	}
	k := p.keeper
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	k.mu.Lock()
	delete(k.pending, p.head.Call)
	p.head.Undoes = p.undoes
	k.mu.Unlock()
	changed, err := p.settle(ctx)
	p.release()
	if err == nil {
		p.head.Open = false
		p.head.count(changed)
		err = k.update(ctx, p.head, changed)
	}
	if err != nil {
		k.opts.Log.Warn("what a call changed could not be noted; its checkpoint is kept as one that was cut short", "checkpoint", p.head.ID, "error", err)
	}
	k.pruneSometimes()
}

// settle returns the files that the call changed, with what they are now.
func (p *Pending) settle(ctx context.Context) ([]File, error) {
	s := &settler{keeper: p.keeper, began: p.began, known: map[root.Stamp]State{}}
	seen := map[string]bool{}
	for _, f := range p.files {
		seen[f.Path] = true
		if f.Before.Kind == Regular {
			s.known[moved(f.Before.stamp)] = f.Before
		}
	}
	var changed []File
	var grown []string // folders where there were none: all that lies beneath is new
	for _, f := range p.files {
		now, err := p.keeper.look(f.Path)
		if err == nil {
			now, err = s.digest(ctx, f.Path, now, f.Before)
		}
		if err != nil {
			return nil, err
		}
		if now.Same(f.Before) && f.Before.Kind != Unsaved || f.Before.Kind == Unsaved && now.stamp == f.Before.stamp {
			continue
		}
		changed = append(changed, File{f.Path, f.Before, &now})
		if now.Kind == Folder && f.Before.Kind != Folder && slices.ContainsFunc(p.targets, func(t Target) bool { return t.Path == f.Path }) {
			grown = append(grown, f.Path)
		}
	}
	for _, t := range p.targets { // what was made in a tree
		if t.Tree && !slices.Contains(grown, t.Path) {
			grown = append(grown, t.Path)
		}
	}
	for _, dir := range grown {
		more, err := s.grown(ctx, dir, seen)
		if err != nil {
			return nil, err
		}
		changed = append(changed, more...)
	}
	return changed, nil
}

// settler finds out what files are now.
type settler struct {
	keeper *Keeper
	began  time.Time            // when the states before were looked at
	known  map[root.Stamp]State // by what moving a file leaves as it was
}

func moved(s root.Stamp) root.Stamp { return root.Stamp{Inode: s.Inode, Modified: s.Modified} }

// digest fills in the digest of a file, which is read only if it may have changed.
func (s *settler) digest(ctx context.Context, rel string, now, before State) (State, error) {
	if now.Kind != Regular {
		return now, nil
	}
	if before.Kind == Regular && now.stamp == before.stamp && now.Size == before.Size && !recent(now.stamp, s.began) {
		now.Digest = before.Digest
		return now, nil
	}
	if old, ok := s.known[moved(now.stamp)]; ok && old.Size == now.Size && old.stamp.Inode != 0 && !recent(moved(now.stamp), s.began) {
		now.Digest = old.Digest
		return now, nil
	}
	var err error
	now.Digest, now.Size, err = s.keeper.sum(ctx, rel)
	return now, err
}

// recent reports whether a file's times were so fresh at that moment that a
// change after it might not have moved them: file systems count in steps of up
// to two seconds.
func recent(s root.Stamp, at time.Time) bool {
	return at.UnixNano()-max(s.Modified, s.Changed) < int64(2*time.Second)
}

// grown returns what lies beneath a folder and was not there before.
func (s *settler) grown(ctx context.Context, dir string, seen map[string]bool) (files []File, err error) {
	if st, err := s.keeper.look(dir); err != nil || st.Kind != Folder {
		return nil, err
	}
	err = s.keeper.beneath(ctx, dir, func(rel string, now State) (err error) {
		if seen[rel] {
			return nil
		}
		seen[rel] = true
		if now, err = s.digest(ctx, rel, now, State{}); err == nil {
			files = append(files, File{rel, State{Kind: Absent}, &now})
		}
		return err
	})
	return files, err
}

// sum returns the digest and size of a file.
func (k *Keeper) sum(ctx context.Context, rel string) (string, int64, error) {
	file, err := k.opts.Root.Open(root.Path{Rel: rel, Exists: true})
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	h := sha256.New()
	n, err := io.Copy(h, contextReader{ctx, file})
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// mark says which checkpoints the restore that is under way takes back.
func (k *Keeper) mark(call string, s *Span) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pending[call]; p != nil {
		p.undoes = s
	}
}
