package mcpbridge_test

// actAsHelve is for kernels with signals.
func actAsHelve() {}
