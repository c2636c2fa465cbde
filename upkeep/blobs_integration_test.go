//go:build integration

package upkeep

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/testing/s3test"
)

// TestIntegrationBlobsOnS3: see blobsOn.
func TestIntegrationBlobsOnS3(t *testing.T) {
	s, err := s3test.Start(t.Context(), "writ-node", true)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	at := datadir.BlobsAt{CA: filepath.Join(t.TempDir(), "ca.pem"), Credentials: filepath.Join(t.TempDir(), "credentials")}
	must(t, os.WriteFile(at.CA, s.CA, 0o600))
	must(t, os.WriteFile(at.Credentials, fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", s.Key, s.Secret), 0o600))
	t.Setenv("AWS_PROFILE", "default")
	other := at
	at.URL = "s3://writ-node/a?endpoint=" + url.QueryEscape(s.URL)
	other.URL = "s3://writ-node/b?endpoint=" + url.QueryEscape(s.URL)
	blobsOn(t, at, other)
}
