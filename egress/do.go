package egress

import (
	"errors"
	"io"
	"net/http"
)

// A Response is an answer with its body, read.
type Response struct {
	Status    string // such as "200 OK"
	Code      int    // such as 200
	Header    http.Header
	Body      []byte
	Truncated bool   // the body was longer
	FinalURL  string // after redirects
}

// Do sends req with a client of this package and reads the body, up to
// maxBody bytes; with 0, up to the client's own limit, which holds in any case.
// A longer body is cut, and marked. Any status is an answer, not an error. An
// error is an [*Error]; a body that breaks off, or outlasts the client's
// timeout, is one.
func Do(client *http.Client, req *http.Request, maxBody int64) (*Response, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, AsError(err)
	}
	defer resp.Body.Close()
	final := resp.Request.URL.String()
	body, truncated, err := read(resp.Body, maxBody)
	if err != nil {
		e := AsError(err)
		e.URL = final
		return nil, e
	}
	return &Response{
		Status: resp.Status, Code: resp.StatusCode, Header: resp.Header,
		Body: body, Truncated: truncated, FinalURL: final,
	}, nil
}

// read reads up to limit bytes, and reports whether there were more.
func read(r io.Reader, limit int64) ([]byte, bool, error) {
	if limit > 0 {
		r = io.LimitReader(r, limit+1)
	}
	body, err := io.ReadAll(r)
	switch {
	case errors.Is(err, ErrTooLarge):
		return body, true, nil
	case err != nil:
		return nil, false, err
	case limit > 0 && int64(len(body)) > limit:
		return body[:limit], true, nil
	}
	return body, false, nil
}
