package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
)

// A file that cannot be read bars its executor, not the node, and is replaced by
// credentials that are issued anew.
func TestExternalExecutorDamaged(t *testing.T) {
	data := t.TempDir()
	if err := durable.MkdirAll(filepath.Join(data, "executors")); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", `{"name":"x-aaa","types":["x.aaa.echo"],"nkey":"none","issued":"2026-11-20T10:00:00Z"}`} {
		if err := os.WriteFile(filepath.Join(data, "executors", "x-aaa.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := Open(t.Context(), config(data))
		if err := errors.Join(err, n.Close()); err != nil {
			t.Fatalf("with %q for credentials: %v", text, err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "executors", "x-aaa.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Executors.Admit(data, "x-aaa", []string{"x.aaa.echo"}, time.Now()); err != nil {
		t.Errorf("issued anew: %v", err)
	}
}
