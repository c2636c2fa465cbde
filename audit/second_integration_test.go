//go:build integration

package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/audit"
)

// judged is the second implementation's result for a bundle.
type judged struct {
	Bundle   string `json:"bundle"`
	OK       bool   `json:"ok"`
	Position int64  `json:"position"`
	Reason   string `json:"reason"`
}

// secondSays asks the second implementation, which is JavaScript that shares nothing with
// the router and the auditor but docs/spec, of bundles of one log.
func secondSays(t *testing.T, trust string, bundles map[string][]byte) map[string]judged {
	t.Helper()
	dir := t.TempDir()
	args := []string{filepath.Join("..", "intents", "testdata", "second", "journal.mjs"), trust}
	for name, bundle := range bundles {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, bundle, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	says := map[string]judged{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var j judged
		if err := dec.Decode(&j); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		says[filepath.Base(j.Bundle)] = j
	}
	if len(says) != len(bundles) {
		t.Fatalf("%d answers about %d bundles", len(says), len(bundles))
	}
	return says
}

// TestIntegrationSecondAuditor: of every journal of testdata/illegal the second
// implementation has the same result, at the same record.
func TestIntegrationSecondAuditor(t *testing.T) {
	index := readIllegal(t)
	bundles := map[string][]byte{}
	for _, name := range index.Honest {
		bundles[name] = illegalBundle(t, name)
	}
	for _, j := range index.Illegal {
		bundles[j.Name] = illegalBundle(t, j.Name)
	}
	says := secondSays(t, filepath.Join(illegalDir, "trust.json"), bundles)
	for _, name := range index.Honest {
		if got := says[name]; !got.OK {
			t.Errorf("%s: not valid: record %d: %s", name, got.Position, got.Reason)
		}
	}
	for _, j := range index.Illegal {
		got := says[j.Name]
		if got.OK || got.Position != j.Position || strings.HasPrefix(got.Reason, "cannot be read") {
			t.Errorf("%s: %+v, want a no at %d: %s", j.Name, got, j.Position, j.Rule)
		}
	}
}

// TestIntegrationSecondAuditorOfHonestLogs: it accepts what routers wrote,
// in this build and in another, also once what may be erased was.
func TestIntegrationSecondAuditorOfHonestLogs(t *testing.T) {
	trust := filepath.Join(t.TempDir(), "trust.json")
	if err := os.WriteFile(trust, unzipped(t, golden+".trust.json.gz"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := secondSays(t, trust, map[string][]byte{"golden": unzipped(t, golden+".jsonl.gz")}); !got["golden"].OK {
		t.Errorf("%+v", got["golden"])
	}
	w := newWorld(t)
	everything(w)
	w.secondAgrees(w.export(w.Journal, audit.Selection{}))
	w.eraseAll()
	w.secondAgrees(w.export(w.Journal, audit.Selection{}))
	w.eraseUsers()
	w.secondAgrees(w.export(w.Journal, audit.Selection{}))
}

// secondAgrees asks the second implementation about an honest log.
func (w *world) secondAgrees(bundle []byte) {
	w.Helper()
	raw, err := json.Marshal(w.trust())
	w.Must(err)
	trust := filepath.Join(w.TempDir(), "trust.json")
	w.Must(os.WriteFile(trust, raw, 0o600))
	if got := secondSays(w.TB.(*testing.T), trust, map[string][]byte{"new": bundle}); !got["new"].OK {
		w.Errorf("%+v", got["new"])
	}
}

// TestIntegrationSecondAuditorOfRandomJournals: both implementations accept what a router wrote of random
// transitions.
func TestIntegrationSecondAuditorOfRandomJournals(t *testing.T) {
	for seed := range seeds(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for _, w := range []*world{randomJournal(t, seed), randomRuns(t, seed)} {
				w.secondAgrees(w.sound())
			}
		})
	}
}
