package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/store"
)

// A Selection says what to restore.
type Selection struct {
	ID    int64
	Since bool   // everything that was changed by this call and all later ones; else by this call alone
	Path  string // one file, or what lies in a folder; "": all
	Force bool   // also what others have changed since
	Call  string // the call that restores, whose own checkpoint does not count; "": none does yet
}

// A Change is what a restore does to one path.
type Change struct {
	Path     string
	Now      State
	Then     State  // what it will be
	Conflict string // why it is not restored without Force; "": nothing speaks against it
	Skip     string // why it cannot be restored; "": it can
	Unsure   bool   // the call was cut short: whether others changed it since is not known
}

// A Plan is what a restore would do.
type Plan struct {
	Calls   []Checkpoint // what is taken back, the newest first
	Changes []Change     // in the order of the paths; paths that are as they were are left out
	Ignored int          // paths that may not be named now
	undoes  *Span
}

// Conflicts lists what others have changed since, with the reason.
func (p *Plan) Conflicts() (out []string) {
	for _, c := range p.Changes {
		if c.Conflict != "" {
			out = append(out, c.Conflict)
		}
	}
	return out
}

// Skipped lists what cannot be restored, with the reason.
func (p *Plan) Skipped() (out []string) {
	for _, c := range p.Changes {
		if c.Skip != "" {
			out = append(out, c.Path+": "+c.Skip)
		}
	}
	return out
}

// here refuses checkpoints whose contents lie elsewhere.
func (k *Keeper) here(ctx context.Context, c Checkpoint) error {
	if err := k.depot.open(ctx); err != nil {
		return err
	}
	if c.Node != k.depot.node {
		return fmt.Errorf("checkpoint %d was made with another state folder, on the machine %s: restore it there", c.ID, c.Host)
	}
	return nil
}

// step is a checkpoint and its files.
type step struct {
	Checkpoint
	files []File
}

// steps returns the checkpoints of the selection and their files, and those after it; in the order of their ids.
func (k *Keeper) steps(ctx context.Context, s Selection) (chosen []step, later []Checkpoint, err error) {
	if _, _, err := k.Get(ctx, s.ID); err != nil {
		return nil, nil, err
	}
	var all []Checkpoint
	err = k.opts.Store.View(ctx, func(r store.Reader) error {
		all = nil
		for _, c := range heads.All(r) {
			own := c.Open && s.Call != "" && c.Call == s.Call
			if c.ID >= s.ID && c.App == k.opts.App && c.Root == k.opts.Root.Dir() && !own {
				all = append(all, c)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	markUndone(all)
	for i, c := range all {
		if c.ID != s.ID && !s.Since {
			return chosen, all[i:], nil
		}
		if err := k.here(ctx, c); err != nil {
			return nil, nil, err
		}
		files, err := k.filesOf(ctx, c)
		if errors.Is(err, ErrNone) && c.ID != s.ID {
			continue // it has just turned out to have changed nothing
		}
		if err != nil {
			return nil, nil, err
		}
		chosen = append(chosen, step{c, files})
	}
	return chosen, nil, nil
}

// changedBy names the last of the checkpoints whose call changed a path; 0: none did.
func (k *Keeper) changedBy(ctx context.Context, later []Checkpoint, rel string) (id int64, tool string) {
	for _, c := range slices.Backward(later) {
		if c.Undone || c.Manifest != "" {
			continue
		}
		files, err := k.filesOf(ctx, c)
		if err == nil && slices.ContainsFunc(files, func(f File) bool { return f.Path == rel }) {
			return c.ID, c.Tool
		}
	}
	return 0, ""
}

// Plan works out what a restore would do, without doing it.
func (k *Keeper) Plan(ctx context.Context, s Selection) (*Plan, error) {
	chosen, later, err := k.steps(ctx, s)
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	tracks := map[string]*track{}
	for _, st := range chosen {
		if s.Path == "" {
			p.Calls = append(p.Calls, st.Checkpoint)
		}
		for _, f := range st.files {
			if !within(f.Path, s.Path) {
				continue
			}
			if tracks[f.Path] == nil {
				tracks[f.Path] = &track{then: f.Before}
			}
			tracks[f.Path].follow(st.Checkpoint, f)
		}
	}
	if len(tracks) == 0 && s.Path != "" {
		return nil, fmt.Errorf("checkpoint %d: %w of %s: helve checkpoints show %d lists its files", s.ID, ErrNone, s.Path, s.ID)
	}
	slices.Reverse(p.Calls)
	if s.Path == "" && len(chosen) > 0 {
		p.undoes = &Span{s.ID, chosen[len(chosen)-1].ID}
	}
	for path, t := range tracks {
		c, err := k.change(ctx, path, t, later)
		if err != nil {
			return nil, err
		}
		switch {
		case c == nil:
		case !k.opts.Root.Visible(path, c.Now.Kind == Folder):
			p.Ignored++
		default:
			if s.Force {
				c.Conflict = ""
			}
			p.Changes = append(p.Changes, *c)
		}
	}
	slices.SortFunc(p.Changes, func(a, b Change) int { return compareText(a.Path, b.Path) })
	return p, nil
}

// A track follows one path through the calls that changed it.
type track struct {
	then   State
	last   *State // after the last of them; nil: not known
	by     int64  // the last of them
	broken string // others changed it in between
	unsure bool
}

func (t *track) follow(c Checkpoint, f File) {
	// Two calls that are made at one time may both find a folder missing.
	together := t.last != nil && t.last.Kind == Folder && f.Before.Kind == Absent && (f.After == nil || f.After.Kind == Folder)
	if t.last != nil && !t.last.Same(f.Before) && f.Before.Kind != Unsaved && !together {
		t.broken = fmt.Sprintf("%s was changed by others between the calls %d and %d", f.Path, t.by, c.ID)
	}
	t.last, t.by, t.unsure = f.After, c.ID, f.After == nil
}

// change returns what is to be done to a path; nil for nothing.
func (k *Keeper) change(ctx context.Context, rel string, t *track, later []Checkpoint) (*Change, error) {
	now, err := k.look(rel)
	if err == nil && now.Kind == Regular {
		now.Digest, now.Size, err = k.sum(ctx, rel)
	}
	c := &Change{Path: rel, Now: now, Then: t.then, Unsure: t.unsure}
	switch {
	case err != nil:
		c.Skip = err.Error()
		return c, nil
	case now.Same(t.then):
		return nil, nil
	case t.then.Kind == Unsaved && t.last != nil && now.Same(*t.last):
		c.Skip = "what it was before was not saved, because it was too large"
		return c, nil
	case t.then.Kind == Unsaved:
		c.Skip = "what it was before was not saved"
		return c, nil
	}
	if c.Skip = k.forbidden(rel, now, t.then); c.Skip != "" {
		return c, nil
	}
	c.Conflict = t.broken
	if t.last != nil && !now.Same(*t.last) {
		c.Conflict = rel + " was changed by others since"
		if id, tool := k.changedBy(ctx, later, rel); id != 0 {
			c.Conflict = fmt.Sprintf("%s was changed since by the call of checkpoint %d (%s)", rel, id, tool)
		}
	}
	return c, nil
}

// forbidden says why the rules do not let a path be restored; "" if they do.
func (k *Keeper) forbidden(rel string, now, then State) string {
	access := root.ToWrite
	if then.Kind == Absent || now.Kind != Absent && now.Kind != then.Kind {
		access = root.ToDelete
	}
	_, err := k.opts.Root.At(rel, access)
	var e *root.Error
	switch {
	case err != nil && now.Kind == Absent && k.beneathLink(rel):
		return "" // the place is judged when the folder is there again
	case errors.As(err, &e):
		return e.Reason
	case err != nil:
		return err.Error()
	}
	return ""
}

// Touches returns the places that a restore may change.
func (p *Plan) Touches() (out []Target) {
	for _, c := range p.Changes {
		if c.Conflict == "" && c.Skip == "" {
			out = append(out, Target{Path: c.Path, Tree: c.Now.Kind == Folder && c.Then.Kind != Folder})
		}
	}
	return out
}

// Restored tells what a restore did.
type Restored struct {
	Restored []string // the paths
	Failed   []string // with the reason
	Kept     []string // folders that stay because they hold other things
}

// Restore does what a plan says, but for what it skips or what conflicts. The
// call is the one that restores, whose checkpoint notes what was taken back.
func (k *Keeper) Restore(ctx context.Context, call string, p *Plan) (*Restored, error) {
	if err := k.depot.open(ctx); err != nil {
		return nil, err
	}
	unlock, err := k.depot.lock(ctx, true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var todo []Change
	for _, c := range p.Changes {
		if c.Conflict == "" && c.Skip == "" {
			todo = append(todo, c)
		}
	}
	if len(todo) == len(p.Changes) && p.Ignored == 0 {
		k.mark(call, p.undoes)
	}
	r := &restorer{keeper: k, ctx: ctx, failed: map[string]bool{}}
	for _, c := range slices.Backward(todo) { // what lies in a folder comes before the folder
		if c.Now.Kind != Absent && c.Then.Kind != c.Now.Kind {
			r.try(c.Path, func() error { return r.remove(c) })
		}
	}
	for _, c := range todo {
		if c.Then.Kind != Absent && !r.failed[c.Path] {
			r.try(c.Path, func() error { return r.make(c) })
		}
	}
	for _, c := range slices.Backward(todo) {
		if c.Then.Kind == Folder && !r.failed[c.Path] {
			r.try(c.Path, func() error { return r.chmod(c, c.Then.Mode) })
		}
	}
	for _, c := range todo {
		if !r.failed[c.Path] && !slices.Contains(r.out.Kept, c.Path) {
			r.out.Restored = append(r.out.Restored, c.Path)
		}
	}
	return &r.out, ctx.Err()
}

type restorer struct {
	keeper *Keeper
	ctx    context.Context
	out    Restored
	failed map[string]bool
}

func (r *restorer) try(rel string, do func() error) {
	err := r.ctx.Err()
	if err == nil {
		err = do()
	}
	if err != nil {
		r.failed[rel] = true
		r.out.Failed = append(r.out.Failed, fmt.Sprintf("%s: %v", rel, plain(err)))
	}
}

// plain leaves the machine's own paths out of an error.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// remove takes away what stands there now. A folder stays if it holds anything.
func (r *restorer) remove(c Change) error {
	files := r.keeper.opts.Root
	p, err := files.At(c.Path, root.ToDelete)
	if err != nil || !p.Exists {
		return err
	}
	if p.Mode.IsDir() {
		errStop := errors.New("it holds other things")
		err := r.keeper.beneath(r.ctx, c.Path, func(string, State) error { return errStop })
		switch {
		case errors.Is(err, errStop) && c.Then.Kind == Absent:
			r.out.Kept = append(r.out.Kept, c.Path)
			return nil
		case err != nil:
			return err
		}
		return files.RemoveAll(p) // with what a write that was cut short left behind
	}
	return files.Remove(p)
}

// make puts back what stood there.
func (r *restorer) make(c Change) error {
	files := r.keeper.opts.Root
	if dir := path.Dir(c.Path); dir != "." {
		above, err := files.At(dir, root.ToWrite)
		if err == nil && !above.Exists {
			err = files.Mkdir(above, 0o755)
		}
		if err != nil {
			return err
		}
	}
	p, err := files.At(c.Path, root.ToWrite)
	if err != nil {
		return err
	}
	switch c.Then.Kind {
	case Folder:
		if !p.Exists {
			if err := files.Mkdir(p, 0o700); err != nil {
				return err
			}
		}
		return r.chmod(c, c.Then.Mode|0o700)
	case Link:
		if p.Exists {
			if err := files.Remove(p); err != nil {
				return err
			}
			p.Exists, p.Mode = false, 0
		}
		return files.Symlink(p, c.Then.Target)
	}
	b, err := r.keeper.depot.get(c.Then.Digest)
	if err != nil {
		return err
	}
	defer b.Close()
	return files.Put(p, contextReader{r.ctx, b}, c.Then.Mode)
}

func (r *restorer) chmod(c Change, mode fs.FileMode) error {
	p, err := r.keeper.opts.Root.At(c.Path, root.ToWrite)
	if err != nil || p.Mode&modeBits == mode {
		return err
	}
	return r.keeper.opts.Root.Chmod(p, mode)
}

// Last returns the id of the nth newest call that changed files and was not
// taken back; restores that took others back do not count. It is 0 when there
// are fewer, with how many there are.
func (k *Keeper) Last(ctx context.Context, n int) (id int64, found int, err error) {
	all, err := k.List(ctx, Filter{})
	if err != nil {
		return 0, 0, err
	}
	for _, c := range all { // the newest first
		if c.Undone || c.Undoes != nil {
			continue
		}
		if found++; found == n {
			return c.ID, found, nil
		}
	}
	return 0, found, nil
}

// compareText orders paths so that a folder comes before what lies in it.
func compareText(a, b string) int { return strings.Compare(a, b) }
