// Package cli is the commands of the helve binary.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/telemetry"
	"github.com/helve-ai/helve/telemetry/otlp"
	"github.com/helve-ai/helve/tool"
)

// The exit codes.
const (
	exitError   = 1  // something else went wrong
	exitTool    = 2  // the tool ran and failed
	exitRefused = 3  // the call was not allowed to run
	exitUsage   = 64 // the command line or the arguments were wrong
)

// A codedError is an error that asks for an exit code of its own. One that was
// told already is not printed again.
type codedError struct {
	code int
	err  error
	told bool
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &codedError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// exitCode returns the exit code that tells an error of a call.
func exitCode(code tool.Code) int {
	switch {
	case code == tool.CodeNotFound || code == tool.CodeValidation:
		return exitUsage
	case code.Refusal():
		return exitRefused
	}
	return exitTool
}

// Run runs one command line and returns its exit code. SIGINT and SIGTERM end
// ctx, so that what is under way can be finished.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	settled, ended := hasty()
	defer ended()
	c := &cli{in: stdin, out: stdout, err: stderr, settled: settled, stores: &sync.Map{}}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	c.stopTelemetry()
	if err == nil {
		return 0
	}
	err = wrongLine(cmd, err)
	c.tell(cmd, err)
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	return exitError
}

// tell prints an error, and what to do about it, unless that was done.
func (c *cli) tell(cmd *cobra.Command, err error) {
	var coded *codedError
	isCoded := errors.As(err, &coded)
	if isCoded && coded.told {
		return
	}
	if c.json {
		json.NewEncoder(c.err).Encode(map[string]string{"error": err.Error()})
		return
	}
	fmt.Fprintf(c.err, "%s %s\n", c.style(c.err).bad("error:"), err)
	if isCoded && coded.code == exitUsage {
		fmt.Fprintf(c.err, "Run %s --help to see how it is used.\n", cmd.CommandPath())
	}
}

// A cli is one run of the binary: its streams and the flags that all commands share.
type cli struct {
	in       io.Reader
	out, err io.Writer

	appFile, root_, state, store string
	json, verbose                bool
	conceal                      string    // the operator's token: no call shows it
	blocked                      []string  // what no call may touch, beside the state folder
	protected                    []string  // what no call may write, beside the app's own files
	stores                       *sync.Map // by credentials.Options: *credentials.Store
	profile                      string    // to which MCP clients are bound; "": to none

	demo     bool            // the app is the demonstration that the binary carries
	heard    func(app.Heard) // told of agents that calls set to work; nil: nobody is
	lines    *lineReader     // of the person at the terminal; nil: nobody is asked
	sessions *guard.Sessions // outlive an app that is opened anew

	telemetry      *telemetry.Telemetry // nil: the environment names no collector
	exporter       *otlp.Exporter
	telemetryTried bool
	settled        func() // to be called once what goes on for long has begun
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "helve",
		Short: "The tool runtime for LLM agents",
		Long: `Helve indexes every tool, presents them by budget, and takes every call through
one guarded pipeline. It is an MCP server and client: put it in front of the
client that you have.`,
		Example: `  # serve the built-in tools of this folder over HTTP
  helve serve

  # the line for an MCP client's configuration
  helve mcp --print-config

  # do from the shell what a model does
  helve tools search "delete a file"
  helve tools call filesystem.read '{"path":"README.md"}'`,
		SilenceUsage: true, SilenceErrors: true, DisableSuggestions: true,
		Version: version(),
	}
	root.SetVersionTemplate("helve {{.Version}}\n")
	root.SetUsageTemplate(c.usageTemplate())
	f := root.PersistentFlags()
	f.StringVar(&c.appFile, "app", "", "the app file (YAML); the built-in defaults if left out")
	f.StringVar(&c.root_, "root", ".", "the folder that tools may touch")
	f.StringVar(&c.state, "state", "", "the folder of what Helve keeps (default ROOT/.helve)")
	f.StringVar(&c.store, "store", "", "postgres://…, a file, or memory (default STATE/helve.db)")
	f.BoolVar(&c.json, "json", false, "print JSON")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "log what happens to standard error")
	root.MarkPersistentFlagFilename("app", "yaml", "yml")
	root.MarkPersistentFlagDirname("root")
	root.AddCommand(
		c.serveCommand(),
		c.mcpCommand(),
		c.runCommand(),
		c.chatCommand(),
		c.sessionsCommand(),
		c.tokensCommand(),
		c.importCommand(),
		c.secretsCommand(),
		c.loginCommand(),
		c.logoutCommand(),
		c.toolsCommand(),
		c.lexiconCommand(),
		c.modelCommand(),
		c.upstreamsCommand(),
		c.appCommand(),
		c.policyCommand(),
		c.approvalsCommand(),
		c.auditCommand(),
		c.costCommand(),
		c.ledgerCommand(),
		c.checkpointsCommand(),
		c.undoCommand(),
		c.parseCommand(),
		c.benchCommand(),
		c.doctorCommand(),
		c.versionCommand(),
		c.watchCommand(),
		c.confineCommand(),
	)
	checkArguments(root)
	return root
}

// usageTemplate is cobra's, with its headings in bold on a terminal.
func (c *cli) usageTemplate() string {
	s := c.style(c.out)
	var t strings.Builder
	for line := range strings.Lines(new(cobra.Command).UsageTemplate()) {
		text := strings.TrimSuffix(line, "\n")
		for _, heading := range []string{"Usage:", "Aliases:", "Examples:", "Available Commands:", "Additional Commands:", "Flags:", "Global Flags:", "Additional help topics:"} {
			text = strings.Replace(text, heading, s.bold(heading), 1)
		}
		t.WriteString(text + "\n")
	}
	return t.String()
}
