package mcpbridge

import "syscall"

// endWithUs has the kernel kill the process when the thread that starts it ends.
func endWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
