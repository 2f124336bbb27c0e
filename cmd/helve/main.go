// The helve command is the tool runtime for LLM agents: it serves, finds and guards tools.
package main

import (
	"context"
	"os"

	"github.com/helve-ai/helve/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
