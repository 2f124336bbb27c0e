package lexicon

import (
	"crypto/sha256"
	"encoding/binary"
)

// Digest tells lexicons apart that find other concepts in the same text, or
// number them otherwise.
func (l *Lexicon) Digest() uint64 {
	l.digestOnce.Do(func() {
		h := sha256.New()
		for _, t := range l.tables {
			h.Write(t.slots)
			h.Write(t.senses)
		}
		for i, name := range l.names {
			h.Write([]byte(name))
			for _, b := range l.broader[i] {
				h.Write([]byte{0, byte(b), byte(b >> 8)})
			}
			for _, b := range l.near[i] {
				h.Write([]byte{2, byte(b), byte(b >> 8)})
			}
			h.Write([]byte{1})
		}
		l.digest = binary.LittleEndian.Uint64(h.Sum(nil))
	})
	return l.digest
}
