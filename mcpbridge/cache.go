package mcpbridge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

const (
	manifestBucket = "manifests" // a record for each server, by its name
	recordFormat   = 1
	maxRecord      = 64 << 20         // bytes that every store can keep
	storeTimeout   = 10 * time.Second // to read all records, or write one
)

// A record is what a server listed, as the store keeps it: this as a line of
// JSON, and after it the tools as they came, one after the other, and the
// entries of the other lists.
type record struct {
	Format   int        `json:"format"`
	Identity string     `json:"identity"` // of the configuration
	Server   string     `json:"server"`   // what it calls itself
	Version  string     `json:"version"`
	Protocol string     `json:"protocol"`
	Offers   []string   `json:"offers"` // of resources, prompts and skills, what it says that it has
	Listed   time.Time  `json:"listed"`
	Checked  string     `json:"checked"`         // the version of Helve that looked which tools can be used
	Unfit    []int      `json:"unfit"`           // those that cannot
	Sum      uint32     `json:"sum"`             // CRC-32C of all that follows
	Sizes    []int      `json:"sizes"`           // bytes of each tool
	Lists    []keptList `json:"lists,omitempty"` // of resources, templates, prompts and skills, those that were read

	tools []json.RawMessage
}

// A keptList is a list of other things than tools.
type keptList struct {
	Key   string `json:"key"`
	Sizes []int  `json:"sizes"` // bytes of each entry

	raws []json.RawMessage
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns r as the store keeps it.
func (r *record) encode() ([]byte, error) {
	all := rawBytes(r.tools)
	head := *r
	head.Format, head.Sizes, head.Lists = recordFormat, sizesOf(r.tools), slices.Clone(r.Lists)
	for i, l := range r.Lists {
		head.Lists[i].Sizes = sizesOf(l.raws)
		all = append(all, rawBytes(l.raws)...)
	}
	body := bytes.Join(all, nil)
	head.Sum = crc32.Checksum(body, castagnoli)
	line, err := tool.Encode(head)
	if err != nil {
		return nil, err
	}
	data := slices.Concat(line, []byte("\n"), body)
	if len(data) > maxRecord {
		return nil, fmt.Errorf("the list has %d bytes, of which the store keeps %d at most", len(data), maxRecord)
	}
	return data, nil
}

func sizesOf(raws []json.RawMessage) []int {
	sizes := make([]int, len(raws))
	for i, raw := range raws {
		sizes[i] = len(raw)
	}
	return sizes
}

func rawBytes(raws []json.RawMessage) [][]byte {
	out := make([][]byte, len(raws))
	for i, raw := range raws {
		out[i] = raw
	}
	return out
}

// decodeRecord reads what encode wrote, of which nothing may have changed. It
// keeps data.
func decodeRecord(data []byte) (*record, error) {
	line, body, _ := bytes.Cut(data, []byte("\n"))
	r := &record{}
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("its first line cannot be read: %w", err)
	}
	switch {
	case r.Format != recordFormat:
		return nil, fmt.Errorf("it is of format %d, not %d", r.Format, recordFormat)
	case crc32.Checksum(body, castagnoli) != r.Sum:
		return nil, errors.New("the tools are not those that were written")
	}
	var ok bool
	if r.tools, body, ok = split(body, r.Sizes); !ok {
		return nil, errSizes
	}
	for i := range r.Lists {
		l := &r.Lists[i]
		if l.raws, body, ok = split(body, l.Sizes); !ok {
			return nil, errSizes
		}
	}
	if len(body) > 0 {
		return nil, errSizes
	}
	return r, nil
}

var errSizes = errors.New("the sizes of the tools are not those that were written")

// split takes parts of these sizes from data, which are not copied.
func split(data []byte, sizes []int) (parts []json.RawMessage, rest []byte, ok bool) {
	parts = make([]json.RawMessage, len(sizes))
	for i, n := range sizes {
		if n < 0 || n > len(data) {
			return nil, nil, false
		}
		parts[i], data = data[:n:n], data[n:]
	}
	return parts, data, true
}

// fit returns which tools this version knows to be usable; nil: it knows of none.
func (r *record) fit(version string) []bool {
	if r.Checked == "" || r.Checked != version {
		return nil
	}
	fit := slices.Repeat([]bool{true}, len(r.tools))
	for _, i := range r.Unfit {
		if i >= 0 && i < len(fit) {
			fit[i] = false
		}
	}
	return fit
}

// same reports whether two records tell the same, if not of the same time.
func (r *record) same(other *record) bool {
	return r.Identity == other.Identity && r.Checked == other.Checked && r.Server == other.Server && r.Version == other.Version && r.Protocol == other.Protocol && slices.Equal(r.Offers, other.Offers) &&
		slices.EqualFunc(r.tools, other.tools, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// identity returns a digest of what the server is, by its configuration. What
// may be secret, the values of variables and headers, is not in it.
func (s *upstream) identity() string {
	var args []string
	for _, arg := range s.Args {
		args = append(args, hide(arg, s.Hidden))
	}
	what := []any{"stdio", s.Command, args, orElse(s.Cwd, s.o.Root), slices.Sorted(maps.Keys(s.Env))}
	if s.URL != "" {
		what = []any{"http", hide(s.URL, s.Hidden), slices.Sorted(maps.Keys(s.Headers))}
	}
	data, _ := json.Marshal(what) // of strings
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// recall offers the tools of all servers that the store knows from earlier.
func recall(ctx context.Context, o UpstreamOptions, servers []*upstream) {
	if o.Store == nil || len(servers) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var kept, pinned, mute [][]byte
	err := o.Store.View(ctx, func(r store.Reader) error {
		kept, pinned, mute = make([][]byte, len(servers)), make([][]byte, len(servers)), make([][]byte, len(servers))
		for i, s := range servers {
			for bucket, to := range map[string]*[]byte{manifestBucket: &kept[i], pinBucket: &pinned[i], muteBucket: &mute[i]} {
				data, err := r.Get(bucket, s.Name)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
				*to = data
			}
		}
		return nil
	})
	if err != nil {
		o.Log.Warn("what MCP servers listed earlier cannot be read; they are started to be asked", "error", err)
		return
	}
	for i, s := range servers {
		s.mute.Store(mute[i] != nil && (string(mute[i]) == s.identity() || s.Partial))
	}
	made := make([]func(), len(servers))
	together(len(servers), func(i int) {
		if kept[i] != nil {
			made[i] = servers[i].recall(ctx, kept[i], pinned[i])
		}
	})
	// They are offered in quick succession, so that who indexes them need not
	// do so one server at a time.
	together(len(servers), func(i int) {
		if made[i] != nil {
			made[i]()
		}
	})
}

// together calls do for all numbers below n at once, and waits.
func together(n int, do func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// recall makes tools of what the server listed earlier, those that are as they
// were accepted, and returns a function that offers them; nil: it must be asked.
func (s *upstream) recall(ctx context.Context, data, pinned []byte) (offer func()) {
	r, err := decodeRecord(data)
	if err != nil {
		s.forget(err)
		return nil
	}
	if r.Identity != s.identity() && !s.Partial {
		s.log.Debug("the MCP server was configured otherwise when it was listed; it is started to be asked")
		return nil
	}
	checked := r.Checked
	m := s.manifest(r, nil)
	if p, err := decodePins(pinned); err == nil && p.matches(m) {
		m.release(s, p)
	} else if err := s.judge(ctx, m, false); err != nil {
		s.forget(err)
		return nil
	}
	if len(m.held) > 0 {
		return nil // it is asked whether it has mended its ways
	}
	s.recallLists(r)
	return func() {
		if err := s.adopt(m); err != nil {
			s.forget(err)
			return
		}
		if checked != r.Checked {
			s.save(r)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.enter(Known, nil)
		s.settle()
	}
}

func (s *upstream) forget(err error) {
	s.log.Warn("what the MCP server listed earlier cannot be used; it is started to be asked", "error", err)
}

// lacks reports whether it is known that the server has no such things, so
// that it need not be started to be asked.
func (s *upstream) lacks(k *kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link == nil && s.declared != nil && !slices.Contains(s.declared, k.capability())
}

// offersOf returns what of resources, prompts and skills a server says that it has.
func offersOf(caps *mcp.ServerCapabilities) []string {
	offers := []string{}
	for _, k := range []*kind{resources, prompts, skills} {
		if has, _ := k.of(caps); has {
			offers = append(offers, k.capability())
		}
	}
	if readsDirectories(caps) {
		offers = append(offers, directoriesToo)
	}
	return offers
}

// capability is what servers call such things when they say what they have.
func (k *kind) capability() string {
	switch k {
	case prompts:
		return "prompts"
	case skills:
		return "skills"
	}
	return "resources"
}

// save has the store keep a record, in the background.
func (s *upstream) save(r *record) {
	if s.o.Store == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := *r // which others go on reading
	kept.Lists = s.lists
	s.unsaved = &kept
	if !s.saving {
		s.saving = true
		s.running.Go(s.saveAll)
	}
}

// saveAll writes until nothing new is to be kept.
func (s *upstream) saveAll() {
	for {
		s.mu.Lock()
		r := s.unsaved
		s.unsaved = nil
		s.saving = r != nil
		s.mu.Unlock()
		if r == nil {
			return
		}
		if err := s.write(r); err != nil {
			s.log.Warn("the store does not keep what the MCP server listed", "error", err)
		}
	}
}

func (s *upstream) write(r *record) error {
	data, err := r.encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	return s.o.Store.Update(ctx, func(w store.Writer) error { return w.Put(manifestBucket, s.Name, data) })
}
