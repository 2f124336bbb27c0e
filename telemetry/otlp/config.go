package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const defaultTimeout = 10 * time.Second

// An env is the environment, of which variables that are empty are not there.
type env func(name string) string

// of returns a setting of a signal, which goes before that of all signals.
func (e env) of(signal, name string) (value, variable string) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_" + name, "OTEL_EXPORTER_OTLP_" + name} {
		if v := e(variable); v != "" {
			return v, variable
		}
	}
	return "", ""
}

func (e env) on(name string) bool { return strings.EqualFold(e(name), "true") }

// sender returns what sends a signal to where the environment says; nil:
// nowhere.
func (e env) sender(signal, path string) (*sender, error) {
	switch exporter := e("OTEL_" + signal + "_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return nil, nil
	default:
		return nil, fmt.Errorf("OTEL_%s_EXPORTER: %q is not offered; it is otlp or none", signal, exporter)
	}
	at, variable := e.of(signal, "ENDPOINT")
	if at == "" {
		return nil, nil
	}
	if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		at = strings.TrimSuffix(at, "/") + path
	}
	if u, err := url.Parse(at); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is no address; it is like http://127.0.0.1:4318", variable)
	}
	if v, variable := e.of(signal, "PROTOCOL"); v != "" && v != "http/protobuf" {
		return nil, fmt.Errorf("%s: %q is not spoken; set http/protobuf, for which collectors listen on port 4318", variable, v)
	}
	s := &sender{url: at, signal: strings.ToLower(signal), timeout: defaultTimeout}
	if v, variable := e.of(signal, "TIMEOUT"); v != "" {
		ms, err := strconv.Atoi(v)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("%s: %q is no number of milliseconds, such as 10000", variable, v)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	switch v, variable := e.of(signal, "COMPRESSION"); v {
	case "", "none":
	case "gzip":
		s.zip = true
	default:
		return nil, fmt.Errorf("%s: %q is not known; it is gzip or none", variable, v)
	}
	var err error
	if s.header, err = e.header(signal); err != nil {
		return nil, err
	}
	secure, err := e.secure(signal)
	if err != nil {
		return nil, err
	}
	s.client = &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// header returns the headers of a signal's requests: name=value, with commas
// between them. Values are secrets, and in no error.
func (e env) header(signal string) (http.Header, error) {
	out := http.Header{}
	list, variable := e.of(signal, "HEADERS")
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name, err := url.PathUnescape(strings.TrimSpace(name))
		if ok && err == nil {
			value, err = url.PathUnescape(strings.TrimSpace(value))
		}
		if !ok || err != nil || name == "" {
			return nil, fmt.Errorf("%s: a header cannot be read; they are like name=value,name=value, with %%20 for a space", variable)
		}
		out.Set(name, value)
	}
	return out, nil
}

// secure returns by which certificates a collector is known, and we to it.
func (e env) secure(signal string) (*tls.Config, error) {
	var out tls.Config
	if file, variable := e.of(signal, "CERTIFICATE"); file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM", variable, file)
		}
	}
	cert, variable := e.of(signal, "CLIENT_CERTIFICATE")
	key, _ := e.of(signal, "CLIENT_KEY")
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s and the CLIENT_KEY beside it: %w", or(variable, "CLIENT_CERTIFICATE"), err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return &out, nil
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
