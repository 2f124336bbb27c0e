package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// background is the context of every statement: each is short, and the
// contract's end of the context is looked at between them. One that was
// interrupted would cost its connection.
var background = context.Background()

// A session is one connection and what has been prepared on it.
type session struct {
	*file
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	lax   bool // a commit does not sync
}

// sync says whether commits sync the file from now on.
func (c *session) sync(on bool) error {
	if on != c.lax {
		return nil
	}
	mode := "FULL"
	if !on {
		mode = "NORMAL"
	}
	_, err := c.conn.ExecContext(background, "PRAGMA synchronous="+mode)
	if err == nil {
		c.lax = !on
	}
	return err
}

func (f *file) session(ctx context.Context) (*session, error) {
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{file: f, conn: conn, stmts: map[string]*sql.Stmt{}}, nil
}

// stmt returns the statement, prepared on first use.
func (c *session) stmt(query string) (*sql.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	s, err := c.conn.PrepareContext(background, query)
	if err == nil {
		c.stmts[query] = s
	}
	return s, err
}

func (c *session) exec(query string, args ...any) error {
	s, err := c.stmt(query)
	if err == nil {
		_, err = s.ExecContext(background, args...)
	}
	return err
}

func (c *session) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// A pool holds as many sessions as may be in use at once; nil stands for one
// that is not open yet.
type pool struct {
	file      *file
	impatient bool // SQLite must not wait itself: patiently does, and heeds the context
	free      chan *session
}

func newPool(f *file, n int, impatient bool) pool {
	p := pool{f, impatient, make(chan *session, n)}
	for range n {
		p.free <- nil
	}
	return p
}

// take waits for a session. The caller must give it back.
func (p pool) take(ctx context.Context) (*session, error) {
	select {
	case c := <-p.free:
		if c != nil {
			return c, nil
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := p.file.session(ctx)
	if err == nil && p.impatient {
		if _, err = c.conn.ExecContext(background, "PRAGMA busy_timeout=0"); err != nil {
			err = errors.Join(err, c.close())
		}
	}
	if err != nil {
		p.free <- nil
	}
	return c, err
}

// give puts a session back; a broken one is closed.
func (p pool) give(c *session, broken bool) {
	if broken {
		c.close()
		c = nil
	}
	p.free <- c
}

// close closes all sessions. None may be in use.
func (p pool) close() error {
	var errs []error
	for range cap(p.free) {
		if c := <-p.free; c != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(errs...)
}
