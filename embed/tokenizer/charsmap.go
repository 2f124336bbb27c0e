package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// A charsMap is SentencePiece's compiled normalisation: a double-array trie
// from byte sequences to places in a text of NUL-terminated replacements.
type charsMap struct {
	units []uint32
	texts string
}

func parseCharsMap(encoded string) (func(string) string, error) {
	data, err := decodeBase64(encoded)
	if err != nil {
		return nil, fmt.Errorf("precompiled_charsmap: %w", err)
	}
	if len(data) == 0 {
		return same, nil
	}
	if len(data) < 4 {
		return nil, errors.New("precompiled_charsmap: it ends early")
	}
	size := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if uint64(size) > uint64(len(data)) || size%4 != 0 || size == 0 {
		return nil, fmt.Errorf("precompiled_charsmap: a trie of %d bytes in %d", size, len(data))
	}
	m := &charsMap{units: make([]uint32, size/4), texts: string(data[size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return m.normalise, nil
}

// maxWhole is the length in bytes from which the reference looks no grapheme
// up as a whole.
const maxWhole = 6

// normalise replaces graphemes that the map has, and otherwise characters.
func (m *charsMap) normalise(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for it := graphemes.FromString(s); it.Next(); {
		g := it.Value()
		if len(g) < maxWhole {
			if to, ok := m.lookup(g); ok {
				b.WriteString(to)
				continue
			}
		}
		for len(g) > 0 {
			_, n := utf8.DecodeRuneInString(g)
			if to, ok := m.lookup(g[:n]); ok {
				b.WriteString(to)
			} else {
				b.WriteString(g[:n])
			}
			g = g[n:]
		}
	}
	return b.String()
}

// lookup returns what the shortest beginning of key that the map has becomes.
// The reference takes that one for the whole key, and its models were trained
// so.
func (m *charsMap) lookup(key string) (string, bool) {
	pos, ok := m.step(0, 0)
	for i := 0; ok && i < len(key) && key[i] != 0; i++ {
		if pos ^= uint32(key[i]); int(pos) >= len(m.units) {
			return "", false
		}
		u := m.units[pos]
		if u&(1<<31|0xFF) != uint32(key[i]) {
			return "", false
		}
		if pos, ok = m.step(pos, pos); ok && u>>8&1 == 1 {
			return m.text(m.units[pos] & (1<<31 - 1))
		}
	}
	return "", false
}

// step follows the offset of the unit at index from pos.
func (m *charsMap) step(pos, index uint32) (uint32, bool) {
	u := m.units[index]
	next := pos ^ u>>10<<(u&(1<<9)>>6)
	return next, int(next) < len(m.units)
}

func (m *charsMap) text(at uint32) (string, bool) {
	if int(at) > len(m.texts) {
		return "", false
	}
	to, _, _ := strings.Cut(m.texts[at:], "\x00")
	return to, true
}
