package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browserMain is a browser whose user agrees to everything: it follows the
// redirects from the address to their end.
func browserMain() {
	c := &http.Client{Timeout: 20 * time.Second}
	resp, err := c.Get(os.Args[len(os.Args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
}

// authClientMain is the client that the conformance suite runs: an app file
// with the suite's server, and the commands that a person would type. What it
// is told to be is in the environment, the server's address the last argument.
func authClientMain() {
	dir, err := os.MkdirTemp("", "authclient")
	if err != nil {
		panic(err)
	}
	err = authClient(dir, os.Args[len(os.Args)-1])
	os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func authClient(dir, address string) error {
	var told struct {
		ID        string `json:"client_id"`
		Secret    string `json:"client_secret"`
		Key       string `json:"private_key_pem"`
		Assertion string `json:"valid_jwt"`
		IDToken   string `json:"idp_id_token"`
		IDClient  string `json:"idp_client_id"`
		IDIssuer  string `json:"idp_issuer"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &told); err != nil {
			return err
		}
	}
	oauth := map[string]any{"client_metadata_url": "https://conformance-test.local/client-metadata.json"}
	if told.ID != "" {
		oauth = map[string]any{"client_id": told.ID}
	}
	if told.Secret != "" {
		oauth["client_secret"] = "{{secret.CLIENT}}"
	}
	if told.Key != "" {
		oauth["private_key"] = "{{secret.KEY}}"
	}
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/client-credentials") {
		oauth["grant"] = "client_credentials"
	}
	if told.Assertion != "" {
		oauth["grant"], oauth["assertion_file"] = "jwt_bearer", "token"
	}
	if told.IDToken != "" {
		oauth["grant"] = "enterprise_managed"
		oauth["identity"] = map[string]any{"issuer": told.IDIssuer, "client_id": told.IDClient, "token_file": "token"}
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(told.Assertion+told.IDToken+"\n"), 0o600); err != nil {
		return err
	}
	file, err := json.Marshal(map[string]any{"app": map[string]any{"app_id": "c", "name": "C"},
		"security": map[string]any{"credentials": "file"},
		"tools": map[string]any{"capabilities": map[string]any{"default_policy": "auto", "max_risk_level": "high"},
			"mcp_servers": map[string]any{"s": map[string]any{"url": address, "oauth": oauth}}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "app.yaml"), file, 0o600); err != nil {
		return err
	}
	browser, err := exec.LookPath("browser")
	if err != nil {
		return err
	}
	helve := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "helve", append(args, "--app", "app.yaml")...)
		cmd.Dir = dir
		cmd.Env = environ("HELVE_CREDENTIALS_DIR="+filepath.Join(dir, "kept"), "HELVE_SECRET_CLIENT="+told.Secret, "HELVE_SECRET_KEY="+told.Key, "BROWSER="+browser)
		out, err := cmd.CombinedOutput()
		fmt.Fprintf(os.Stderr, "$ helve %s\n%s", strings.Join(args, " "), out)
		return string(out), err
	}
	for range 3 {
		if err = use(helve); err == nil || !strings.Contains(err.Error(), "helve login") {
			return err
		}
		if out, err := helve("login", "s", "--timeout", "10s"); err != nil && !strings.Contains(out, "helve login") {
			return err
		}
	}
	return err
}

// use calls every tool of the server.
func use(helve func(args ...string) (string, error)) error {
	out, err := helve("upstreams", "--json")
	if err != nil || strings.Contains(out, "needs_login") {
		return fmt.Errorf("%v: %s", err, out)
	}
	out, err = helve("tools", "list", "--json")
	if err != nil {
		return err
	}
	for _, name := range mcpTools.FindAllString(out, -1) {
		if out, err := helve("tools", "call", strings.Trim(name, `"`), "{}", "--yes"); err != nil {
			return fmt.Errorf("%v: %s", err, out)
		}
	}
	return nil
}

var mcpTools = regexp.MustCompile(`"mcp\.s\.[^"]+"`)

// authScenarios are those of the official suite, by the revision for which they
// are run.
var authScenarios = map[string][]string{
	"2025-03-26": {"auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"},
	"2025-06-18": {"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none"},
	"2025-11-25": {"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/basic-cimd",
		"auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined", "auth/scope-step-up",
		"auth/scope-retry-limit", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none",
		"auth/pre-registration"},
	"2026-07-28": {"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/basic-cimd",
		"auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined", "auth/scope-step-up",
		"auth/scope-retry-limit", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none",
		"auth/pre-registration", "auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported",
		"auth/authorization-server-migration", "auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing",
		"auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized", "auth/metadata-issuer-mismatch"},
	"extensions": {"auth/client-credentials-basic", "auth/client-credentials-jwt", "auth/wif-jwt-bearer", "auth/enterprise-managed-authorization",
		"auth/dpop", "auth/dpop-nonce"},
}

// The scenarios of authorisation, as a person at a terminal goes through them.
func TestConformanceAuth(t *testing.T) {
	node, suite := conformance24(t)
	lookPath(t, "browser")
	client := lookPath(t, "authclient")
	for version, scenarios := range authScenarios {
		for _, scenario := range scenarios {
			t.Run(version+"/"+scenario, func(t *testing.T) {
				t.Parallel()
				args := []string{suite, "client", "--command", client, "--scenario", scenario, "--timeout", "180000"}
				if version != "extensions" {
					args = append(args, "--spec-version", version)
				}
				cmd := exec.CommandContext(t.Context(), node, args...)
				cmd.Env = environ()
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), " 0 failed, 0 warnings") || strings.Contains(string(out), "SKIPPED: scenario") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}
