//go:build integration

package node

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// recipe is the block of docs/deploy.md that contains a text.
func recipe(t *testing.T, contains string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy.md"))
	must(t, err)
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], contains) {
			return block[1]
		}
	}
	t.Fatalf("docs/deploy.md has no block with %q", contains)
	return ""
}

// TestIntegrationProxies: behind nginx and Caddy, as docs/deploy.md sets them up, with TLS and a path,
// people log in to the console, clients use /mcp, and streams arrive as they are sent.
func TestIntegrationProxies(t *testing.T) {
	for name, proxy := range map[string]struct {
		program  string // variable with its path
		contains string
		config   func(text, at, cert, key, dir string) string
		args     []string
	}{
		"nginx": {"WRIT_NGINX", "proxy_buffering", func(text, at, cert, key, dir string) string {
			text = strings.NewReplacer("listen 443 ssl", "listen "+at+" ssl", "/etc/nginx/tls.crt", cert, "/etc/nginx/tls.key", key).Replace(text)
			return fmt.Sprintf("daemon off;\npid %[1]s/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\nclient_body_temp_path %[1]s/b;\nproxy_temp_path %[1]s/p;\nfastcgi_temp_path %[1]s/f;\nuwsgi_temp_path %[1]s/u;\nscgi_temp_path %[1]s/s;\n%[2]s}\n", dir, text)
		}, []string{"-e", "stderr", "-c"}},
		"caddy": {"WRIT_CADDY", "reverse_proxy", func(text, at, cert, key, _ string) string {
			return "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + strings.Replace(text, "writ.example {", fmt.Sprintf("https://%s {\n\ttls %s %s", at, cert, key), 1)
		}, []string{"run", "--adapter", "caddyfile", "--config"}},
	} {
		t.Run(name, func(t *testing.T) {
			program := os.Getenv(proxy.program)
			if program == "" {
				t.Fatalf("%s names no program: run make integration", proxy.program)
			}
			ca, cert, key := authority(t)
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			must(t, err)
			at := l.Addr().String()
			must(t, l.Close()) // for the proxy
			cfg := config(t.TempDir())
			cfg.PublicURL = "https://" + at + "/gate"
			n := open(t, cfg)
			run(t, n)
			dir := t.TempDir()
			text := strings.ReplaceAll(proxy.config(recipe(t, proxy.contains), at, cert, key, dir), "127.0.0.1:8080", n.Addr().String())
			file := filepath.Join(dir, "conf")
			must(t, os.WriteFile(file, []byte(text), 0o600))
			cmd := exec.CommandContext(t.Context(), program, append(proxy.args, file)...)
			cmd.Env, cmd.Stderr = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir), t.Output()
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			must(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Wait() }) // t's context has ended: it was interrupted
			checkProxied(t, cfg.PublicURL, n.APIKey, ca)
		})
	}
}

//nolint:bodyclose // ask has each body closed when the test ends
func checkProxied(t *testing.T, base, apiKey string, ca []byte) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	web := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer web.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ask := func(method, at, body string, header http.Header) *http.Response {
		r, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
		must(t, err)
		r.Header = header
		resp, err := web.Do(r)
		if err != nil {
			return nil
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for up := false; !up; { // until the proxy listens
		resp := ask("GET", base+"/readyz", "", http.Header{})
		if up = resp != nil && resp.StatusCode == http.StatusOK; !up {
			select {
			case <-again.C:
			case <-ctx.Done():
				t.Fatalf("the proxy serves nothing: %v", resp)
			}
		}
	}
	origin := strings.TrimSuffix(base, "/gate")
	login := ask("POST", base+"/console/login", url.Values{"key": {apiKey}}.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {origin}})
	if login.StatusCode != http.StatusSeeOther || login.Header.Get("Location") != "/gate/console/now" || len(login.Cookies()) != 1 || login.Cookies()[0].Path != "/gate/console" || !login.Cookies()[0].Secure {
		t.Fatalf("log in: %s %v", login.Status, login.Header)
	}
	session := http.Header{"Cookie": {login.Cookies()[0].Name + "=" + login.Cookies()[0].Value}}
	if page := ask("GET", origin+login.Header.Get("Location"), "", session); page.StatusCode != http.StatusOK {
		t.Errorf("the console: %s", page.Status)
	}
	live := ask("GET", base+"/console/live", "", session) // which stays open for minutes
	if line, err := bufio.NewReader(live.Body).ReadString('\n'); err != nil || line != "event: began\n" {
		t.Errorf("the stream's first line: %q, %v", line, err)
	}
	if about := ask("GET", origin+"/.well-known/oauth-protected-resource/gate/mcp", "", http.Header{}); about.StatusCode != http.StatusOK {
		t.Errorf("the metadata of /mcp: %s", about.Status)
	}
	mcp := http.Header{"X-Api-Key": {apiKey}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Origin": {origin}}
	begun := ask("POST", base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, mcp)
	if begun.StatusCode != http.StatusOK || begun.Header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("/mcp: %s", begun.Status)
	}
	mcp.Set("Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id"))
	list := ask("POST", base+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, mcp)
	raw, err := io.ReadAll(list.Body)
	if err != nil || !strings.Contains(string(raw), `"run_task"`) {
		t.Errorf("the tools: %s %s, %v", list.Status, raw, err)
	}
	if stranger := ask("POST", base+"/mcp", `{"jsonrpc":"2.0","id":3,"method":"ping"}`, http.Header{"X-Api-Key": {apiKey}, "Content-Type": {"application/json"}, "Origin": {"https://evil.example"}}); stranger.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another site: %s", stranger.Status)
	}
}
