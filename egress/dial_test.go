package egress

import (
	"errors"
	"net"
	"strconv"
	"testing"
)

// The last gate stands alone: whatever address the others let through, the
// socket is not connected to one that is refused.
func TestSocketJudges(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := uint16(listener.Addr().(*net.TCPAddr).Port)
	declared := "127.0.0.1:" + strconv.Itoa(int(port))
	for _, test := range []struct {
		policy Policy
		at     string
		to     string
		ok     bool
	}{
		{Policy{}, "example.com:" + strconv.Itoa(int(port)), declared, false},
		{Policy{}, declared, declared, false},
		{Policy{AllowHosts: []string{declared}}, declared, declared, true},
		{Policy{AllowHosts: []string{declared}}, declared, "127.0.0.2:" + strconv.Itoa(int(port)), false},
		{Policy{AllowHosts: []string{"127.0.0.1:80"}}, "127.0.0.1:80", declared, false},
	} {
		at, err := parseHostPort(test.at)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := (&dialer{policy: test.policy}).socket(at).DialContext(t.Context(), "tcp", test.to)
		if err == nil {
			conn.Close()
		}
		var e *Error
		if (err == nil) != test.ok || !test.ok && (!errors.As(err, &e) || e.Code != CodeRefused) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
