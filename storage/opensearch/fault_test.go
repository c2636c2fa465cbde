package opensearch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/egresstest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// TestFaults: a failing server is reported in words, with the setting that helps, and a
// password is not.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, b := range egresstest.Servers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := opensearch.Open(opensearch.Config{
				URL: strings.Replace(b.URL, "://", "://ana:confidential@", 1), Timeout: 3 * time.Second,
				Check: func(string, []byte, any) (string, string, bool) { return "", "", true },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			_, missing := d.Get(t.Context(), "acme", storage.IndexMemory, "a")
			for _, err := range []error{d.Look(t.Context()), missing} {
				b.Check(t, err, "no record is lost")
				if err != nil && (!strings.HasPrefix(err.Error(), "OpenSearch at http") || strings.Contains(err.Error(), "confidential")) {
					t.Error(err)
				}
			}
			if transient := strings.HasPrefix(b.Do, "start it"); transient && !errors.Is(missing, storage.ErrUnavailable) {
				t.Errorf("%v may pass", missing)
			}
		})
	}
}
