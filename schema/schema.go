// Package schema holds JSON Schemas as they were written, and checks, coerces
// and describes arguments by them.
package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"weak"
)

const (
	maxSchemaSize = 1 << 20
	maxSubschemas = 10_000
)

// Options say how a schema is to be read. The zero value is what Parse uses.
type Options struct {
	// Draft is 4, 6, 7, 2019 or 2020, for schemas without $schema. Zero means
	// 2020, and where the schema does not compile as that, 7 and then 4.
	Draft int
	// Formats makes "format" an assertion; otherwise it is a remark.
	Formats bool
	// Load gives the text of a remote schema. Nil refuses remote references:
	// a schema never reads the network or the disk by itself.
	Load func(url string) ([]byte, error)
}

// Schema is a JSON Schema, kept byte for byte as it was written. It is
// compiled when first needed, once, and schemas with equal text share what was
// compiled. A Schema is immutable after it was made (UnmarshalJSON makes it)
// and safe for concurrent use. The zero Schema accepts everything.
type Schema struct {
	raw   []byte
	roles bool
	opts  *Options // nil: the zero Options
	done  atomic.Pointer[compiled]
}

// Parse reads a schema: one JSON object, or true or false, of at most 1 MiB
// and 128 levels. It checks the syntax only; what the keywords say is read by
// Compile or at first use. raw is copied.
func Parse(raw []byte) (*Schema, error) { return ParseWith(raw, Options{}) }

// ParseWith is Parse with options.
func ParseWith(raw []byte, o Options) (*Schema, error) {
	switch o.Draft {
	case 0, 4, 6, 7, 2019, 2020:
	default:
		return nil, fmt.Errorf("schema: no draft %d: use 4, 6, 7, 2019 or 2020", o.Draft)
	}
	if len(raw) > maxSchemaSize {
		return nil, fmt.Errorf("schema: is %d bytes long, the limit is %d", len(raw), maxSchemaSize)
	}
	if err := checkSyntax(raw); err != nil {
		return nil, err
	}
	s := &Schema{raw: bytes.Clone(raw), roles: mentionsRole(raw)}
	if o.Draft != 0 || o.Formats || o.Load != nil {
		s.opts = &o
	}
	return s, nil
}

func checkSyntax(raw []byte) error {
	i := skipSpace(raw, 0)
	if i == len(raw) {
		return errors.New("schema: is empty: write {} for one that accepts everything")
	}
	sc := scanner{doc: raw, depth: maxSchemaDepth, loose: true}
	if end, ok := sc.skip(i); !ok || skipSpace(raw, end) != len(raw) {
		if _, _, err := parse(raw, maxSchemaDepth); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	if c := raw[i]; c != '{' && c != 't' && c != 'f' {
		return errors.New("schema: is neither an object nor true or false")
	}
	return nil
}

// Must is Parse for schemas in code: it panics on what cannot be read, also on
// unknown types and roles and on patterns that Go does not know. It does not
// compile, so that a program with a hundred tools starts at once.
func Must(raw string) *Schema {
	s, err := Parse([]byte(raw))
	if err == nil {
		err = s.inspect()
	}
	if err != nil {
		panic(err)
	}
	return s
}

// inspect finds what a programmer gets wrong, without the library.
func (s *Schema) inspect() error {
	t, err := s.peek()
	if err != nil {
		return err
	}
	return t.inspect(t.root, nil)
}

// Raw is the text as it was written. It is not to be changed.
func (s *Schema) Raw() json.RawMessage {
	if s == nil || len(s.raw) == 0 {
		return json.RawMessage("true")
	}
	return s.raw[:len(s.raw):len(s.raw)]
}

// String is the text as it was written.
func (s *Schema) String() string { return string(s.Raw()) }

// MarshalJSON gives the text as it was written; encoding/json compacts it.
func (s *Schema) MarshalJSON() ([]byte, error) { return s.Raw(), nil }

// UnmarshalJSON is Parse in place. It is for decoding only: a Schema that is
// in use must not be decoded into.
func (s *Schema) UnmarshalJSON(raw []byte) error {
	t, err := Parse(raw)
	if err != nil {
		return err
	}
	s.raw, s.roles, s.opts = t.raw, t.roles, nil
	s.done.Store(nil)
	return nil
}

// Compile reads what the keywords say. The error names what cannot be read and
// where. What cannot be used but does no harm is in Warnings.
func (s *Schema) Compile() error {
	_, err := s.compiled().library()
	return err
}

// Warnings are remarks on what the schema says but Helve does not enforce: a
// pattern in a dialect that cannot be read, an unknown $schema.
func (s *Schema) Warnings() []string {
	c := s.compiled()
	c.library()
	return c.warnings
}

func (s *Schema) options() Options {
	if s.opts == nil {
		return Options{}
	}
	return *s.opts
}

// compiled is what a text and its options come to. Its parts are made when
// first asked for.
type compiled struct {
	raw  []byte
	opts Options

	treeOnce sync.Once
	tree     *tree
	treeErr  error

	flatOnce sync.Once
	flat     *flat

	libOnce  sync.Once
	lib      *library
	libErr   error
	warnings []string

	fastOnce sync.Once
	fast     *rule
	builders sync.Pool // of *builder, for coercion
}

// shared finds what equal schemas were compiled to, as long as one of them is
// in use.
var shared struct {
	sync.Mutex
	byDigest map[[sha256.Size]byte]weak.Pointer[compiled]
	sweepAt  int
}

func (s *Schema) compiled() *compiled {
	if c := s.done.Load(); c != nil {
		return c
	}
	c := &compiled{raw: s.Raw(), opts: s.options()}
	if c.opts.Load == nil {
		c = share(c)
	}
	if s.done.CompareAndSwap(nil, c) {
		return c
	}
	return s.done.Load()
}

func share(c *compiled) *compiled {
	h := sha256.New()
	fmt.Fprintf(h, "%d %t\n", c.opts.Draft, c.opts.Formats)
	h.Write(c.raw)
	var digest [sha256.Size]byte
	h.Sum(digest[:0])

	shared.Lock()
	defer shared.Unlock()
	if had := shared.byDigest[digest].Value(); had != nil {
		return had
	}
	if shared.byDigest == nil {
		shared.byDigest = map[[sha256.Size]byte]weak.Pointer[compiled]{}
	}
	if len(shared.byDigest) >= shared.sweepAt {
		for d, p := range shared.byDigest {
			if p.Value() == nil {
				delete(shared.byDigest, d)
			}
		}
		shared.sweepAt = 2*len(shared.byDigest) + 64
	}
	shared.byDigest[digest] = weak.Make(c)
	return c
}

func (c *compiled) getTree() (*tree, error) {
	c.treeOnce.Do(func() { c.tree, c.treeErr = newTree(c.raw, c.opts) })
	return c.tree, c.treeErr
}

func (c *compiled) flatRoles() *flat {
	c.flatOnce.Do(func() {
		if t, err := c.getTree(); err == nil {
			c.flat = t.flatten()
		}
	})
	return c.flat
}

func (c *compiled) library() (*library, error) {
	c.libOnce.Do(func() {
		t, err := c.getTree()
		if err != nil {
			c.libErr = err
			return
		}
		c.lib, c.warnings, c.libErr = newLibrary(t)
	})
	return c.lib, c.libErr
}
