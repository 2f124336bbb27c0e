package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

const (
	// application marks the file as ours, in its header: "Helv".
	application = 0x48656c76
	// version is of the schema below, in the header too. A higher one is
	// refused.
	version = 1
	// WITHOUT ROWID would keep a value of more than 1,000 bytes out of its
	// row, which makes a Get or Put of 2,000 bytes take twice the time.
	schema = `CREATE TABLE kv (
		bucket TEXT NOT NULL,
		key    TEXT NOT NULL,
		value  BLOB NOT NULL,
		PRIMARY KEY (bucket, key)
	)`
)

// pragmas are set on every connection. The time SQLite itself waits for
// another process is for the rare moments in which readers must: the recovery
// after a crash, the last close. Without a size limit the log would stay as
// large as it ever was.
const pragmas = "_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)&_pragma=journal_size_limit(16777216)"

// A file is the SQLite file and the driver's handle on it.
type file struct {
	path string
	db   *sql.DB
}

func newFile(path string) (*file, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // C:/...
		slashed = "/" + slashed
	}
	at := url.URL{Scheme: "file", Path: slashed, RawQuery: pragmas}
	connector, err := sqlite.NewConnector(at.String())
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return &file{path, sql.OpenDB(connector)}, nil
}

// create makes an empty file, and its folders, unless it is there. One that is
// there must not even be opened: closing it would drop the locks that this
// process may hold on it.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// setup makes sure that the file is one of ours, and makes it so if it is
// empty.
func (c *session) setup(ctx context.Context) error {
	return patiently(ctx, func() error {
		ready, err := c.ours()
		if err != nil {
			return err
		}
		if err := c.wal(); err != nil || ready {
			return err
		}
		if err := c.exec("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		if err := c.make(); err != nil {
			return errors.Join(err, c.exec("ROLLBACK"))
		}
		return c.exec("COMMIT")
	})
}

// ours tells whether the file has the schema; it fails if it has another.
func (c *session) ours() (ready bool, err error) {
	var app, ver, tables int
	row := c.conn.QueryRowContext(background, `SELECT
		(SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`)
	if err := row.Scan(&app, &ver, &tables); err != nil {
		return false, err
	}
	switch {
	case app == 0 && ver == 0 && tables == 0:
		return false, nil
	case app != application:
		return false, fmt.Errorf("store %s is a database of another program: choose another file", c.path)
	case ver > version:
		return false, fmt.Errorf("store %s was written by a newer Helve (schema %d, this one knows %d): "+
			"use that version, or another file", c.path, ver, version)
	}
	return true, nil
}

func (c *session) wal() error {
	var mode string
	if err := c.conn.QueryRowContext(background, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("store %s: its file system cannot hold a shared log (journal mode %s): use a local disk", c.path, mode)
	}
	return nil
}

// make makes the schema, unless another process has just done so.
func (c *session) make() error {
	if ready, err := c.ours(); err != nil || ready {
		return err
	}
	for _, sql := range []string{
		schema,
		fmt.Sprintf("PRAGMA application_id = %d", application),
		fmt.Sprintf("PRAGMA user_version = %d", version),
	} {
		if err := c.exec(sql); err != nil {
			return err
		}
	}
	return nil
}
