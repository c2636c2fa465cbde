package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestShim: the interpreter behind a shim is found; one that is no shim is left.
func TestShim(t *testing.T) {
	shims, versions := t.TempDir(), t.TempDir()
	shim, interpreter := filepath.Join(shims, "python3"), filepath.Join(versions, "python3")
	script := []byte("#!/bin/sh\necho " + interpreter + "\n")
	for _, file := range []string{shim, interpreter} {
		if err := os.WriteFile(file, script, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{shims: versions, versions: "", t.TempDir(): ""} {
		t.Setenv("PATH", path)
		if got := behindShim(); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
