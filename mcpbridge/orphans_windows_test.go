package mcpbridge_test

import (
	"io"
	"os"
	"os/exec"
)

// actAsHelve is for kernels with signals.
func actAsHelve() {}

func kin() []string { return []string{"grandchild"} }

func beget(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HELVE_TEST_CHILD=hold", "HELVE_TEST_ROLE="+role)
	return cmd
}

func hold(role string) {
	if conn := dialHome(role); conn != nil {
		io.Copy(io.Discard, conn)
	}
}

func deafen() {}
