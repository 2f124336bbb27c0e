package audit_test

import "github.com/helve-ai/helve/audit"

// The test of a limited child is for systems that have such a limit.
func limitFiles() {}

func appendLimited(*audit.Log) int { return 2 }
