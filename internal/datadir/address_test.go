package datadir

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// A data directory names an address of this machine, or none.
func TestReadAddress(t *testing.T) {
	dir := t.TempDir()
	if got, err := ReadAddress(dir); got.URL != "" || err != nil {
		t.Errorf("a directory without one: %q, %v", got, err)
	}
	for text, ok := range map[string]bool{
		"http://127.0.0.1:8080\n": true, "http://[::1]:9": true,
		"": false, "http://198.51.100.7:8080": false, "http://example.com": false, "http://localhost.example:80": false,
		"https://127.0.0.1:8080\n/etc/tls.crt\n": true, "https://127.0.0.1:8080": false, "http://127.0.0.1:8080/x": false, "http://me@127.0.0.1:8080": false, "file:///etc": false,
	} {
		if err := os.WriteFile(AddressFile(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadAddress(dir); (err == nil) != ok || (got.URL != "") != ok {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if filepath.Dir(AddressFile(dir)) != dir {
		t.Error("it is not in the directory")
	}
}

// What listens everywhere is reached at the loopback address.
func TestReachable(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "[::1]:80", "10.0.0.7:80": "10.0.0.7:80",
	} {
		if got := reachable(netip.MustParseAddrPort(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
