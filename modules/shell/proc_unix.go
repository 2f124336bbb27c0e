//go:build unix

package shell

import "path/filepath"

const (
	shellProgram  = "/bin/sh"
	programSuffix = ""
)

// isAbs reports whether a name is absolute in a form that package path does not know.
func isAbs(name string) bool { return filepath.IsAbs(name) }
