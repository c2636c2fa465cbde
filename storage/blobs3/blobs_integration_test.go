//go:build integration

package blobs3_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/s3test"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobs3"
)

const bucket = "writ-test"

func serve(t testing.TB, tls bool) *s3test.Server {
	t.Helper()
	s, err := s3test.Start(t.Context(), bucket, tls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func config(t testing.TB, s *s3test.Server, prefix string) blobs3.Config {
	t.Helper()
	return blobs3.Config{
		URL:         fmt.Sprintf("s3://%s/%s?endpoint=%s", bucket, prefix, url.QueryEscape(s.URL)),
		Credentials: credentials(t, "default", s.Key, s.Secret), CA: s.CA,
	}
}

// credentials writes a file of them.
func credentials(t testing.TB, profile, key, secret string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "credentials")
	text := fmt.Sprintf("[%s]\naws_access_key_id = %s\naws_secret_access_key = %s\n", profile, key, secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func open(t testing.TB, cfg blobs3.Config) *blobs3.Blobs {
	t.Helper()
	b, err := blobs3.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

const (
	large = 100_000_000
	// bound of what is allocated for that, all in all: a transfer in memory would
	// need the whole of it.
	bound = 16_000_000
)

// TestIntegrationLarge: 100 MB go through in bounded memory, there and back.
func TestIntegrationLarge(t *testing.T) {
	cfg := config(t, serve(t, false), "")
	cfg.Spool = t.TempDir()
	b := open(t, cfg)
	h := sha256.New()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ref, size, err := b.Keep(t.Context(), "acme", io.TeeReader(io.LimitReader(rand.Reader, large), h))
	if err != nil || size != large {
		t.Fatalf("%d bytes, %v", size, err)
	}
	if want := storage.RefPrefix + hex.EncodeToString(h.Sum(nil)); ref != want {
		t.Fatalf("%s, not %s", ref, want)
	}
	r, size, err := b.Fetch(t.Context(), "acme", ref)
	if err != nil || size != large {
		t.Fatalf("%d bytes, %v", size, err)
	}
	if n, err := io.Copy(io.Discard, r); n != large || err != nil { // the digest is checked
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > bound {
		t.Errorf("%d bytes were allocated", took)
	}
	left, err := os.ReadDir(cfg.Spool)
	if err != nil || len(left) != 0 {
		t.Errorf("left on this machine: %v, %v", left, err)
	}
}

// TestIntegrationPages: a listing of several answers is whole.
func TestIntegrationPages(t *testing.T) {
	b := open(t, config(t, serve(t, false), "pages"))
	b.SetPage(2)
	want := make(map[string]bool)
	for i := range 7 {
		ref, _, err := b.Keep(t.Context(), "acme", strings.NewReader(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		want[ref] = true
		if _, err := b.Put(t.Context(), storage.Scope{Tenant: "acme", Step: i}, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	refs, err := b.ListOld(t.Context(), "acme", -time.Hour)
	if err != nil || len(refs) != len(want) {
		t.Fatalf("%q, %v", refs, err)
	}
	for _, ref := range refs {
		if !want[ref] {
			t.Errorf("%s was never kept", ref)
		}
	}
	if n, err := b.Sweep(t.Context(), -time.Hour); n != len(want) || err != nil {
		t.Fatalf("sweep = %d, %v", n, err)
	}
}

// TestIntegrationDamage: bytes that were changed on the server are found, and
// repaired when they are stored again.
func TestIntegrationDamage(t *testing.T) {
	s := serve(t, false)
	b := open(t, config(t, s, "d"))
	ref, _, err := b.Keep(t.Context(), "acme", strings.NewReader("sound"))
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	err = filepath.WalkDir(filepath.Join(s.Root, bucket), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || e.Name() != strings.TrimPrefix(ref, storage.RefPrefix) {
			return err
		}
		changed++
		return os.WriteFile(path, []byte("fraud"), 0o600)
	})
	if err != nil || changed != 1 {
		t.Fatalf("%d changed, %v", changed, err)
	}
	for _, sound := range []bool{false, true} {
		r, _, err := b.Fetch(t.Context(), "acme", ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); (err == nil) != sound {
			t.Errorf("sound %v: %v", sound, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, _, err := b.Keep(t.Context(), "acme", strings.NewReader("sound")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIntegrationTLS: only a server whose certificate is signed as we say.
func TestIntegrationTLS(t *testing.T) {
	s := serve(t, true)
	cfg := config(t, s, "")
	b := open(t, cfg)
	if _, _, err := b.Keep(t.Context(), "acme", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	cfg.CA = nil
	if _, err := blobs3.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
}

// TestIntegrationOpenRefuses reports what is wrong, and never a secret.
func TestIntegrationOpenRefuses(t *testing.T) {
	s := serve(t, false)
	for want, change := range map[string]func(*blobs3.Config){
		"bucket nobodys at":    func(c *blobs3.Config) { c.URL = strings.Replace(c.URL, bucket, "nobodys", 1) },
		"does not permit this": func(c *blobs3.Config) { c.Credentials = credentials(t, "default", s.Key, "wrong") },
	} {
		cfg := config(t, s, "")
		change(&cfg)
		_, err := blobs3.Open(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, storage.ErrUnavailable) || strings.Contains(err.Error(), s.Secret) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestIntegrationCredentials come from a file, or from the environment.
func TestIntegrationCredentials(t *testing.T) {
	s := serve(t, false)
	cfg := config(t, s, "")
	cfg.Credentials = ""
	t.Setenv("AWS_ACCESS_KEY_ID", s.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	open(t, cfg)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_PROFILE", "writ")
	cfg.Credentials = credentials(t, "writ", s.Key, s.Secret)
	open(t, cfg)
}
