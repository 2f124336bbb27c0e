package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/helve-ai/helve/llm/provider"
	"github.com/helve-ai/helve/mcpbridge"
)

// upstreamOptions returns what does not depend on whether the app is open.
func (o Options) upstreamOptions() mcpbridge.UpstreamOptions {
	out := mcpbridge.UpstreamOptions{Log: o.Log, Version: o.Version, Watchdog: o.Watchdog, Credentials: o.Credentials,
		AllowHosts: o.Config.Security.AllowHosts, Telemetry: o.Telemetry}
	if out.Log == nil {
		out.Log = slog.New(slog.DiscardHandler)
	}
	if o.File != "" {
		out.LoginCommand = "helve login --app " + quoteShell(o.File)
	}
	return out
}

// quoteShell quotes a file's name where shells would read it otherwise.
func quoteShell(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t'\"$&|;<>()*?[]#~`!{}", r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// Login signs a person in to an upstream server of the app that o describes,
// which need not be open.
func Login(ctx context.Context, o Options, server string, lo mcpbridge.LoginOptions) (*mcpbridge.LoginReport, error) {
	up, err := o.upstream(server)
	if err != nil {
		return nil, err
	}
	return mcpbridge.Login(ctx, up, o.upstreamOptions(), lo)
}

// Logout forgets the login to an upstream server, and reports whether there
// was one.
func Logout(ctx context.Context, o Options, server string) (bool, error) {
	up, err := o.upstream(server)
	if err != nil {
		return false, err
	}
	return mcpbridge.Logout(ctx, up, o.upstreamOptions())
}

// upstream returns the named upstream server, secrets filled in.
func (o Options) upstream(server string) (mcpbridge.Upstream, error) {
	servers := o.Config.Tools.MCPServers
	if _, known := servers[server]; !known {
		names := slices.Sorted(maps.Keys(servers))
		if len(names) == 0 {
			return mcpbridge.Upstream{}, fmt.Errorf("there is no MCP server %q: the app has none (tools.mcp_servers; --app names the file)", server)
		}
		return mcpbridge.Upstream{}, fmt.Errorf("there is no MCP server %q; there are: %s", server, strings.Join(names, ", "))
	}
	up, err := o.Config.upstream(server, o.Root, o.Secret)
	if err != nil {
		return up, fmt.Errorf("tools.mcp_servers.%s: %w", server, err)
	}
	return up, nil
}

// CopilotBrain returns what the app file says of GitHub Copilot: the client id
// and the address at which people sign in. ok is false if no brain is of it.
func (c *Config) CopilotBrain() (clientID, address string, ok bool) {
	for _, ag := range c.Agents {
		for b := ag.Brain; b != nil; b = b.Fallback {
			p, _ := provider.Named(b.Provider)
			if b.Backend != "github_copilot" && (b.Backend != "" || p.Backend != "github_copilot") {
				continue
			}
			var cfg struct {
				ClientID string `json:"client_id"`
				GitHub   string `json:"github_url"`
			}
			_ = json.Unmarshal(b.Config, &cfg) // checked when the file was read
			return cfg.ClientID, cfg.GitHub, true
		}
	}
	return "", "", false
}
