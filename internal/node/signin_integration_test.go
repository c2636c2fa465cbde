//go:build integration

package node

import (
	"bufio"
	"context"
	"io"
	"log/slog"
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

// TestIntegrationSignIn: at oidc-provider a person signs in to the console, by the device flow, and with
// the Python SDK, which /mcp sends there; the tokens, which live for twenty seconds, are renewed; and whom
// the provider removes is out.
func TestIntegrationSignIn(t *testing.T) {
	modules := nodeModules(t)
	issuer := "http://" + freePlace(t)
	cfg := config(t.TempDir())
	cfg.Listen = freePlace(t)
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
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
	}

	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar}
	ask := func(method, at string, form url.Values, header http.Header) (where string, status int, to, text string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(form.Encode()))
		must(t, err)
		req.Header = header
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		resp, err := browser.Do(req)
		must(t, err)
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		must(t, err)
		_, to, _ = strings.Cut(resp.Header.Get("Refresh"), "url=")
		return resp.Request.URL.Path, resp.StatusCode, to, string(raw)
	}
	page := http.Header{"Accept": {"text/html"}}
	_, _, to, text := ask(http.MethodPost, cfg.PublicURL+"/console/signin", url.Values{"issuer": {issuer}, "next": {"/console/plans"}}, page)
	if to == "" {
		t.Fatal(text)
	}
	if _, status, to, text := ask(http.MethodGet, to, nil, page); to != "/gate/console/plans" {
		t.Errorf("goes on to %q: HTTP %d\n%s", to, status, text)
	}
	plans := func() (where, text string) {
		where, _, _, text = ask(http.MethodGet, cfg.PublicURL+"/console/plans", nil, page)
		return where, text
	}
	if at, text := plans(); at != "/gate/console/plans" || !strings.Contains(text, "ana of default") {
		t.Errorf("is at %s\n%s", at, text)
	}

	python := os.Getenv("WRIT_PYTHON")
	if python == "" {
		t.Fatal("WRIT_PYTHON names no interpreter: run make integration")
	}
	sdk := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "oauth.py"), cfg.PublicURL+"/mcp", "run_task")
	sdk.Stderr = t.Output()
	if raw, err := sdk.Output(); err != nil || !strings.Contains(string(raw), `"asked": true`) || !strings.Contains(string(raw), `"run_task"`) {
		t.Errorf("the Python SDK: %s %v", raw, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := openid.Login{Issuer: issuer, ClientID: "writ-cli", Scopes: scopes, Resource: cfg.PublicURL + "/mcp"}
	must(t, l.Device(ctx, func(_, code string) {
		if _, _, _, text := ask(http.MethodGet, issuer+"/enter?code="+url.QueryEscape(code), nil, http.Header{}); !strings.Contains(text, "Success") {
			t.Errorf("the code is not taken: %s", text)
		}
	}))
	token, renewed, err := l.AccessToken(ctx) // it lives shorter than what is renewed ahead
	if err != nil || !renewed || l.Token.RefreshToken == "" {
		t.Errorf("renewed: %v, %v", renewed, err)
	}
	if _, status, _, text := ask(http.MethodGet, cfg.PublicURL+"/v1/intents?limit=1", nil, http.Header{"Authorization": {"Bearer " + token}}); status != http.StatusOK {
		t.Errorf("HTTP %d %s", status, text)
	}

	ask(http.MethodGet, issuer+"/remove", nil, http.Header{})
	if at, text := plans(); at != "/gate/console/login" {
		t.Errorf("whom the provider has removed is at %s\n%s", at, text)
	}
	if _, _, err := l.AccessToken(ctx); err == nil {
		t.Error("and has a new token")
	}
}
