package audit_test

import "golang.org/x/sys/unix"

func mountTmpfs(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") }
