//go:build integration

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Where others' software is at hand, every log that a test leaves is also judged by the second
// implementation of the auditor.
func init() {
	second = func(t *testing.T, trust, bundle []byte) {
		t.Helper()
		dir := t.TempDir()
		files := map[string][]byte{"trust.json": trust, "bundle": bundle}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("node", filepath.Join("..", "..", "intents", "testdata", "second", "journal.mjs"), filepath.Join(dir, "trust.json"), filepath.Join(dir, "bundle"))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("the second auditor: %v: %s", err, stderr.Bytes())
			return
		}
		var says struct {
			OK       bool   `json:"ok"`
			Position int64  `json:"position"`
			Reason   string `json:"reason"`
		}
		if err := json.Unmarshal(out, &says); err != nil || !says.OK {
			t.Errorf("the second auditor: record %d: %s %v", says.Position, says.Reason, err)
		}
	}
}
