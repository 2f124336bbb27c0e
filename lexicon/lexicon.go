// Package lexicon knows which concepts the words of many languages stand for.
package lexicon

import (
	_ "embed"
	"fmt"
	"sync"
)

// An ID is a concept: an action, object, domain or quality that tools are
// about. IDs run from zero to Len-1. They hold within one lexicon and those
// that extend it, and may differ in the next release.
type ID uint32

// A Kind says what sort of concept one is.
type Kind uint8

// The kinds.
const (
	Action Kind = iota
	Object
	Domain
	Quality
)

var kinds = [...]string{"action", "object", "domain", "quality"}

func (k Kind) String() string { return kinds[k] }

// A Lexicon maps words to concepts. It never changes, and may be used from
// many goroutines at once.
type Lexicon struct {
	names   []string
	kinds   []Kind
	broader [][]ID
	near    [][]ID
	byName  map[string]ID
	tables  []*table
	over    map[uint64]keyed // what the second table holds, to be extended
	sources []source         // how to read the files again, for listings
	pool    sync.Pool

	digestOnce sync.Once
	digest     uint64
}

//go:embed lexicon.bin
var compiled []byte

// Default returns the lexicon that comes with the program.
var Default = sync.OnceValue(func() *Lexicon {
	l, err := load(compiled)
	if err != nil {
		panic(fmt.Sprintf("lexicon.bin: %v; run: go generate ./lexicon", err))
	}
	l.sources = []source{{"", shipped}}
	return l
})

// A source is a data file, opened when it is asked for.
type source struct {
	name string
	read func() ([]file, error)
}

// Len returns the number of concepts.
func (l *Lexicon) Len() int { return len(l.names) }

// Name returns the name of a concept, such as "delete".
func (l *Lexicon) Name(id ID) string { return l.names[id] }

// Kind returns the kind of a concept.
func (l *Lexicon) Kind(id ID) Kind { return l.kinds[id] }

// Broader returns the concepts of which a concept is a special case, as its
// data says. The caller must not change the slice.
func (l *Lexicon) Broader(id ID) []ID { return l.broader[id] }

// Near returns the concepts that a request for a concept may be met by though
// they are others, as its data says: restaurants for hunger. The caller must
// not change the slice.
func (l *Lexicon) Near(id ID) []ID { return l.near[id] }

// Find returns the concept of a name.
func (l *Lexicon) Find(name string) (ID, bool) {
	id, ok := l.byName[name]
	return id, ok
}

// Extend returns a lexicon that knows the concepts of a data file as well. A
// concept that l has under the same name gets the file's words besides its
// own. Errors name the file, the line and what would be right there. Concepts
// of l keep their IDs.
func (l *Lexicon) Extend(name string, text []byte) (*Lexicon, error) {
	f, problems := parse(name, text)
	for _, p := range problems {
		if !p.Warning {
			return nil, p
		}
	}
	b := newBuilder(l)
	if err := b.add(f); err != nil {
		return nil, err
	}
	out, err := b.lexicon()
	if err != nil {
		return nil, err
	}
	out.sources = append(append([]source{}, l.sources...), source{name, func() ([]file, error) { return []file{f}, nil }})
	return out, nil
}
