package store

import "slices"

// How much a scan reads ahead: so many rows first, and at most; from about so
// many bytes on, no more rows than before.
const (
	firstPage = 16
	lastPage  = 1024
	pageBytes = 1 << 20
)

// An Entry is a key and its value.
type Entry struct {
	Key   string
	Value []byte
}

// Pages makes the Scan of a Tx out of queries for some entries at a time. An
// open query would block its connection, and see an undefined part of what is
// written meanwhile. A zero Pages with Fetch is ready to use.
type Pages struct {
	// Fetch returns the first entries of the range [from, end) of keys, in
	// order: n of them, or all if n is negative. It may stop earlier, but
	// then must say that there is more.
	Fetch func(bucket, from, end string, n int) (page []Entry, more bool, err error)

	running []*scan
}

// A scan has read ahead entries, and has yet to read those of [from, end).
type scan struct {
	bucket    string
	from, end string
	ahead     []Entry
}

// Scan is Tx.Scan.
func (p *Pages) Scan(bucket, prefix string, yield func(string, []byte) bool) error {
	s := &scan{bucket: bucket, from: prefix, end: prefixEnd(prefix)}
	p.running = append(p.running, s)
	defer func() { p.running = slices.DeleteFunc(p.running, func(o *scan) bool { return o == s }) }()
	for n := firstPage; s.from < s.end; {
		if err := p.read(s, n); err != nil {
			return err
		}
		size := 0
		for len(s.ahead) > 0 { // Keep may append
			e := s.ahead[0]
			s.ahead = s.ahead[1:]
			size += len(e.Value)
			if !yield(e.Key, e.Value) {
				return nil
			}
		}
		if size < pageBytes {
			n = min(2*n, lastPage)
		}
	}
	return nil
}

// Keep must be called before a Put or Delete, so that running scans go on to
// see what there was: one that has yet to read the key now reads all that it
// has left. That is rare, since most code writes what it has just been given.
func (p *Pages) Keep(bucket, key string) error {
	for _, s := range p.running {
		if s.bucket == bucket && s.from <= key && key < s.end {
			if err := p.read(s, -1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Pages) read(s *scan, n int) error {
	page, more, err := p.Fetch(s.bucket, s.from, s.end, n)
	if err != nil {
		return err
	}
	s.ahead = append(s.ahead, page...)
	if more && len(page) > 0 {
		s.from = page[len(page)-1].Key + "\x00" // the least string after it
	} else {
		s.from = s.end
	}
	return nil
}
