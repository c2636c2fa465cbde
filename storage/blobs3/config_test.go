package blobs3_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobs3"
)

func TestConfigRefuses(t *testing.T) {
	for url, want := range map[string]string{
		"https://bucket":                          "s3://bucket",
		"s3://":                                   "s3://bucket",
		"s3://key:secret@bucket":                  "environment",
		"s3://B_ucket/x":                          "no name of a bucket",
		"s3://bucket/a/../b":                      "prefix",
		"s3://bucket?endpoint=host:9000":          "endpoint",
		"s3://bucket?endpoint=http://k:secret@h":  "environment",
		"s3://bucket?endpoint=http://h/path":      "endpoint",
		"s3://bucket?access_key=secret":           "neither endpoint nor region",
		"s3://bucket?endpoint=ftp://h":            "endpoint",
		"s3://bucket/%zz?endpoint=http://h:9000/": "s3://bucket",
	} {
		err := blobs3.Config{URL: url}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
	if err := (blobs3.Config{URL: "s3://bucket", CA: []byte("none")}).Validate(); err == nil {
		t.Error("no certificate is one")
	}
	for _, url := range []string{"s3://bucket", "s3://bucket/a/b/?endpoint=https://h:9000&region=eu-1"} {
		if err := (blobs3.Config{URL: url}).Validate(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestNobodyAsks: without a name no server is called; one that is not
// there may be tried again.
func TestNobodyAsks(t *testing.T) {
	t.Setenv("AWS_PROFILE", "default")
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(name, "")
	}
	cfg := blobs3.Config{URL: "s3://bucket?endpoint=http://127.0.0.1:1&region=x"}
	if _, err := blobs3.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "no credentials") {
		t.Errorf("nobody: %v", err)
	}
	cfg.Credentials = filepath.Join(t.TempDir(), "none")
	if _, err := blobs3.Open(t.Context(), cfg); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(cfg.Credentials, []byte("[default]\naws_access_key_id = key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := blobs3.Open(t.Context(), cfg); err == nil || errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("half a credential: %v", err)
	}
	if err := os.WriteFile(cfg.Credentials, []byte("[default]\naws_access_key_id = key\naws_secret_access_key = secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := blobs3.Open(t.Context(), cfg); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("no server: %v", err)
	}
}
