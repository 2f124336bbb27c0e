package audit_test

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/helve-ai/helve/audit"
)

func Example() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		panic(err)
	}
	defer log.Close()

	if err := log.Reserve(); err != nil {
		panic(err) // refuse the call: there would be no trace of it
	}
	if err := log.Append(&audit.Entry{Tool: "weather.now", Decision: "allow", Args: json.RawMessage(`{"city": "Oslo"}`)}); err != nil {
		panic(err)
	}
	for r, err := range audit.Query(dir, audit.Filter{Tool: "weather.*"}) {
		fmt.Println(r.Seq, r.Tool, string(r.Args), err)
	}
	report, err := audit.Verify(dir)
	fmt.Println(report.Lines, "line,", len(report.Problems), "problems,", err)
	// Output:
	// 1 weather.now {"city":"Oslo"} <nil>
	// 1 line, 0 problems, <nil>
}
