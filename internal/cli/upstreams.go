package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/mcpbridge"
)

const (
	askTimeout = 30 * time.Second // for a running helve to answer
	maxTold    = 64 << 20         // bytes of its answer
)

func (c *cli) upstreamsCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use: "upstreams", Short: "Show the upstream MCP servers and their states", Args: cobra.NoArgs,
		Long: `Show the upstream MCP servers of the app, each with its state:

  configured      its tools are not known yet
  manifest known  its tools are; it is started when one of them is called
  started         it runs, or is connected
  in use          calls are in flight
  needs login     somebody has to sign in: helve login SERVER
  needs setup     a secret, or a variable, that it refers to is not there
  failed          it did not start, or it crashed; it is tried again
  stopped         for good: it is disabled, or described wrongly

Servers whose tools are not known are started to be asked for them. With --at
the states are those of a helve serve that is running; it wants the token that
HELVE_TOKEN holds, if it has one.`,
		Example: "  helve upstreams --app helve.yaml\n  helve upstreams --at http://127.0.0.1:7777 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if at != "" {
				all, err := askUpstreams(cmd.Context(), at, os.Getenv("HELVE_TOKEN"))
				if err != nil {
					return err
				}
				return c.showUpstreams(all)
			}
			return c.inspect(cmd.Context(), func(a *app.App) error {
				c.awaitServers(cmd.Context(), a, waitPatience)
				return c.showUpstreams(a.Upstreams())
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the URL of a helve serve that is running")
	cmd.AddCommand(c.reviewCommand(), c.acceptCommand(), c.rejectCommand())
	return cmd
}

func (c *cli) showUpstreams(all []mcpbridge.ServerStatus) error {
	if c.json {
		return c.printJSON(map[string]any{"servers": all})
	}
	if len(all) == 0 {
		fmt.Fprintln(c.err, "There are no upstream servers. tools.mcp_servers of the app file names them; helve import takes them from a client's configuration.")
		return nil
	}
	rows := make([][]string, len(all))
	for i, u := range all {
		rows[i] = []string{u.Name, u.Transport, u.State.String(), strconv.Itoa(u.Tools), dash(u.Protocol), dash(u.Error)}
	}
	defer c.warnHeld(all)
	c.table([]string{"NAME", "TRANSPORT", "STATE", "TOOLS", "REVISION", "LAST ERROR"}, rows)
	return nil
}

// amount says how many tools a server offers.
func amount(u mcpbridge.ServerStatus) string {
	if u.Tools == 1 {
		return "1 tool"
	}
	return strconv.Itoa(u.Tools) + " tools"
}

// dash stands for what there is not.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// askUpstreams asks a helve serve for the states of its upstream servers.
func askUpstreams(ctx context.Context, url, token string) ([]mcpbridge.ServerStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if u, err := neturl.Parse(url); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usage("--at %s: want the URL that helve serve announced, such as http://127.0.0.1:7777", url)
	}
	const ask = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.list_servers","arguments":{}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(url, "/")+"/mcp", strings.NewReader(ask))
	if err != nil {
		return nil, usage("--at: %v", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no helve serve answers at %s: %w", url, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTold))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", url, err)
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s wants a token: set HELVE_TOKEN", url)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers with HTTP status %s; is it the URL that helve serve announced?", url, resp.Status)
	}
	return readUpstreams(body)
}

// readUpstreams reads the answer to such a question: a message, or a stream
// that ends with one.
func readUpstreams(body []byte) ([]mcpbridge.ServerStatus, error) {
	var msg struct {
		Result *struct {
			IsError bool
			Content []struct{ Text string }
		}
		Error *struct{ Message string }
	}
	for line := range bytes.Lines(body) {
		data := bytes.TrimPrefix(line, []byte("data:"))
		if json.Unmarshal(data, &msg) == nil && (msg.Result != nil || msg.Error != nil) {
			break
		}
	}
	switch {
	case msg.Error != nil:
		return nil, errors.New(msg.Error.Message)
	case msg.Result == nil || len(msg.Result.Content) == 0:
		return nil, errors.New("the answer is not one of helve serve")
	case msg.Result.IsError:
		return nil, errors.New(msg.Result.Content[0].Text)
	}
	var told struct{ Servers []mcpbridge.ServerStatus }
	if err := json.Unmarshal([]byte(msg.Result.Content[0].Text), &told); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return told.Servers, nil
}
