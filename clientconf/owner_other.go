//go:build !unix

package clientconf

import "os"

func sameOwner(*os.File, string) {} // the folder says whose its files are
