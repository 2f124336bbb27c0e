//go:build unix && !linux

package sandbox

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitExit cannot wait for the leader without reaping it here.
func awaitExit(int) bool { return false }

// limitStarted sets nothing: this system limits a process only from within.
func limitStarted(int, Limits) error { return nil }
