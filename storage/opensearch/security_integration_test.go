//go:build integration

package opensearch_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"aob.dev/writ/internal/testing/opensearchtest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// authority is the test's own certificate authority, and what it signed.
type authority struct {
	ca    []byte // PEM
	files map[string][]byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if raw, err = x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey); err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.files = map[string][]byte{
		"ca.pem": a.ca, "node.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		"node.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	}
	return a
}

const secureSettings = `plugins.security.ssl.transport.pemcert_filepath: node.pem
plugins.security.ssl.transport.pemkey_filepath: node.key
plugins.security.ssl.transport.pemtrustedcas_filepath: ca.pem
plugins.security.ssl.transport.enforce_hostname_verification: false
plugins.security.ssl.http.enabled: true
plugins.security.ssl.http.pemcert_filepath: node.pem
plugins.security.ssl.http.pemkey_filepath: node.key
plugins.security.ssl.http.pemtrustedcas_filepath: ca.pem
plugins.security.allow_default_init_securityindex: true
plugins.security.restapi.roles_enabled: ["all_access", "security_rest_api_access"]
`

// tokenKey signs the bearer tokens of the test.
var tokenKey = []byte("a key of the test's own, which is at least 256 bits long")

// secure is a server with the security plugin, and its administrator.
type secure struct {
	*testing.T
	url    string
	client *http.Client
}

func startSecure(t *testing.T, a authority) secure {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.ca)
	s := secure{T: t, client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}}
	files := a.files
	plugin := filepath.Join(os.Getenv("WRIT_OPENSEARCH_HOME"), "2.19.4", "plugins", "opensearch-security", "config")
	found, err := filepath.Glob(filepath.Join(plugin, "*.yml"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no configuration of the plugin: %v", err)
	}
	for _, path := range found {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) == "config.yml" {
			raw = withTokens(t, raw)
		}
		files["opensearch-security/"+filepath.Base(path)] = raw
	}
	server, err := opensearchtest.Start(context.Background(), opensearchtest.Options{
		Secure: true, Settings: secureSettings, Files: files,
		Ready: func(ctx context.Context, url string) error {
			s.url = url
			status, body, err := s.send(ctx, http.MethodGet, "/_cluster/health", "admin", "")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("%d %s", status, body)
			}
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// withTokens turns authentication by bearer token on.
func withTokens(t *testing.T, raw []byte) []byte {
	t.Helper()
	var c map[string]any
	if err := yaml.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	at := func(m map[string]any, name string) map[string]any {
		inner, ok := m[name].(map[string]any)
		if !ok {
			t.Fatalf("no %s", name)
		}
		return inner
	}
	jwt := at(at(at(at(c, "config"), "dynamic"), "authc"), "jwt_auth_domain")
	jwt["http_enabled"], jwt["order"] = true, 0
	auth := at(jwt, "http_authenticator")
	auth["challenge"] = false
	config := at(auth, "config")
	config["signing_key"] = base64.StdEncoding.EncodeToString(tokenKey)
	config["roles_key"] = "roles"
	out, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// token names a user and roles.
func token(t *testing.T, user string, roles ...string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"sub": user, "roles": roles, "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	input := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	mac := hmac.New(sha256.New, tokenKey)
	mac.Write([]byte(input))
	return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

const password = "Long-enough-4-a-test!"

func (s secure) send(ctx context.Context, method, path, user, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	switch user {
	case "":
	case "admin":
		req.SetBasicAuth(user, "admin")
	default:
		req.SetBasicAuth(user, password)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, raw, err
}

// admin does what must succeed.
func (s secure) admin(method, path string, body any) {
	s.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	status, answer, err := s.send(s.Context(), method, path, "admin", string(raw))
	if err != nil || status >= http.StatusBadRequest {
		s.Fatalf("%s %s: %d %s %v", method, path, status, answer, err)
	}
}

// TestIntegrationSecurity: the adapter speaks TLS with an authority of one's own,
// as a user with a password or with a bearer token, that may do no more than the
// role of deploy/opensearch; and a reader's role shows only its own tenant,
// whatever it asks.
func TestIntegrationSecurity(t *testing.T) {
	a := newAuthority(t)
	s := startSecure(t, a)
	raw, err := os.ReadFile("../../deploy/opensearch/roles.yml")
	if err != nil {
		t.Fatal(err)
	}
	var roles map[string]map[string]any
	if err := yaml.Unmarshal(raw, &roles); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"writ", "writ_reader"} {
		s.admin(http.MethodPut, "/_plugins/_security/api/roles/"+name, roles[name])
	}
	for user, role := range map[string]string{"writ": "writ", "acme": "writ_reader", "globex": "writ_reader", "nobody": "writ_reader"} {
		attributes := map[string]string{}
		if role == "writ_reader" && user != "nobody" {
			attributes["tenant"] = user
		}
		s.admin(http.MethodPut, "/_plugins/_security/api/internalusers/"+user, map[string]any{
			"password": password, "attributes": attributes, "opendistro_security_roles": []string{role},
		})
	}
	s.admin(http.MethodPut, "/_plugins/_security/api/rolesmapping/writ", map[string]any{"backend_roles": []string{"service"}, "users": []string{"writ"}})
	// This distribution has neither the k-NN plugin nor the analysis module: its
	// indices are made here, strict as ever.
	for _, index := range []string{storage.IndexSessions, storage.IndexSouls} {
		s.admin(http.MethodPut, "/"+index+"-000001", map[string]any{
			"aliases": map[string]any{index: map[string]any{}},
			"mappings": map[string]any{"dynamic": false, "properties": map[string]any{
				"tenant_id": map[string]string{"type": "keyword"},
				"writ":      map[string]any{"properties": map[string]any{"position": map[string]string{"type": "long"}, "id": map[string]string{"type": "keyword"}}},
			}},
		})
	}

	connect := func(change func(*opensearch.Config)) *opensearch.Documents {
		t.Helper()
		c := opensearch.Config{URL: s.url, CA: a.ca, Check: storage.NewCheck(storage.DefaultDimension)}
		change(&c)
		d, err := opensearch.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	basic := strings.Replace(s.url, "https://", "https://writ:"+password+"@", 1)
	ways := map[string]*opensearch.Documents{
		"password": connect(func(c *opensearch.Config) { c.URL = basic }),
		"token":    connect(func(c *opensearch.Config) { c.Authorization = "Bearer " + token(t, "pod", "service") }),
	}
	soul := func(tenant string) storage.Document {
		return storage.Document{ID: "s", Position: 1, Body: json.RawMessage(fmt.Sprintf(
			`{"id":"s","tenant_id":%q,"persona":{"name":"secret of %s","system_prompt":"x"},"updated_at":"2026-11-20T10:00:00Z"}`, tenant, tenant))}
	}
	for name, d := range ways {
		for _, tenant := range []string{"acme", "globex"} {
			if err := d.Put(t.Context(), tenant, storage.IndexSouls, soul(tenant)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, err := d.Get(t.Context(), tenant, storage.IndexSouls, "s"); err != nil || !bytes.Contains(got.Body, []byte("secret of "+tenant)) {
				t.Fatalf("%s: %s, %v", name, got.Body, err)
			}
		}
	}
	s.admin(http.MethodPost, "/"+storage.IndexSouls+"/_refresh", map[string]any{})

	for name, d := range map[string]*opensearch.Documents{
		"no credentials": connect(func(*opensearch.Config) {}),
		"password":       connect(func(c *opensearch.Config) { c.URL = strings.Replace(basic, password, "wrong", 1) }),
		"token":          connect(func(c *opensearch.Config) { c.Authorization = "Bearer " + token(t, "pod", "service") + "x" }),
		"role":           connect(func(c *opensearch.Config) { c.Authorization = "Bearer " + token(t, "pod", "none") }),
		"authority":      connect(func(c *opensearch.Config) { c.URL, c.CA = basic, newAuthority(t).ca }),
	} {
		if err := d.Put(t.Context(), "acme", storage.IndexSouls, soul("acme")); err == nil {
			t.Errorf("wrong %s: written", name)
		} else if strings.Contains(err.Error(), password) {
			t.Errorf("wrong %s: the error says the password", name)
		} else if name != "authority" && errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("wrong %s: %v, as if it would pass", name, err)
		}
	}

	for user, want := range map[string][]string{"acme": {"acme"}, "globex": {"globex"}, "nobody": nil, "writ": {"acme", "globex"}} {
		for _, path := range []string{
			"/" + storage.IndexSouls + "/_search", "/agent_souls-*/_search?q=tenant_id:acme%20OR%20tenant_id:globex", "/" + storage.IndexSouls + "-000001/_doc/acme%2Fs", "/" + storage.IndexSouls + "-000001/_doc/globex%2Fs",
		} {
			status, body, err := s.send(t.Context(), http.MethodGet, path, user, "")
			if err != nil || status == http.StatusUnauthorized || status == http.StatusForbidden {
				t.Fatalf("%s as %s: %d %s %v", path, user, status, body, err)
			}
			for _, tenant := range []string{"acme", "globex"} {
				shown, may := bytes.Contains(body, []byte("secret of "+tenant)), strings.Contains(strings.Join(want, " "), tenant)
				if shown && !may || !shown && may && strings.Contains(path, "_search") {
					t.Errorf("%s as %s: %s", path, user, body)
				}
			}
		}
	}
	for _, refused := range []struct{ user, method, path string }{
		{"acme", http.MethodPut, "/agent_souls/_doc/x"},
		{"acme", http.MethodDelete, "/agent_souls-000001"},
		{"writ", http.MethodGet, "/_plugins/_security/api/internalusers"},
		{"writ", http.MethodPut, "/others/_doc/x"},
	} {
		if status, body, err := s.send(t.Context(), refused.method, refused.path, refused.user, "{}"); err != nil || status != http.StatusForbidden {
			t.Errorf("%s %s as %s: %d %s %v", refused.method, refused.path, refused.user, status, body, err)
		}
	}
}
