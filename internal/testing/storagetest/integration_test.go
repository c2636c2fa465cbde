//go:build integration

package storagetest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"aob.dev/writ/internal/testing/opensearchtest"
	"aob.dev/writ/internal/testing/s3test"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobs3"
	"aob.dev/writ/storage/opensearch"
)

// TestIntegrationDocuments runs the suite that the embedded store passes, on a
// server that all its tests share.
func TestIntegrationDocuments(t *testing.T) {
	server := opensearchtest.Shared(t)
	shared := openSearch(t, server, "suite-")
	testDocuments(t, func(t testing.TB) storage.Documents {
		t.Helper()
		if strings.HasSuffix(t.Name(), "/TextPages") {
			// Weights of words follow from all documents of the index, and so do the
			// pages: this one must stand still.
			return openSearch(t, server, "pages-")
		}
		return shared
	})
}

func openSearch(t testing.TB, at, prefix string) *opensearch.Documents {
	t.Helper()
	d, err := opensearch.Open(opensearch.Config{URL: at, Prefix: prefix, Dimension: dimension, Check: storage.NewCheck(dimension)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestIntegrationBlobs runs the suite on prefixes of one bucket.
func TestIntegrationBlobs(t *testing.T) {
	const bucket = "writ-test"
	server, err := s3test.Start(t.Context(), bucket, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	credentials := filepath.Join(t.TempDir(), "credentials")
	text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", server.Key, server.Secret)
	if err := os.WriteFile(credentials, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	testBlobs(t, func(t testing.TB) storage.Blobs {
		t.Helper()
		at := fmt.Sprintf("s3://%s/a/p%d?endpoint=%s", bucket, n.Add(1), url.QueryEscape(server.URL))
		b, err := blobs3.Open(t.Context(), blobs3.Config{URL: at, Credentials: credentials})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	})
}
