package node

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/datadir"
)

// TestTLS: the HTTP listener takes TLS alone, with the certificate that its files have now. Commands
// on this machine know it by its key. What cannot be used leaves the last one in use.
func TestTLS(t *testing.T) {
	ca, certFile, keyFile := authority(t)
	cfg := config(t.TempDir())
	cfg.TLSCert, cfg.TLSKey, cfg.PublicURL = certFile, keyFile, "https://writ.example/gate"
	var later atomic.Int64
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	n := open(t, cfg)
	run(t, n)
	at, err := datadir.ReadAddress(cfg.Dir)
	must(t, err)
	if at.URL != n.URL() || !strings.HasPrefix(at.URL, "https://127.0.0.1:") {
		t.Fatalf("%+v, %s", at, n.URL())
	}
	ready := func(ca []byte, path string) error {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
		resp, err := (&http.Client{Transport: tr}).Get(n.URL() + path)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
		return resp.Body.Close()
	}
	must(t, ready(ca, "/readyz"))
	must(t, ready(ca, "/gate/readyz"))
	must(t, ready(ca, "/gate/console/login"))
	must(t, ready(ca, "/.well-known/oauth-protected-resource/gate/mcp"))
	if resp, err := http.Get("http" + strings.TrimPrefix(n.URL(), "https") + "/readyz"); err == nil {
		if resp.StatusCode == http.StatusOK {
			t.Error("it answers without TLS")
		}
		_ = resp.Body.Close()
	}
	must(t, client.Expect(at.URL, at.Cert))
	var got json.RawMessage
	must(t, client.Client{URL: at.URL}.Get(t.Context(), "/readyz", &got))

	otherCA, otherCert, otherKey := authority(t)
	replace := func(to, from string) {
		raw, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(to, raw, 0o600))
		later.Add(int64(certificateAge))
	}
	replace(certFile, otherCert) // its key has not arrived yet
	must(t, ready(ca, "/readyz"))
	if !n.health.Up("tls_cert") {
		t.Error("no condition names the broken pair")
	}
	replace(keyFile, otherKey)
	must(t, ready(otherCA, "/readyz"))
	if n.health.Up("tls_cert") || ready(ca, "/readyz") == nil {
		t.Error("the last certificate is still in use")
	}
	must(t, os.Remove(certFile))
	replace(keyFile, otherKey)
	must(t, ready(otherCA, "/readyz"))
	if !n.health.Up("tls_cert") {
		t.Error("no condition names the missing file")
	}

	must(t, os.WriteFile(certFile, ca, 0o600)) // of another key
	if err := client.Expect(at.URL, certFile); err != nil {
		t.Fatal(err)
	}
	if err := (client.Client{URL: at.URL}).Get(t.Context(), "/readyz", &got); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("a server with another key: %v", err)
	}
	cfg = config(t.TempDir())
	cfg.TLSCert, cfg.TLSKey = certFile, otherKey
	if n, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "tls_cert") {
		t.Errorf("it starts with a pair that does not fit: %v", err)
		_ = n.Close()
	}
}

// TestConsoleURL: without public_url a cookie of the console is kept to TLS where writ itself serves it.
func TestConsoleURL(t *testing.T) {
	t.Parallel()
	l, err := listen(t.Context(), "127.0.0.1:0", "--listen")
	must(t, err)
	defer l.Close()
	for public, wants := range map[string][2]string{"": {"", "https://" + l.Addr().String()}, "http://writ.example": {"http://writ.example", "http://writ.example"}} {
		n := &Node{cfg: Config{PublicURL: public}, listener: l}
		plain := n.consoleURL()
		n.secure = &tls.Config{MinVersion: tls.VersionTLS12}
		if got := [2]string{plain, n.consoleURL()}; got != wants {
			t.Errorf("%q: %q, want %q", public, got, wants)
		}
	}
}
