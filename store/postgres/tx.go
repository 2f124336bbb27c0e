package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/helve-ai/helve/store"
)

// schemaVersion is of the tables below. A higher one is refused.
const schemaVersion = 1

// statements are those of one schema.
type statements struct {
	create                                []string
	version, turn, get, scan, put, delete string
}

// statementsIn names the schema in each statement, since a search path does
// not survive every connection pooler. Names are bytea, so that they are
// compared as bytes, and stored as they are, whatever the encoding of the
// database.
func statementsIn(schema string) statements {
	in := strings.NewReplacer("{}", pgx.Identifier{schema}.Sanitize()).Replace
	return statements{
		create: []string{
			in("CREATE SCHEMA IF NOT EXISTS {}"),
			in("CREATE TABLE IF NOT EXISTS {}.version (version int NOT NULL)"),
			in("CREATE TABLE IF NOT EXISTS {}.kv (" +
				"bucket bytea NOT NULL, key bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (bucket, key))"),
			in(fmt.Sprintf("INSERT INTO {}.version SELECT %d WHERE NOT EXISTS (SELECT FROM {}.version)", schemaVersion)),
		},
		version: in("SELECT max(version) FROM {}.version"),
		// The lock that keeps nobody out but others who ask for it. Unlike an
		// advisory one it is had before the transaction's snapshot is taken.
		turn: in("LOCK TABLE {}.version IN SHARE ROW EXCLUSIVE MODE"),
		get:  in("SELECT value FROM {}.kv WHERE bucket = $1 AND key = $2"),
		scan: in("SELECT key, value FROM {}.kv WHERE bucket = $1 AND key >= $2 AND key < $3 " +
			"ORDER BY key LIMIT nullif($4::int, -1)"),
		put: in("INSERT INTO {}.kv (bucket, key, value) VALUES ($1, $2, $3) " +
			"ON CONFLICT (bucket, key) DO UPDATE SET value = excluded.value"),
		delete: in("DELETE FROM {}.kv WHERE bucket = $1 AND key = $2"),
	}
}

// enough is how many bytes of writes are sent off without waiting for a read
// or the commit.
const enough = 1 << 20

// tx is one transaction. It begins with the first thing that is sent.
type tx struct {
	ctx   context.Context
	conn  *pgx.Conn
	sql   statements
	batch *pgx.Batch // what is to be sent first
	size  int
	pages store.Pages
}

var _ store.Tx = (*tx)(nil)

func newTx(ctx context.Context, conn *pgx.Conn, sql statements, begin []string) *tx {
	t := &tx{ctx: ctx, conn: conn, sql: sql, batch: new(pgx.Batch)}
	for _, sql := range begin {
		t.batch.Queue(sql)
	}
	t.pages.Fetch = t.fetch
	return t
}

// send sends what has been queued.
func (t *tx) send() error {
	batch := t.batch
	t.batch, t.size = new(pgx.Batch), 0
	err := t.conn.SendBatch(t.ctx, batch).Close()
	if err != nil && t.ctx.Err() != nil && (code(err) == "" || code(err) == queryCanceled) {
		return t.ctx.Err()
	}
	return err
}

// write queues a write of so many bytes.
func (t *tx) write(size int, sql string, args ...any) error {
	t.batch.Queue(sql, args...)
	if t.size += size; t.size < enough {
		return nil
	}
	return t.send()
}

func (t *tx) Get(bucket, key string) (value []byte, err error) {
	missing := false
	t.batch.Queue(t.sql.get, []byte(bucket), []byte(key)).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&value)
		if missing = err == pgx.ErrNoRows; missing {
			return nil
		}
		return err
	})
	err = t.send()
	if err == nil && missing {
		err = store.ErrNotFound
	}
	return value, err
}

func (t *tx) Scan(bucket, prefix string, yield func(string, []byte) bool) error {
	return t.pages.Scan(bucket, prefix, yield)
}

// fetch is for store.Pages.
func (t *tx) fetch(bucket, from, end string, n int) (page []store.Entry, more bool, err error) {
	t.batch.Queue(t.sql.scan, []byte(bucket), []byte(from), []byte(end), n).Query(func(rows pgx.Rows) error {
		var key, value []byte
		_, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
			page = append(page, store.Entry{Key: string(key), Value: value})
			value = nil
			return nil
		})
		return err
	})
	err = t.send()
	return page, len(page) == n, err
}

func (t *tx) Put(bucket, key string, value []byte) error {
	if err := t.pages.Keep(bucket, key); err != nil {
		return err
	}
	return t.write(len(value), t.sql.put, []byte(bucket), []byte(key), append([]byte{}, value...))
}

func (t *tx) Delete(bucket, key string) error {
	if err := t.pages.Keep(bucket, key); err != nil {
		return err
	}
	return t.write(0, t.sql.delete, []byte(bucket), []byte(key))
}

// commit sends the writes that are left and commits them. After it a rollback
// does nothing.
func (t *tx) commit() error {
	var tag pgconn.CommandTag
	t.batch.Queue("COMMIT").Exec(func(done pgconn.CommandTag) error {
		tag = done
		return nil
	})
	if err := t.send(); err != nil {
		return err
	}
	if tag.String() != "COMMIT" { // the server rolled back instead
		return fmt.Errorf("the answer to COMMIT is %s", tag)
	}
	return nil
}

// rollback ends a transaction that has begun and has not been committed.
func (t *tx) rollback() {
	if !t.conn.IsClosed() && t.conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 5*time.Second)
		defer cancel()
		t.conn.Exec(ctx, "ROLLBACK")
	}
}
