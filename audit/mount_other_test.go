//go:build unix && !linux

package audit_test

import "errors"

func mountTmpfs(string) error { return errors.New("not on this system") }
