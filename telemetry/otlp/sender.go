package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// A sender posts messages of one signal to a collector. Nobody waits for it
// but the end of the process, and that not for long.
type sender struct {
	url     string
	signal  string
	header  http.Header
	zip     bool
	timeout time.Duration // of one message, all attempts together
	client  *http.Client
	log     *slog.Logger

	once sync.Once // one warning
}

const firstPause = 500 * time.Millisecond

// send posts a message, and again after failures that may pass. What cannot be
// sent is lost; the first time that is told as a warning.
func (s *sender) send(ctx context.Context, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.zip {
		body = zipped(body)
	}
	pause := firstPause
	for {
		again, err := s.post(ctx, body)
		if err == nil {
			return
		}
		var later *laterError
		if errors.As(err, &later) && later.after > 0 {
			pause = later.after
		}
		if end, _ := ctx.Deadline(); !again || time.Until(end) < pause {
			s.lost(err)
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			s.lost(err)
			return
		}
		pause *= 2
	}
}

func (s *sender) lost(err error) {
	level := slog.LevelDebug
	s.once.Do(func() { level = slog.LevelWarn })
	s.log.Log(context.Background(), level, "telemetry could not be sent and is lost", "signal", s.signal, "error", err)
}

// A laterError is an answer that asks for patience.
type laterError struct {
	status int
	after  time.Duration // zero: it did not say
}

func (e *laterError) Error() string {
	return "the collector answered with the status " + status(e.status)
}

func status(code int) string { return fmt.Sprintf("%d %s", code, http.StatusText(code)) }

// post posts once. Failures of connections, and of collectors that are busy,
// may pass (OTLP 1.9, "Failures").
func (s *sender) post(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header = s.header.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "helve")
	if s.zip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := s.client.Do(r)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) { // the address may hold a secret
			err = at.Err
		}
		return ctx.Err() == nil, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	switch code := resp.StatusCode; code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return true, &laterError{code, time.Duration(seconds) * time.Second}
	default:
		if code/100 != 2 {
			return false, fmt.Errorf("the collector answered with the status %s", status(code))
		}
	}
	return false, nil
}

func zipped(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // to memory
	_ = w.Close()
	return out.Bytes()
}
