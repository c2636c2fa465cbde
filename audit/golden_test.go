package audit_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/audit"
)

// TestGoldenBundles: logs of earlier releases verify, and every decision in them
// that could be replayed then comes out the same today. A name ends with the rules
// of its log; what was written then is never written anew.
func TestGoldenBundles(t *testing.T) {
	bundles, err := filepath.Glob("testdata/golden/*.jsonl.gz")
	if err != nil || len(bundles) == 0 {
		t.Fatalf("no golden bundle: %v", err)
	}
	for _, path := range bundles {
		name := strings.TrimSuffix(path, ".jsonl.gz")
		t.Run(filepath.Base(name), func(t *testing.T) {
			raw, err := os.ReadFile(name + ".trust.json")
			if err != nil {
				t.Fatal(err)
			}
			trust, err := audit.ReadTrust(raw)
			if err != nil {
				t.Fatal(err)
			}
			r, err := audit.Verify(t.Context(), bytes.NewReader(unzipped(t, path)), audit.Options{Trust: trust, Replay: true})
			if err != nil {
				t.Fatal(err)
			}
			if !r.OK || !r.Anchored || !r.Complete || r.FirstBad != nil {
				t.Fatalf("%+v, first bad %+v", r, r.FirstBad)
			}
			for why := range r.Why {
				if !strings.HasPrefix(why, "refused for ") && why != "the order is withheld: it was erased" {
					t.Errorf("not replayed: %s", why)
				}
			}
			if r.Replayed == 0 || r.Replayed+r.Unreplayable < r.Orders {
				t.Errorf("%d orders, %d replayed, %d not", r.Orders, r.Replayed, r.Unreplayable)
			}
		})
	}
}

func unzipped(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
