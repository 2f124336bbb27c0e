package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/postgres"
)

// schemaOf is the quoted name of the place's schema.
func schemaOf(t *testing.T, place string) string {
	t.Helper()
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	return pgx.Identifier{u.Query().Get("helve_schema")}.Sanitize()
}

func TestNewer(t *testing.T) {
	place := newPlace(t)
	open(t, place).Close()
	_, conn := server(t)
	if _, err := conn.Exec(t.Context(), "UPDATE "+schemaOf(t, place)+".version SET version = 99"); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Open(t.Context(), place)
	if err == nil || !strings.Contains(err.Error(), "written by a newer Helve (version 99, this one knows 1)") {
		t.Errorf("Open = %v for a newer schema", err)
	}
}

func TestRefused(t *testing.T) {
	for place, want := range map[string]string{
		"postgres://me:secret@127.0.0.1:port/d":                  "invalid port",
		"postgres://me:secret@127.0.0.1:1/d":                     "store postgres://127.0.0.1:1/d: ",
		"postgres://me:secret@127.0.0.1:1/d?pool_max_conns=lots": "pool_max_conns",
	} {
		_, err := postgres.Open(t.Context(), place)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%s) = %v, want ...%s... and no password", place, err, want)
		}
	}
}

func put(t *testing.T, s store.Store, value string) {
	t.Helper()
	err := s.Update(t.Context(), func(w store.Writer) error { return w.Put("b", "k", []byte(value)) })
	if err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, s store.Store) (value string) {
	t.Helper()
	err := s.View(t.Context(), func(r store.Reader) error {
		v, err := r.Get("b", "k")
		value = string(v)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// A conflict has fn run again, on what the other has written.
func TestRunAgain(t *testing.T) {
	place := newPlace(t)
	a, b := open(t, place), open(t, place)
	put(t, a, "0")
	var read []string
	err := a.Update(t.Context(), func(w store.Writer) error {
		v, err := w.Get("b", "k")
		read = append(read, string(v))
		if len(read) == 1 {
			put(t, b, "1")
		}
		return errors.Join(err, w.Put("b", "k", append(v, 'a')))
	})
	if got := strings.Join(read, " "); got != "0 1" || err != nil {
		t.Errorf("runs of fn read %q, %v, want 0, then 1", got, err)
	}
	if got := get(t, b); got != "1a" {
		t.Errorf("stored is %q", got)
	}
}

// An Update that always conflicts ends.
func TestConflictsForever(t *testing.T) {
	place := newPlace(t)
	a, b := open(t, place), open(t, place)
	put(t, a, "0")
	runs := 0
	err := a.Update(t.Context(), func(w store.Writer) error {
		runs++
		_, err := w.Get("b", "k")
		put(t, b, strings.Repeat("1", runs))
		return errors.Join(err, w.Put("b", "k", nil))
	})
	if err == nil || !strings.Contains(err.Error(), "conflicts with other updates, 100 times in a row") || runs != 100 {
		t.Errorf("Update = %v after %d runs", err, runs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = a.Update(ctx, func(w store.Writer) error {
		_, err := w.Get("b", "k")
		put(t, b, "x"+get(t, b))
		defer cancel()
		return errors.Join(err, w.Put("b", "k", nil))
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Update = %v when its context ends after a conflict", err)
	}
}

// The end of a connection fails what it was used for, and nothing else.
func TestConnectionLost(t *testing.T) {
	place := newPlace(t)
	name := "helve_" + strings.Trim(schemaOf(t, place), `"`)[len("helve test "):]
	s := open(t, place+"&application_name="+name)
	_, conn := server(t)
	put(t, s, "0")
	err := s.Update(t.Context(), func(w store.Writer) error {
		_, err := w.Get("b", "k")
		var n int
		row := conn.QueryRow(t.Context(), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1", name)
		if e := row.Scan(&n); n == 0 || e != nil {
			t.Errorf("%d connections were ended, %v", n, e)
		}
		return errors.Join(err, w.Put("b", "k", []byte("1")))
	})
	if err == nil {
		t.Error("Update = nil on a lost connection")
	}
	if got := get(t, s); got != "0" {
		t.Errorf("stored is %q", got)
	}
	put(t, s, "2")
	if got := get(t, s); got != "2" {
		t.Errorf("stored is %q", got)
	}
}
