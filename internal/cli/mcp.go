package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/clientconf"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/internal/daemon"
)

func (c *cli) mcpCommand() *cobra.Command {
	var present, client, profile string
	var printConfig bool
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve the tools over standard input and output, for an MCP client's configuration",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if client, err := clientconf.ClientOf(args[0]); err == nil {
					return usage("helve mcp takes no client: helve mcp --print-config --client %s prints what %s needs, helve import --install %s writes it into its file", client.ID, client.Title, client.ID)
				}
				if ext := filepath.Ext(args[0]); ext == ".yaml" || ext == ".yml" {
					return usage("helve mcp takes its app by a flag: helve mcp --app %s", args[0])
				}
			}
			return cobra.NoArgs(cmd, args)
		},
		Long: `Serve the tools over standard input and output: the command that an MCP client
starts. --print-config prints what to put into the client's configuration, with
the view that suits each client: all tools for those that search tools
themselves, discovery for the rest. helve import --install writes it.

--present chooses how tools are shown: auto (decided by their size), full,
compact, or discovery (a few meta-tools). --profile bounds what the client may
use: groups (read, vault, edit, web, agent, mcp, skill), +NAME and -NAME (of a
tool, a module, a server such as mcp.github, or a pattern such as mcp.*.delete_*),
separated by commas, or the id of an agent of the app.`,
		Example: "  helve mcp --print-config\n  helve mcp --app helve.yaml --present discovery\n  helve mcp --profile read,web,-http.post",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"install", "uninstall"} {
				if f := cmd.Flag(name); f.Changed {
					return usage("it is another command that writes clients' files: helve import --%s %s", name, f.Value)
				}
			}
			mode, err := inject.ParseMode(present)
			if err != nil {
				return usage("--present: %v", err)
			}
			if client != "" && !printConfig {
				return usage("--client goes with --print-config")
			}
			if err := c.checkProfile(profile); err != nil {
				return err
			}
			c.profile = profile
			if printConfig {
				if !cmd.Flags().Changed("present") {
					present = ""
				}
				return c.printClientConfig(present, client)
			}
			return c.serveStdio(cmd.Context(), mode)
		},
	}
	for _, name := range []string{"install", "uninstall"} { // looked for here
		cmd.Flags().String(name, "", "")
		_ = cmd.Flags().MarkHidden(name) // it was just defined
	}
	cmd.Flags().StringVar(&present, "present", "auto", "auto, full, compact or discovery")
	cmd.Flags().StringVar(&profile, "profile", "", "what the client may use, such as read,web,-http.post")
	cmd.Flags().BoolVar(&printConfig, "print-config", false, "print the snippet for the common clients")
	cmd.Flags().StringVar(&client, "client", "", "with --print-config: for this client only ("+clientIDs()+")")
	return cmd
}

// checkProfile checks the text of a profile, against the app if there is one.
func (c *cli) checkProfile(text string) error {
	if text == "" {
		return nil
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	if _, err := cfg.Profile(text); err != nil {
		return usage("--profile: %v", err)
	}
	return nil
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
		l.App().WaitUpstreams(ctx)
		c.settled()
		l.Follow(ctx, daemon.FollowEvery)
	}()
	defer func() {
		cancel()
		<-following
		err = errors.Join(err, l.Close())
	}()
	server := daemon.MCP(l, daemon.MCPOptions{Profile: c.profile, Telemetry: c.telemetry, Log: c.logger(), Version: version()})
	err = server.ServeStdio(ctx, c.in, c.out, mode)
	end, ended := context.WithTimeout(context.WithoutCancel(ctx), stdioClose)
	defer ended()
	if late := server.Close(end); late != nil {
		c.logger().Debug("calls of the MCP server did not end in time", "error", late)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // it was told to end, and has answered what was under way
	}
	return err
}

// stdioClose is how long a server whose client has left may take to end.
const stdioClose = 2 * time.Second

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
	add("--profile", c.profile, false)
	return conf
}

// printClientConfig prints what to put into the clients' files, each with the
// view that suits it unless one is asked for. only names one client; "": all.
func (c *cli) printClientConfig(present, only string) error {
	clients := clientconf.Clients
	if only != "" {
		client, err := clientconf.ClientOf(only)
		if err != nil {
			return usage("--client: %v", err)
		}
		clients = []clientconf.Client{client}
	}
	if c.appFile != "" {
		if _, err := os.Stat(c.appFile); errors.Is(err, fs.ErrNotExist) {
			return noApp(c.appFile)
		}
	}
	if c.appFile == "" {
		if _, err := os.Stat(defaultAppFile); err == nil {
			fmt.Fprintf(c.err, "%s this leaves out %s, which is here: with --app %s the clients get its servers\n", c.style(c.err).warn("warning:"), defaultAppFile, defaultAppFile)
		}
	}
	if c.json {
		return c.printClientJSON(present, clients)
	}
	s := c.style(c.out)
	for _, client := range clients {
		conf := c.clientConfig(viewFor(client, present))
		body := client.Snippet(clientconf.Entry(conf))
		if client.ID == "claude-code" {
			body = "claude mcp add helve -- " + quoteAll([]string{conf.Command}) + " " + quoteAll(conf.Args)
		}
		why := ""
		if client.Why != "" && present == "" {
			why = ": " + client.Why
		}
		fmt.Fprintf(c.out, "%s (%s view%s)\n%s\n\n", s.bold(client.Title), viewFor(client, present), why, strings.TrimRight(body, "\n"))
		if client.Note != "" {
			fmt.Fprintf(c.out, "%s.\n\n", client.Note)
		}
	}
	return nil
}

// viewFor returns the view that was asked for, or the one that suits the client.
func viewFor(client clientconf.Client, present string) string {
	if present == "" {
		return client.View()
	}
	return present
}

func (c *cli) printClientJSON(present string, clients []clientconf.Client) error {
	type entry struct {
		Title  string       `json:"title"`
		View   string       `json:"view"`
		Server clientConfig `json:"server"`
	}
	byClient := map[string]entry{}
	for _, client := range clients {
		view := viewFor(client, present)
		byClient[client.ID] = entry{client.Title, view, c.clientConfig(view)}
	}
	general := c.clientConfig(cmp.Or(present, "auto"))
	if len(clients) == 1 {
		general = byClient[clients[0].ID].Server
	}
	return c.printJSON(map[string]any{"mcpServers": map[string]any{"helve": general}, "clients": byClient})
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
