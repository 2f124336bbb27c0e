package sqlite

import (
	"database/sql"

	"github.com/helve-ai/helve/store"
)

const (
	getSQL    = "SELECT value FROM kv WHERE bucket = ? AND key = ?"
	scanSQL   = "SELECT key, value FROM kv WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?"
	putSQL    = "INSERT INTO kv (bucket, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
	deleteSQL = "DELETE FROM kv WHERE bucket = ? AND key = ?"
)

// pageBytes is the size of values at which a page of a scan ends early.
const pageBytes = 1 << 20

// tx is one transaction, on a session that is in one.
type tx struct {
	*session
	pages store.Pages
}

var _ store.Tx = (*tx)(nil)

func newTx(c *session) *tx {
	return &tx{c, store.Pages{Fetch: c.fetch}}
}

func (t *tx) Get(bucket, key string) (value []byte, err error) {
	s, err := t.stmt(getSQL)
	if err != nil {
		return nil, err
	}
	err = s.QueryRowContext(background, bucket, key).Scan(&value)
	if err == sql.ErrNoRows {
		err = store.ErrNotFound
	}
	return value, err
}

func (t *tx) Scan(bucket, prefix string, yield func(string, []byte) bool) error {
	return t.pages.Scan(bucket, prefix, yield)
}

func (t *tx) Put(bucket, key string, value []byte) error {
	if err := t.pages.Keep(bucket, key); err != nil {
		return err
	}
	if value == nil {
		value = []byte{} // nil would be NULL
	}
	return t.exec(putSQL, bucket, key, value)
}

func (t *tx) Delete(bucket, key string) error {
	if err := t.pages.Keep(bucket, key); err != nil {
		return err
	}
	return t.exec(deleteSQL, bucket, key)
}

// fetch is for store.Pages.
func (c *session) fetch(bucket, from, end string, n int) (page []store.Entry, more bool, err error) {
	s, err := c.stmt(scanSQL)
	if err != nil {
		return nil, false, err
	}
	rows, err := s.QueryContext(background, bucket, from, end, n)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		var e store.Entry
		if err := rows.Scan(&e.Key, &e.Value); err != nil {
			return nil, false, err
		}
		page = append(page, e)
		if size += len(e.Value); n > 0 && size >= pageBytes {
			return page, true, nil
		}
	}
	return page, len(page) == n, rows.Err()
}
