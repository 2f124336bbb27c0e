package search

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/helve-ai/helve/tool"
	"github.com/helve-ai/helve/vector"
)

// perBatch is how many tools are given vectors at once: few enough that the
// first are there soon.
const perBatch = 32

// want makes the tools of set those that have vectors, sooner or later.
func (m *meaning) want(set *tool.Set) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.wanted = set
	if m.settled == nil {
		m.settled = make(chan struct{})
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// A described tool is one and the text that says what it means.
type described struct {
	name, text string
	digest     [sha256.Size]byte
}

// run gives tools vectors until ctx ends.
func (m *meaning) run(ctx context.Context) {
	defer close(m.ended)
	held := map[string][sha256.Size]byte{} // the digest of what each tool's vector stands for
	rest := time.Duration(0)
	for {
		if !m.wait(ctx, rest) {
			return
		}
		m.mu.Lock()
		set := m.wanted
		m.mu.Unlock()
		if err := m.follow(ctx, set, held); err == nil {
			rest = 0
			m.settle(ctx, set)
		} else if ctx.Err() == nil {
			rest = min(max(2*rest, firstRest), longestRest)
			m.fail(err)
		}
	}
}

// wait waits until there is something to do: other tools, or, after a failure,
// until some time has passed. It returns false when ctx is done.
func (m *meaning) wait(ctx context.Context, rest time.Duration) bool {
	if rest == 0 {
		select {
		case <-ctx.Done():
			return false
		case <-m.wake:
			return true
		}
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// fail tells those who wait that the model failed.
func (m *meaning) fail(err error) {
	m.failed(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = err
	if m.settled != nil {
		close(m.settled)
		m.settled = make(chan struct{})
	}
}

// settle tells those who wait that all tools of set have vectors, if set is
// still what is wanted.
func (m *meaning) settle(ctx context.Context, set *tool.Set) {
	m.measure(set)
	m.mu.Lock()
	done := m.wanted == set && m.settled != nil
	if done {
		m.ready.Store(m.vectors.Load() != nil)
		close(m.settled)
		m.settled, m.broken = nil, nil
	}
	m.mu.Unlock()
	if done && m.Settled != nil {
		var texts []string
		for t := range set.All() {
			texts = append(texts, m.Document+describe(t))
		}
		m.Settled(ctx, texts)
	}
}

// follow gives the tools of set vectors, batch by batch, and takes them from
// others. It stops early where other tools are wanted.
func (m *meaning) follow(ctx context.Context, set *tool.Set, held map[string][sha256.Size]byte) error {
	missing, there := []described{}, map[string]bool{}
	for t := range set.All() {
		d := described{name: t.Name, text: m.Document + describe(t)}
		d.digest = sha256.Sum256([]byte(d.text))
		there[t.Name] = true
		if old, ok := held[t.Name]; !ok || old != d.digest {
			missing = append(missing, d)
		}
	}
	m.forget(held, there)
	for len(missing) > 0 && m.still(set) {
		n := min(perBatch, len(missing))
		if err := m.give(ctx, missing[:n]); err != nil {
			return err
		}
		for _, d := range missing[:n] {
			held[d.name] = d.digest
		}
		missing = missing[n:]
	}
	return nil
}

func (m *meaning) still(set *tool.Set) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wanted == set
}

// forget takes the vectors from tools that are not there.
func (m *meaning) forget(held map[string][sha256.Size]byte, there map[string]bool) {
	var gone []string
	for name := range held {
		if !there[name] {
			gone = append(gone, name)
			delete(held, name)
		}
	}
	if len(gone) > 0 {
		m.vectors.Load().Remove(gone...)
	}
}

// give gives tools vectors.
func (m *meaning) give(ctx context.Context, batch []described) error {
	texts := make([]string, len(batch))
	for i, d := range batch {
		texts[i] = d.text
	}
	out, err := ask(ctx, m.Embedder, texts)
	if err != nil {
		return err
	}
	m.worked()
	items := make([]vector.Item, len(batch))
	for i, d := range batch {
		items[i] = vector.Item{ID: d.name, Vector: out[i]}
	}
	vectors := m.vectors.Load()
	if vectors == nil {
		if n := len(out[0]); n < 1 || n > vector.MaxDims {
			return fmt.Errorf("a vector of %d components; there are from 1 to %d", n, vector.MaxDims)
		}
		vectors = vector.New(len(out[0]))
	}
	if err := vectors.Put(items...); err != nil {
		return err
	}
	m.vectors.Store(vectors)
	return nil
}

// maxSample bounds how many tools are compared with others to find the level.
const maxSample = 256

// measure finds how alike any two tools are: models differ in what they say of
// texts that have nothing in common.
func (m *meaning) measure(set *tool.Set) {
	vectors := m.vectors.Load()
	if vectors == nil {
		return
	}
	var sample [][]float32
	step, i := set.Len()/maxSample+1, 0
	for t := range set.All() {
		if v := vectors.Vector(t.Name); v != nil && i%step == 0 {
			sample = append(sample, v)
		}
		i++
	}
	sum, pairs := 0.0, 0
	for i := range sample {
		for _, ahead := range []int{1, 3, len(sample) / 2} {
			if j := (i + ahead) % len(sample); j != i {
				sum += vector.Dot(sample[i], sample[j])
				pairs++
			}
		}
	}
	if pairs > 0 {
		m.level.Store(math.Float64bits(min(max(sum/float64(pairs), 0), .95)))
	}
}

// maxDescription bounds, in bytes, what of a tool's description is given to a
// model: most read no more than 128 tokens.
const maxDescription = 1000

// describe says what a tool means: its name in words, its title and its
// description. Its aliases stay out: a vector of many languages' words is near
// to none of them.
func describe(t *tool.Tool) string {
	action, module := nameParts(t)
	parts := []string{spaced(module) + " " + spaced(action)}
	if t.Title != "" {
		parts = append(parts, t.Title)
	}
	parts = append(parts, cut(t.Description, maxDescription))
	return strings.TrimSpace(strings.Join(parts, ". "))
}

// spaced writes a name as words: read_fileAt as "read file at".
func spaced(name string) string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(before):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
