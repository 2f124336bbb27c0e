package sqlite

import (
	"database/sql"
	"slices"

	"github.com/helve-ai/helve/store"
)

const (
	getSQL    = "SELECT value FROM kv WHERE bucket = ? AND key = ?"
	scanSQL   = "SELECT key, value FROM kv WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?"
	putSQL    = "INSERT INTO kv (bucket, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
	deleteSQL = "DELETE FROM kv WHERE bucket = ? AND key = ?"
)

// A scan reads ahead so many rows, first and at most, and about so many bytes.
const (
	firstPage = 16
	lastPage  = 1024
	pageBytes = 1 << 20
)

// tx is one transaction, and the scans that are under way in it.
type tx struct {
	c     *session
	scans []*scan
}

var _ store.Tx = (*tx)(nil)

func (t *tx) Get(bucket, key string) ([]byte, error) {
	s, err := t.c.stmt(getSQL)
	if err != nil {
		return nil, err
	}
	var value []byte
	err = s.QueryRowContext(background, bucket, key).Scan(&value)
	if err == sql.ErrNoRows {
		err = store.ErrNotFound
	}
	return value, err
}

func (t *tx) Put(bucket, key string, value []byte) error {
	if err := t.keep(bucket, key); err != nil {
		return err
	}
	if value == nil {
		value = []byte{} // nil would be NULL
	}
	return t.c.exec(putSQL, bucket, key, value)
}

func (t *tx) Delete(bucket, key string) error {
	if err := t.keep(bucket, key); err != nil {
		return err
	}
	return t.c.exec(deleteSQL, bucket, key)
}

// keep prepares scans for a change of key: what one has yet to read, it reads
// now. That is rare, since most change what they have just been given.
func (t *tx) keep(bucket, key string) error {
	for _, s := range t.scans {
		if s.bucket == bucket && s.from <= key && key < s.end {
			if err := s.fill(-1, -1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tx) Scan(bucket, prefix string, yield func(string, []byte) bool) error {
	s := &scan{c: t.c, bucket: bucket, from: prefix, end: store.PrefixEnd(prefix)}
	t.scans = append(t.scans, s)
	defer func() { t.scans = slices.DeleteFunc(t.scans, func(o *scan) bool { return o == s }) }()
	for size := firstPage; ; size = min(2*size, lastPage) {
		if err := s.fill(size, pageBytes); err != nil {
			return err
		}
		if len(s.rows) == 0 {
			return nil
		}
		for len(s.rows) > 0 {
			r := s.rows[0]
			s.rows = s.rows[1:]
			if !yield(r.key, r.value) {
				return nil
			}
		}
	}
}

// A scan is a range of keys: rows have been read ahead, those in [from, end)
// are still to be read. It is in pages because a statement that stays open
// would see an undefined part of the writes made meanwhile.
type scan struct {
	c         *session
	bucket    string
	from, end string
	rows      []row
}

type row struct {
	key   string
	value []byte
}

// fill reads ahead so many more rows, fewer if they have so many bytes; a
// negative number is no limit.
func (s *scan) fill(rows, bytes int) error {
	if s.from >= s.end {
		return nil
	}
	found, err := s.c.query(scanSQL, s.bucket, s.from, s.end, rows)
	if err != nil {
		return err
	}
	defer found.Close()
	n, size := 0, 0
	for found.Next() {
		var r row
		if err := found.Scan(&r.key, &r.value); err != nil {
			return err
		}
		s.rows = append(s.rows, r)
		s.from = r.key + "\x00" // the least key after it
		n, size = n+1, size+len(r.value)
		if bytes >= 0 && size >= bytes {
			return nil
		}
	}
	if n < rows || rows < 0 {
		s.from = s.end
	}
	return found.Err()
}
