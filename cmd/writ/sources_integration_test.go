//go:build integration

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"aob.dev/writ/audit"
)

// TestIntegrationSources runs the pages of docs/sources, whose logs the second auditor judges, too.
func TestIntegrationSources(t *testing.T) { TestSources(t) }

func init() {
	second = func(ctx context.Context, trust audit.Trust, bundle []byte) (err error) {
		dir, err := os.MkdirTemp("", "second")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		raw, err := json.Marshal(trust)
		if err != nil {
			return err
		}
		files := []string{filepath.Join(dir, "trust.json"), filepath.Join(dir, "bundle")}
		for i, data := range [][]byte{raw, bundle} {
			if err := os.WriteFile(files[i], data, 0o600); err != nil {
				return err
			}
		}
		cmd := exec.CommandContext(ctx, "node", filepath.Join("..", "..", "intents", "testdata", "second", "journal.mjs"), files[0], files[1])
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("the second auditor: %w: %s", err, stderr.Bytes())
		}
		var says struct {
			OK       bool   `json:"ok"`
			Position int64  `json:"position"`
			Reason   string `json:"reason"`
		}
		if err := json.Unmarshal(out, &says); err != nil || !says.OK {
			return fmt.Errorf("the second auditor: record %d: %s %w", says.Position, says.Reason, err)
		}
		return nil
	}
}
