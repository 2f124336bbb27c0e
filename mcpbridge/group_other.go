//go:build unix && !linux

package mcpbridge

import "syscall"

// endWithUs does nothing: this kernel has no such service.
func endWithUs(*syscall.SysProcAttr) {}

// sweep does nothing: here those who have left their group cannot be told from
// others.
func sweep(string) {}

func signalMarked(string, syscall.Signal) int { return 0 }
