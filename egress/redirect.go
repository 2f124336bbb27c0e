package egress

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// anonymous are the headers that follow a redirect to another origin: they say
// what is wanted, and nothing about who wants it.
var anonymous = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Language", "Content-Type",
	"Range", "User-Agent",
}

// checkRedirect judges the next request of an exchange, and takes from it what
// is not for its origin.
func (p Policy) checkRedirect(req *http.Request, via []*http.Request) error {
	raw := req.URL.Redacted()
	limit := or(p.MaxRedirects, DefaultMaxRedirects)
	switch {
	case limit < 0:
		return http.ErrUseLastResponse
	case len(via) > limit:
		return &Error{URL: raw, Code: CodeExternal, Reason: "there were too many redirects"}
	}
	at, err := readURL(req.URL)
	if err != nil {
		e := *AsError(err)
		e.Code, e.Reason = CodeRefused, "the redirect is not followed: "+e.Reason
		return &e
	}
	from, err := readURL(via[len(via)-1].URL)
	if err != nil {
		return err
	}
	if p.declares(at) && !p.declares(from) {
		return refused(raw, "the redirect is not followed: a page of the public network may not lead to a host that the operator declared")
	}
	// Every hop starts from the first request's headers, so what another
	// origin may not see is taken from all requests after it, even if they
	// lead back.
	abroad := func(r *http.Request) bool { return origin(r.URL) != origin(via[0].URL) }
	if !abroad(req) && !slices.ContainsFunc(via, abroad) {
		return nil
	}
	if req.Body != nil && req.Body != http.NoBody {
		return refused(raw, "the redirect is not followed: it would send the request's body to another origin")
	}
	for name := range req.Header {
		if !slices.Contains(anonymous, http.CanonicalHeaderKey(name)) {
			delete(req.Header, name)
		}
	}
	return nil
}

// origin returns what two URLs share when they are of one origin.
func origin(u *url.URL) string {
	at, err := readURL(u)
	if err != nil {
		return u.String()
	}
	return strings.ToLower(u.Scheme) + "://" + at.String()
}
