//go:build unix

package mcpbridge

import (
	"io"
	"syscall"
)

// peeks reports that quiet can tell.
const peeks = true

// quiet reports whether a connection is open and nothing has come.
func (c *conn) quiet() bool {
	var err error
	var buf [1]byte
	if c.raw.Control(func(fd uintptr) {
		_, _, err = syscall.Recvfrom(int(fd), buf[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}) != nil {
		return false
	}
	return err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR
}

// readNow reads what has come; it is an error if nothing has.
func (c *conn) readNow(p []byte) (n int, err error) {
	if failed := c.raw.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), p)
		return true
	}); failed != nil {
		return 0, failed
	}
	if err == nil && n == 0 {
		err = io.EOF
	}
	return max(n, 0), err
}
