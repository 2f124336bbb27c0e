//go:build unix && !linux

package mcpbridge

import "syscall"

// endWithUs does nothing: this kernel has no such service.
func endWithUs(*syscall.SysProcAttr) {}
