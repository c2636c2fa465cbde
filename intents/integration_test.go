//go:build integration

package intents

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestIntegrationScanner is TestScannerAgreesWithJCS at length.
func TestIntegrationScanner(t *testing.T) { scannerAgrees(t, 1_000_000) }

// TestIntegrationSecondImplementation: JavaScript with jose and canonicalize agrees
// with Go on every vector.
func TestIntegrationSecondImplementation(t *testing.T) {
	modules := os.Getenv("WRIT_NODE_MODULES")
	if modules == "" {
		t.Fatal("WRIT_NODE_MODULES is not set: run make integration")
	}
	// Modules are looked up next to the script that imports them.
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/second")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "verify.mjs"), testdata)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	type answer struct {
		Name     string `json:"name"`
		Code     Code   `json:"code"`
		IntentID string `json:"intent_id"`
	}
	said := map[string]answer{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var a answer
		if err := dec.Decode(&a); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		said[a.Name] = a
	}
	want := vectors()
	if len(said) != len(want) || len(want) < leastVectors {
		t.Errorf("%d answers to %d vectors", len(said), len(want))
	}
	for _, v := range want {
		if got := said[v.Name]; got.Code != v.Expect || got.IntentID != v.IntentID {
			t.Errorf("%s: the second implementation says %q %s, want %s %s", v.Name, got.Code, got.IntentID, v.Expect, v.IntentID)
		}
	}
}
