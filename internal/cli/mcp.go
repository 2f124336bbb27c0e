package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/internal/daemon"
)

func (c *cli) mcpCommand() *cobra.Command {
	var present string
	var printConfig bool
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve the tools over standard input and output, for an MCP client's configuration", Args: cobra.NoArgs,
		Long: `Serve the tools over standard input and output: the command that an MCP client
starts. --print-config prints what to put into the client's configuration.

--present chooses how tools are shown: auto (decided by their size), full,
compact, or discovery (a few meta-tools).`,
		Example: "  helve mcp --print-config\n  helve mcp --app helve.yaml --present discovery",
		RunE: func(cmd *cobra.Command, _ []string) error {
			mode, err := inject.ParseMode(present)
			if err != nil {
				return usage("--present: %v", err)
			}
			if printConfig {
				return c.printClientConfig(present)
			}
			return c.serveStdio(cmd.Context(), mode)
		},
	}
	cmd.Flags().StringVar(&present, "present", "auto", "auto, full, compact or discovery")
	cmd.Flags().BoolVar(&printConfig, "print-config", false, "print the snippet for the common clients")
	return cmd
}

func (c *cli) serveStdio(ctx context.Context, mode inject.Mode) (err error) {
	l, err := c.openLive(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	following := make(chan struct{})
	go func() {
		defer close(following)
		l.Follow(ctx, daemon.FollowEvery)
	}()
	defer func() {
		cancel()
		<-following
		err = errors.Join(err, l.Close())
	}()
	err = daemon.MCP(l, c.logger(), version()).ServeStdio(ctx, c.in, c.out, mode)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // it was told to end, and has answered what was under way
	}
	return err
}

// A clientConfig is what an MCP client's configuration says of one server.
type clientConfig struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// clientConfig returns how a client would start this helve with these flags.
func (c *cli) clientConfig(present string) clientConfig {
	conf := clientConfig{Command: "helve", Args: []string{"mcp"}}
	if exe, err := os.Executable(); err == nil && !strings.Contains(exe, "go-build") {
		conf.Command = exe
	}
	add := func(flag, value string, isPath bool) {
		if value == "" {
			return
		}
		if abs, err := filepath.Abs(value); err == nil && isPath {
			value = abs
		}
		conf.Args = append(conf.Args, flag, value)
	}
	add("--app", c.appFile, true)
	add("--root", c.root_, true)
	add("--state", c.state, true)
	add("--store", c.store, false)
	if present != "auto" {
		add("--present", present, false)
	}
	return conf
}

func (c *cli) printClientConfig(present string) error {
	conf := c.clientConfig(present)
	if c.json {
		return c.printJSON(map[string]any{"mcpServers": map[string]any{"helve": conf}})
	}
	servers, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"helve": conf}}, "", "  ")
	if err != nil {
		return err
	}
	vscode, err := json.MarshalIndent(map[string]any{"servers": map[string]any{"helve": struct {
		Type string `json:"type"`
		clientConfig
	}{"stdio", conf}}}, "", "  ")
	if err != nil {
		return err
	}
	s := c.style(c.out)
	part := func(title, body string) { fmt.Fprintf(c.out, "%s\n%s\n\n", s.bold(title), body) }
	part("Claude Code", "claude mcp add helve -- "+conf.Command+" "+quoteAll(conf.Args))
	part("Claude Desktop, Cursor, Windsurf, Gemini CLI (mcpServers)", string(servers))
	part("VS Code (.vscode/mcp.json)", string(vscode))
	part("Codex (~/.codex/config.toml)", codexTOML(conf))
	return nil
}

func codexTOML(conf clientConfig) string {
	args := make([]string, len(conf.Args))
	for i, a := range conf.Args {
		args[i] = tomlString(a)
	}
	return fmt.Sprintf("[mcp_servers.helve]\ncommand = %s\nargs = [%s]", tomlString(conf.Command), strings.Join(args, ", "))
}

// tomlString quotes s as a basic string of TOML, whose escapes are those of JSON.
func tomlString(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// quoteAll joins words for a shell.
func quoteAll(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if strings.ContainsAny(w, " \t\n\"'\\$`&|;<>()*?[]#~!{}") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
