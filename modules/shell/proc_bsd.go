//go:build unix && !linux

package shell

import (
	"syscall"
	"time"
)

// trustedPath is where programs are looked up unless the app says otherwise.
var trustedPath = []string{"/usr/local/bin", "/opt/homebrew/bin", "/usr/bin", "/bin", "/usr/local/go/bin"}

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitExit cannot wait for the leader without reaping it here.
func awaitExit(int) bool { return false }

func restrict(int, time.Duration) {}
