package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/cell"
)

// authority is a CA that has signed the certificate of a server on this machine.
func authority(t *testing.T) (ca []byte, certFile, keyFile string) {
	t.Helper()
	made := func(of *x509.Certificate) *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
		of.SerialNumber, of.NotBefore, of.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		return key
	}
	root := &x509.Certificate{IsCA: true, BasicConstraintsValid: true}
	leaf := &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	rootKey, key := made(root), made(leaf)
	signed, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	must(t, err)
	cert, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), rootKey)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	must(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), certFile, keyFile
}

// TestBusTLS: a process connects to NATS servers over TLS, and only to those that it can check.
func TestBusTLS(t *testing.T) {
	seeds := filepath.Join(t.TempDir(), "seeds")
	text, _, err := cell.Accounts([]string{"router:a"}, nil, seeds)
	must(t, err)
	ca, certFile, keyFile := authority(t)
	other, _, _ := authority(t)
	plain := natsWith(t, text)
	secure := natsWith(t, fmt.Appendf(text, "\ntls { cert_file: %q, key_file: %q }\n", certFile, keyFile))
	tlsOf := func(url string) string { return "tls://" + url[strings.Index(url, "://")+3:] }
	for name, c := range map[string]struct {
		url     string
		ca      []byte
		refused string // empty: it connects
	}{
		"the CA":                           {tlsOf(secure), ca, ""},
		"the CA, and nats://":              {strings.Replace(tlsOf(secure), "tls", "nats", 1), ca, ""},
		"another CA":                       {tlsOf(secure), other, "--bus-ca"},
		"the CAs of the machine":           {tlsOf(secure), nil, "--bus-ca"},
		"another CA, and nats://":          {strings.Replace(tlsOf(secure), "tls", "nats", 1), other, "--bus-ca"},
		"no CA":                            {tlsOf(secure), []byte("none"), "bus_ca: holds no PEM certificate"},
		"a server without TLS":             {tlsOf(plain), nil, "secure connection not available"},
		"the CA, for a server without TLS": {plain, ca, "secure connection not available"},
	} {
		conn, err := cell.Bus{URLs: []string{c.url}, CA: c.ca, Seeds: seeds, Instance: "a"}.Connect(t.Context(), "router")
		if err == nil {
			conn.Close()
		}
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
	}
}
