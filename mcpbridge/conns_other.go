//go:build !unix

package mcpbridge

import "errors"

// peeks reports that quiet can tell.
const peeks = false

func (c *conn) quiet() bool { return false }

func (c *conn) readNow([]byte) (int, error) { return 0, errors.ErrUnsupported }
