//go:build integration

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/openid"
)

// nodeModules are the packages of .ci/node.
func nodeModules(t *testing.T) string {
	t.Helper()
	modules := os.Getenv("WRIT_NODE_MODULES")
	if modules == "" {
		t.Fatal("WRIT_NODE_MODULES names no directory: run make integration")
	}
	return modules
}

// freePlace is an address that nobody listens on.
func freePlace(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return l.Addr().String()
}

// TestIntegrationOAuth: the TypeScript SDK logs a person in by itself at oidc-provider, as /mcp tells it, and
// calls a skill as the user whom the settings name. The skill server never sees the token, and the ID
// token opens nothing.
func TestIntegrationOAuth(t *testing.T) {
	modules := nodeModules(t)
	issuer := "http://" + freePlace(t)
	skills := server.NewMCPServer("skills", "1", server.WithToolCapabilities(false))
	skills.AddTool(mcp.NewTool("feed", mcp.WithReadOnlyHintAnnotation(true), mcp.WithDestructiveHintAnnotation(false), mcp.WithOpenWorldHintAnnotation(false)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("news"), nil
	})
	serve := server.NewStreamableHTTPServer(skills, server.WithStateLess(true))
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the client's token goes on to the skill server")
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(upstream.Close)
	cfg := config(t.TempDir())
	cfg.Skills = []string{"trust=true -- " + upstream.URL + "/mcp"}
	cfg.Listen = freePlace(t)
	cfg.PublicURL = "http://" + cfg.Listen + "/gate"
	cfg.People = openid.New([]openid.Provider{{Issuer: issuer, Users: []openid.User{{Subject: "s-ana", Tenant: "default", User: "ana", Roles: []string{"user"}}}}}, time.Now, slog.New(slog.DiscardHandler))
	n := open(t, cfg)
	run(t, n)
	// All of its skills are approved, since it only reads and is trusted.
	if _, there := pins(n)["feed"]; !there {
		t.Fatal("the skill is not approved")
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "oauth.mjs"), modules, issuer, cfg.PublicURL+"/mcp", "s-ana", "feed")
	var said strings.Builder
	cmd.Stderr = &said
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var got struct {
		Asked  bool
		Tools  []string
		Called struct {
			Content []struct{ Text string }
			Meta    map[string]any `json:"_meta"`
		}
		Typ       string
		IDToken   int `json:"id_token"`
		Challenge string
	}
	must(t, json.Unmarshal(raw[strings.IndexByte(string(raw), '{'):], &got))
	if !got.Asked || !slices.Contains(got.Tools, "feed") || len(got.Called.Content) != 1 || got.Called.Content[0].Text != "news" || got.Called.Meta["aob.dev/receipt"] == nil || got.Typ != "at+jwt" {
		t.Errorf("%+v", got)
	}
	if got.IDToken != 401 || !strings.Contains(got.Challenge, cfg.PublicURL+"/.well-known/oauth-protected-resource/mcp") {
		t.Errorf("the ID token: %d %s", got.IDToken, got.Challenge)
	}
	a, err := n.Archive(t.Context())
	must(t, err)
	var bundle bytes.Buffer
	_, err = audit.Export(t.Context(), &bundle, a.Source, audit.Selection{})
	must(t, err)
	trust := audit.NewTrust(a.Root)
	if r, err := audit.Verify(t.Context(), &bundle, audit.Options{Trust: &trust, Replay: true}); err != nil || !r.OK || !r.Anchored || r.Intents < 4 {
		t.Errorf("%+v %v %v", r, r.FirstBad, err)
	}
}
