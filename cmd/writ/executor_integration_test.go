//go:build integration

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestIntegrationPythonExecutor runs the service of testdata/acme-python with
// the interpreter of .ci/integration, which has NATS and Ed25519.
func TestIntegrationPythonExecutor(t *testing.T) {
	python := os.Getenv("WRIT_PYTHON")
	if python == "" {
		t.Fatal("WRIT_PYTHON names no interpreter: run make integration")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	p := scripts("testdata/integration")
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Setenv("PYTHON", python)
		e.Setenv("SERVICE", filepath.Join(here, "testdata", "acme-python", "service.py"))
		e.Setenv("CATALOG", filepath.Join(here, "testdata", "acme", "catalog"))
		return setup(e)
	}
	testscript.Run(t, p)
}
