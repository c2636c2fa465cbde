//go:build integration

package node

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/openid"
)

// TestIntegrationSignIn: at oidc-provider a person signs in to the console, and by the device flow; the
// tokens, which live for twenty seconds, are renewed; and whom the provider removes is out.
func TestIntegrationSignIn(t *testing.T) {
	modules := os.Getenv("WRIT_NODE_MODULES")
	if modules == "" {
		t.Fatal("WRIT_NODE_MODULES names no directory: run make integration")
	}
	place := func() string {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		return l.Addr().String()
	}
	issuer := "http://" + place()
	cfg := config(t.TempDir())
	cfg.Listen = place()
	cfg.PublicURL = "http://" + cfg.Listen + "/gate"
	scopes := []string{"openid", "offline_access"}
	cfg.People = openid.New([]openid.Provider{{
		Issuer: issuer, Client: openid.Client{ID: "writ", Secret: "hush-hush", Scopes: scopes},
		Users: []openid.User{{Subject: "s-ana", Tenant: "default", User: "ana", Roles: []string{"user"}}},
	}}, time.Now, slog.New(slog.DiscardHandler))
	run(t, open(t, cfg))

	provider := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "signin.mjs"), modules, issuer, cfg.PublicURL+"/console/signin", "s-ana")
	provider.Stderr = t.Output()
	out, err := provider.StdoutPipe()
	must(t, err)
	must(t, provider.Start())
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; { //nolint:revive // it waits
	}

	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar}
	get := func(resp *http.Response, err error) (*http.Response, string) {
		t.Helper()
		must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		return resp, string(text)
	}
	onward := func(resp *http.Response, text string) string {
		t.Helper()
		_, to, ok := strings.Cut(resp.Header.Get("Refresh"), "url=")
		if !ok {
			t.Fatalf("%s: HTTP %d sends nobody on\n%s", resp.Request.URL, resp.StatusCode, text)
		}
		return to
	}
	to := onward(get(browser.PostForm(cfg.PublicURL+"/console/signin", url.Values{"issuer": {issuer}, "next": {"/console/plans"}})))
	if to = onward(get(browser.Get(to))); to != "/gate/console/plans" {
		t.Errorf("goes on to %s", to)
	}
	plans := func() (string, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.PublicURL+"/console/plans", nil)
		must(t, err)
		req.Header.Set("Accept", "text/html")
		resp, text := get(browser.Do(req))
		return resp.Request.URL.Path, text
	}
	if at, text := plans(); at != "/gate/console/plans" || !strings.Contains(text, "ana of default") {
		t.Errorf("is at %s\n%s", at, text)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := openid.Login{Issuer: issuer, ClientID: "writ-cli", Scopes: scopes, Resource: cfg.PublicURL + "/mcp"}
	must(t, l.Device(ctx, func(_, code string) {
		if _, text := get(http.Get(issuer + "/enter?code=" + url.QueryEscape(code))); !strings.Contains(text, "Success") {
			t.Errorf("the code is not taken: %s", text)
		}
	}))
	token, renewed, err := l.AccessToken(ctx) // it lives shorter than what is renewed ahead
	if err != nil || !renewed || l.Token.RefreshToken == "" {
		t.Errorf("renewed: %v, %v", renewed, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.PublicURL+"/v1/intents?limit=1", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	if resp, text := get(http.DefaultClient.Do(req)); resp.StatusCode != http.StatusOK {
		t.Errorf("HTTP %d %s", resp.StatusCode, text)
	}

	get(http.Get(issuer + "/remove"))
	if at, text := plans(); at != "/gate/console/login" {
		t.Errorf("whom the provider has removed is at %s\n%s", at, text)
	}
	if _, _, err := l.AccessToken(ctx); err == nil {
		t.Error("and has a new token")
	}
}
