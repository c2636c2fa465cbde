//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// testBase keeps the runtime for all tests of this process.
var testBase string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if os.Getenv(dockerVar) != "" {
		fmt.Fprintln(os.Stderr, enterDocker())
		return 1
	}
	if os.Getenv(helperVar) != "" {
		return helper()
	}
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	testBase = dir
	return m.Run()
}

// testPython is found once: a shim in PATH takes longer than most tests.
var testPython = sync.OnceValues(func() (string, error) {
	p, err := findPython(context.Background(), "")
	if err != nil && embeddedPython != "" {
		return "", nil
	}
	return p.Executable, err
})

// config completes cfg for a test.
func config(t testing.TB, cfg Config) Config {
	t.Helper()
	interpreter, err := testPython()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dir, cfg.Python = testBase, interpreter
	return cfg
}

// open is a Sandbox that ends with the test.
func open(t testing.TB, cfg Config) *Sandbox {
	t.Helper()
	s, err := Open(t.Context(), config(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// availableNow is the answer of available, which does not change.
var availableNow []string

// available are the drivers whose canary holds here. At least one must.
func available(t *testing.T) []string {
	t.Helper()
	if availableNow != nil {
		return availableNow
	}
	for _, name := range DriverNames() {
		s, err := Open(t.Context(), config(t, Config{Driver: name, Workers: -1}))
		if err != nil {
			t.Logf("not on this machine: %v", err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		availableNow = append(availableNow, name)
	}
	if availableNow == nil {
		t.Fatal("no driver holds on this machine")
	}
	return availableNow
}

func run(t testing.TB, s Runner, job Job) Result {
	t.Helper()
	res, err := s.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

const waitLimit = 20 * time.Second
