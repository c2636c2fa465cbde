package audit_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"aob.dev/writ/audit"
)

// golden is a log that another build wrote. If a verdict or the format changes on
// purpose, write it again: go test ./audit -run TestGoldenLog -update-golden.
const golden = "testdata/golden/log"

var updateGolden = flag.Bool("update-golden", false, "write the log of testdata/golden anew")

// TestGoldenLog: it verifies, and every decision in it that could be replayed when it was
// written is decided the same today, so that a change of a verdict is noticed.
func TestGoldenLog(t *testing.T) {
	if *updateGolden {
		writeGolden(t)
	}
	trust, err := audit.ReadTrust(unzipped(t, golden+".trust.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := audit.Verify(t.Context(), bytes.NewReader(unzipped(t, golden+".jsonl.gz")), audit.Options{Trust: trust, Replay: true})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || !r.Anchored || !r.Complete || r.FirstBad != nil {
		t.Fatalf("%+v, first bad %+v", r, r.FirstBad)
	}
	for why := range r.Why {
		if !strings.HasPrefix(why, "refused for ") && why != "the intent is withheld: it was erased" {
			t.Errorf("not replayed: %s", why)
		}
	}
	if r.Replayed == 0 || r.Replayed+r.Unreplayable < r.Intents {
		t.Errorf("%d intents, %d replayed, %d not", r.Intents, r.Replayed, r.Unreplayable)
	}
}

func writeGolden(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	everything(w)
	zipped(t, golden+".jsonl.gz", w.export(w.Journal, audit.Selection{}))
	trust, err := json.Marshal(w.trust())
	w.Must(err)
	zipped(t, golden+".trust.json.gz", trust)
}

func zipped(t testing.TB, path string, content []byte) {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(content)
		err = errors.Join(err, z.Close())
	}
	if err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
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
