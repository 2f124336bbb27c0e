//go:build unix

package cli

import (
	"io/fs"
	"syscall"
)

func owner(info fs.FileInfo) [2]uint32 {
	s := info.Sys().(*syscall.Stat_t)
	return [2]uint32{s.Uid, s.Gid}
}
