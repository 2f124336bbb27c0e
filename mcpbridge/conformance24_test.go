package mcpbridge_test

import (
	"os/exec"
	"strings"
	"testing"
)

func TestConformance24Runs(t *testing.T) {
	command := conformance24(t)
	out, err := exec.CommandContext(t.Context(), command[0], append(command[1:], "list", "--server")...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "server-stateless [2026-07-28]") {
		t.Errorf("%v\n%s", err, out)
	}
}
