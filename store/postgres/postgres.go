// Package postgres is a store in a PostgreSQL database, for several nodes.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/helve-ai/helve/store"
)

// attempts is how often an Update is tried. 64 goroutines, each of which reads
// all of a bucket and writes one key of it, on 60 connections, need up to 11.
const attempts = 100

// Codes of SQLSTATE.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	queryCanceled        = "57014"
	undefinedTable       = "42P01"
)

// Open opens the store in the database that the URL names,
//
//	postgres://USER:PASSWORD@HOST:PORT/DATABASE
//
// and makes its tables in the schema "helve" if need be; any number of nodes
// may do that at once. The URL takes the parameters of pgxpool, such as
// pool_max_conns, and helve_schema, by which several installations share a
// database. Schemas written by a newer Helve are refused.
//
// Updates are SERIALIZABLE transactions that do not wait for each other. One
// that PostgreSQL finds to conflict is run again, up to 100 times, from then on
// in turn with others that have conflicted: see store.Store for what that asks
// of fn. Writes are sent
// together, before the next read or with the commit, so that an Update that
// reads once and writes takes two round trips. If the connection is lost
// during the commit, the Update fails, though it may have been committed.
// Views are REPEATABLE READ, never conflict and are never repeated.
func Open(ctx context.Context, url string) (store.Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	conn := cfg.ConnConfig
	schema, ok := conn.RuntimeParams["helve_schema"]
	if !ok {
		schema = "helve"
	}
	delete(conn.RuntimeParams, "helve_schema")
	if _, ok := conn.RuntimeParams["application_name"]; !ok {
		conn.RuntimeParams["application_name"] = "helve"
	}
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = 10 * time.Second
	}
	conn.BuildContextWatcherHandler = cancelPolitely
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &db{
		pool: pool,
		name: fmt.Sprintf("store postgres://%s:%d/%s", conn.Host, conn.Port, conn.Database),
		sql:  statementsIn(schema),
	}
	if err := s.migrate(ctx, schema); err != nil {
		pool.Close()
		return nil, s.explain(err)
	}
	return s, nil
}

// cancelPolitely has the end of a context ask the server to stop, and wait for
// its answer. To cut the connection would leave the server to commit, some
// time later, what was reported as cancelled.
func cancelPolitely(c *pgconn.PgConn) ctxwatch.Handler {
	return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 5 * time.Second}
}

type db struct {
	gate store.Gate
	pool *pgxpool.Pool
	name string
	sql  statements
}

func (s *db) View(ctx context.Context, fn func(store.Reader) error) error {
	leave, err := s.gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return s.explain(s.run(ctx, []string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}, func(t *tx) error {
		return store.Read(ctx, t, fn)
	}))
}

func (s *db) Update(ctx context.Context, fn func(store.Writer) error) error {
	leave, err := s.gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	pause := time.Millisecond
	for n := range attempts {
		begin := []string{"BEGIN ISOLATION LEVEL SERIALIZABLE"}
		if n > 0 {
			begin = append(begin, s.sql.turn)
		}
		err = s.run(ctx, begin, func(t *tx) error { return store.Write(ctx, t, fn) })
		if !conflict(err) {
			return s.explain(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(pause)):
		}
		pause = min(2*pause, 8*time.Millisecond)
	}
	return fmt.Errorf("%s: conflicts with other updates, %d times in a row: %w", s.name, attempts, err)
}

// run runs fn in one transaction, and commits it if fn returns nil.
func (s *db) run(ctx context.Context, begin []string, fn func(*tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	t := newTx(ctx, conn.Conn(), s.sql, begin)
	defer conn.Release() // which closes a connection that is still in a transaction
	defer t.rollback()
	if err := fn(t); err != nil {
		return err
	}
	return t.commit()
}

func (s *db) Close() error {
	if s.gate.Shut() {
		s.pool.Close()
	}
	return nil
}

func conflict(err error) bool {
	c := code(err)
	return c == serializationFailure || c == deadlockDetected
}

// code is the SQLSTATE of an error of the server's, "" of others.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// explain adds to an error of the server's, or of the connection to it, which
// database it is about.
func (s *db) explain(err error) error {
	var connect *pgconn.ConnectError
	if code(err) == "" && !errors.As(err, &connect) {
		return err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// migrate makes the tables unless they are there, and checks their version.
func (s *db) migrate(ctx context.Context, schema string) error {
	version, err := s.version(ctx)
	if code(err) == undefinedTable {
		if err = s.create(ctx, schema); err == nil {
			version, err = s.version(ctx)
		}
	}
	if err == nil && version > schemaVersion {
		err = fmt.Errorf("%s: schema %q was written by a newer Helve (version %d, this one knows %d): "+
			"use that Helve, or another helve_schema", s.name, schema, version, schemaVersion)
	}
	return err
}

func (s *db) version(ctx context.Context) (version int, err error) {
	err = s.pool.QueryRow(ctx, s.sql.version).Scan(&version)
	return version, err
}

// create makes the schema. Of several nodes, one does, and the others wait for
// it and find it made.
func (s *db) create(ctx context.Context, schema string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('helve schema'), hashtext($1))", schema)
		for _, sql := range s.sql.create {
			if err == nil {
				_, err = tx.Exec(ctx, sql)
			}
		}
		return err
	})
}
