// Package checkpoint keeps what files were before calls changed them, and puts it back.
//
// A [Keeper] saves the state of the files that a call may touch, in [Keeper.Begin], before the call runs; the state is
// on disk when Begin returns. [Pending.Done] notes afterwards what became of them, so that a restore can tell whether
// anyone else has changed them since. Contents are kept by their SHA-256, each once and compressed, in files; what
// belongs to which call is kept in the store, so that several processes share it.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// Limits bound what is saved and kept. A zero field stands for that of [Defaults].
type Limits struct {
	MaxFile     int64         // bytes of one file
	MaxCall     int64         // bytes of all files that one call may touch
	MaxSnapshot int64         // bytes of the files that are saved around a command
	MaxTotal    int64         // bytes on disk, beyond which the oldest checkpoints are dropped
	MaxAge      time.Duration // after which a checkpoint is dropped
	Skip        []string      // names of folders that are left out of what is saved around a command

	// RunUnsaved lets a call run whose files are beyond MaxFile or MaxCall; what
	// they were is then lost. Otherwise such a call is refused.
	RunUnsaved bool
}

// Defaults are the limits that hold where none are stated.
var Defaults = Limits{
	MaxFile: 256 << 20, MaxCall: 1 << 30, MaxSnapshot: 256 << 20, MaxTotal: 5 << 30, MaxAge: 30 * 24 * time.Hour,
	Skip: []string{"node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".next", ".cache"},
}

func (l Limits) orDefaults() Limits {
	for _, f := range []struct {
		v *int64
		d int64
	}{{&l.MaxFile, Defaults.MaxFile}, {&l.MaxCall, Defaults.MaxCall}, {&l.MaxSnapshot, Defaults.MaxSnapshot}, {&l.MaxTotal, Defaults.MaxTotal}} {
		if *f.v == 0 {
			*f.v = f.d
		}
	}
	if l.MaxAge == 0 {
		l.MaxAge = Defaults.MaxAge
	}
	if l.Skip == nil {
		l.Skip = Defaults.Skip
	}
	return l
}

// Options are what a Keeper works with.
type Options struct {
	Dir       string      // the folder of the contents; it is made when it is first needed
	Store     store.Store // the index
	Root      *root.Root
	App       string
	Limits    Limits
	Temporary bool // the store ends with the process, and so do the contents
	Log       *slog.Logger
	Now       func() time.Time // nil: time.Now

	Redact func(detail string) string // takes secrets out of what is told of a call; nil: nothing is taken out
}

// A Keeper makes, lists and restores the checkpoints of one app in one root. It
// is safe for concurrent use.
type Keeper struct {
	opts  Options
	depot depot
	holds holds

	mu      sync.Mutex
	pending map[string]*Pending // by id of the call
	pruning sync.WaitGroup
	stop    context.Context // ends with the keeper
	cancel  context.CancelFunc
}

// New returns a Keeper. It touches nothing until it is used.
func New(o Options) *Keeper {
	o.Limits = o.Limits.orDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keeper{opts: o, pending: map[string]*Pending{}}
	k.stop, k.cancel = context.WithCancel(context.Background())
	k.depot.base, k.depot.store = o.Dir, o.Store
	k.holds.news = make(chan struct{})
	return k
}

// Close ends what works in the background.
func (k *Keeper) Close() error {
	k.mu.Lock()
	k.cancel()
	k.mu.Unlock()
	k.pruning.Wait()
	if k.opts.Temporary {
		return k.depot.remove()
	}
	return nil
}

// A Kind is what stands at a path.
type Kind string

// The kinds. Unsaved is a file that was there and could not be saved.
const (
	Absent  Kind = "absent"
	Regular Kind = "file"
	Folder  Kind = "folder"
	Link    Kind = "link"
	Unsaved Kind = "unsaved"
)

// A State is what stands at a path at one moment.
type State struct {
	Kind   Kind        `json:"kind"`
	Mode   fs.FileMode `json:"mode,omitempty"` // permissions, setuid, setgid and sticky bits
	Size   int64       `json:"size,omitempty"`
	Digest string      `json:"sha256,omitempty"` // of a file, in hexadecimal
	Target string      `json:"target,omitempty"` // of a link, as it is written

	stamp root.Stamp
}

// Same reports whether two states are the same in all that is restored.
func (s State) Same(t State) bool {
	s.stamp, t.stamp = root.Stamp{}, root.Stamp{}
	if s.Kind == Folder {
		s.Size, t.Size = 0, 0
	}
	return s == t
}

// String says what stands there in a few words.
func (s State) String() string {
	switch s.Kind {
	case Regular:
		return fmt.Sprintf("a file of %d bytes, mode %04o", s.Size, s.Mode.Perm())
	case Folder:
		return fmt.Sprintf("a folder, mode %04o", s.Mode.Perm())
	case Link:
		return "a link to " + s.Target
	case Unsaved:
		return fmt.Sprintf("a file of %d bytes that was not saved", s.Size)
	}
	return "nothing"
}

// A File is what one call did to one path.
type File struct {
	Path   string `json:"path"`
	Before State  `json:"before"`
	After  *State `json:"after,omitempty"` // nil: not known, because the call was cut short
}

// A Span is the checkpoints that a restore took back: First to Last.
type Span struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// A Checkpoint is what is on record of one call that may have changed files.
type Checkpoint struct {
	ID      int64     `json:"id"` // rising in the order of the calls
	Time    time.Time `json:"time"`
	App     string    `json:"app"`
	Root    string    `json:"root"`
	Node    string    `json:"node"` // names the folder of the contents
	Host    string    `json:"host"` // the machine on which that is
	Tool    string    `json:"tool"`
	Call    string    `json:"call"`
	Task    string    `json:"task,omitempty"` // the call on whose behalf it was made
	Session string    `json:"session,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	User    string    `json:"user,omitempty"`
	Detail  string    `json:"detail,omitempty"` // such as the command
	Open    bool      `json:"open,omitempty"`   // the call is under way, or was cut short
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Paths   []string  `json:"paths"`            // the first few
	Undoes  *Span     `json:"undoes,omitempty"` // of a restore
	Undone  bool      `json:"undone,omitempty"` // it was taken back; not kept but worked out

	Manifest string `json:"manifest,omitempty"` // of a command under way: the digest of the list of all files
}

// maxPaths is how many paths a Checkpoint names itself.
const maxPaths = 5

var (
	heads = store.Bucket[Checkpoint]("heads")
	lists = store.Bucket[[]File]("files")
	meta  = store.Bucket[string]("meta")
	next  = store.Bucket[int64]("next")
)

func keyOf(id int64) string { return fmt.Sprintf("%016d", id) }

// ErrNone is wrapped by the error about a checkpoint that does not exist.
var ErrNone = errors.New("there is no such checkpoint")

// A LimitError says that what a call may touch is more than may be saved.
type LimitError struct{ Message string }

func (e *LimitError) Error() string { return e.Message }

// headOf returns what is known of a call before it runs.
func (k *Keeper) headOf(c *tool.Call, now time.Time) Checkpoint {
	name := c.Name
	if c.Tool != nil {
		name = c.Tool.Name
	}
	return Checkpoint{
		Time: now.UTC(), App: k.opts.App, Root: k.opts.Root.Dir(), Node: k.depot.node, Host: hostName(),
		Tool: name, Call: c.ID, Task: c.From.Parent, Session: c.From.Session, Agent: c.From.Agent, User: c.From.User, Open: true,
	}
}

// count fills in what a checkpoint tells of its files.
func (c *Checkpoint) count(files []File) {
	c.Files, c.Bytes, c.Paths = len(files), 0, nil
	for i := range files {
		c.Bytes += files[i].Before.Size
		if len(c.Paths) < maxPaths {
			c.Paths = append(c.Paths, files[i].Path)
		}
	}
}

// insert puts a new checkpoint on record and gives it its id.
func (k *Keeper) insert(ctx context.Context, c *Checkpoint, files []File) error {
	c.count(files)
	err := k.opts.Store.Update(ctx, func(w store.Writer) error {
		id, err := next.Get(w, "id")
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		c.ID = id + 1
		if err := next.Put(w, "id", c.ID); err != nil {
			return err
		}
		return put(w, *c, files)
	})
	if err != nil {
		return fmt.Errorf("the checkpoint cannot be put on record: %w", err)
	}
	return nil
}

func put(w store.Writer, c Checkpoint, files []File) error {
	if err := heads.Put(w, keyOf(c.ID), c); err != nil {
		return err
	}
	return lists.Put(w, keyOf(c.ID), files)
}

// update replaces what is on record of a checkpoint; without files it is dropped. One that was pruned stays away.
func (k *Keeper) update(ctx context.Context, c Checkpoint, files []File) error {
	return k.opts.Store.Update(ctx, func(w store.Writer) error {
		_, err := heads.Get(w, keyOf(c.ID))
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil
		case err != nil:
			return err
		case len(files) > 0:
			return put(w, c, files)
		}
		if err := heads.Delete(w, keyOf(c.ID)); err != nil {
			return err
		}
		return lists.Delete(w, keyOf(c.ID))
	})
}

// A Filter chooses checkpoints. Its zero value chooses all.
type Filter struct {
	Session, Tool string    // exactly; "": any
	Path          string    // the file itself, or a folder above it; "": any
	Since         time.Time // not before
	Limit         int       // the newest so many; 0: all
}

// List returns the checkpoints of the app in its root, the newest first. What
// is ignored now is not named in them.
func (k *Keeper) List(ctx context.Context, f Filter) ([]Checkpoint, error) {
	var all []Checkpoint
	err := k.opts.Store.View(ctx, func(r store.Reader) error {
		all = nil
		for _, c := range heads.All(r) {
			if c.App == k.opts.App && c.Root == k.opts.Root.Dir() {
				all = append(all, c)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	markUndone(all)
	out := all[:0:0]
	for i := len(all) - 1; i >= 0 && (f.Limit == 0 || len(out) < f.Limit); i-- {
		c := all[i]
		if f.Session != "" && c.Session != f.Session || f.Tool != "" && c.Tool != f.Tool || c.Time.Before(f.Since) {
			continue
		}
		if c.Paths, err = k.shown(ctx, c, f.Path); err != nil {
			return nil, err
		}
		if len(c.Paths) > 0 || f.Path == "" {
			out = append(out, c)
		}
	}
	return out, nil
}

// shown returns the first paths of a checkpoint that may be named and lie in under.
func (k *Keeper) shown(ctx context.Context, c Checkpoint, under string) ([]string, error) {
	paths := c.Paths
	if under != "" && c.Files > len(paths) {
		files, err := k.filesOf(ctx, c)
		if err != nil {
			return nil, err
		}
		paths = nil
		for _, f := range files {
			paths = append(paths, f.Path)
		}
	}
	out := []string{}
	for _, p := range paths {
		if within(p, under) && k.opts.Root.Visible(p, false) && len(out) < maxPaths {
			out = append(out, p)
		}
	}
	return out, nil
}

// within reports whether a path is dir or lies in it; "" and "." are the root.
func within(path, dir string) bool {
	return dir == "" || dir == "." || path == dir || strings.HasPrefix(path, dir+"/")
}

// markUndone works out which checkpoints were taken back by restores that were
// not taken back themselves. They are in the order of their ids.
func markUndone(all []Checkpoint) {
	for i := len(all) - 1; i >= 0; i-- {
		u := all[i].Undoes
		if u == nil || all[i].Undone {
			continue
		}
		for j := i - 1; j >= 0 && all[j].ID >= u.First; j-- {
			all[j].Undone = all[j].Undone || all[j].ID <= u.Last
		}
	}
}

// Get returns a checkpoint and its files, without those that are ignored now.
func (k *Keeper) Get(ctx context.Context, id int64) (Checkpoint, []File, error) {
	var c Checkpoint
	err := k.opts.Store.View(ctx, func(r store.Reader) (err error) {
		c, err = heads.Get(r, keyOf(id))
		return err
	})
	if errors.Is(err, store.ErrNotFound) || err == nil && (c.App != k.opts.App || c.Root != k.opts.Root.Dir()) {
		return c, nil, fmt.Errorf("checkpoint %d: %w in this app and root", id, ErrNone)
	}
	if err != nil {
		return c, nil, err
	}
	files, err := k.filesOf(ctx, c)
	if err != nil {
		return c, nil, err
	}
	shown := files[:0:0]
	for _, f := range files {
		if k.opts.Root.Visible(f.Path, f.Before.Kind == Folder) {
			shown = append(shown, f)
		}
	}
	return c, shown, nil
}

// filesOf returns all files of a checkpoint. For a command that was cut short
// they are found by comparing the list of all files with what stands there.
func (k *Keeper) filesOf(ctx context.Context, c Checkpoint) (files []File, err error) {
	if c.Manifest != "" {
		return k.interrupted(ctx, c)
	}
	err = k.opts.Store.View(ctx, func(r store.Reader) (err error) {
		files, err = lists.Get(r, keyOf(c.ID))
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("checkpoint %d: %w: it was pruned meanwhile", c.ID, ErrNone)
	}
	return files, err
}
