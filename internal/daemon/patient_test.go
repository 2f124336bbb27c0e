package daemon

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A listener that has one connection.
type one chan net.Conn

func (l one) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l one) Close() error   { close(l); return nil }
func (l one) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// A client that does not read is not waited for, however long its answer took
// to begin.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gaveUp := make(chan time.Duration, 1)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			p := &patient{ResponseWriter: w, conn: http.NewResponseController(w)}
			p.Write([]byte("begun"))
			p.Flush()
			time.Sleep(10 * writeTime) // a call that takes long, or a quiet stream
			began := time.Now()
			for range 3 {
				if _, err := p.Write(make([]byte, 64<<10)); err != nil {
					gaveUp <- time.Since(began)
					return
				}
			}
			gaveUp <- -1
		})}
		l := make(one, 1)
		ours, theirs := net.Pipe()
		l <- theirs
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			server.Serve(l)
		}()
		fmt.Fprintf(ours, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		head := make([]byte, 4096)
		for read := 0; read < 5; { // to the end of the first piece
			n, err := ours.Read(head)
			if err != nil {
				t.Fatal(err)
			}
			if read += n; n >= 5 && string(head[n-7:n-2]) == "begun" {
				break
			}
		}
		if took := <-gaveUp; took != writeTime {
			t.Errorf("given up after %v", took)
		}
		ours.Close()
		server.Close()
		<-ended
	})
}
