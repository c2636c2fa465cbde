package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	longTests = regexp.MustCompile(`(?m)^(?:LONG|ALIKE) +:= \^\((.+)\)\$\$$`)
	plainIn   = regexp.MustCompile(`(?m)^PLAIN +:= (.+)$`)
	besideOf  = regexp.MustCompile(`(?m)^BESIDE +:= \^\((.+)\)\$\$$`)
	starts    = regexp.MustCompile(`(?m)^\s*go [a-z]|\.Go\(`)
)

// TestLongTests: each test that make race leaves out is one test, and make test runs it.
func TestLongTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	lists := longTests.FindAllSubmatch(text, -1)
	if len(lists) != 2 {
		t.Fatal("Makefile has no LONG or no ALIKE")
	}
	tests := testNames(t)
	for _, name := range strings.Split(string(lists[0][1])+"|"+string(lists[1][1]), "|") {
		found := 0
		for test := range tests {
			if _, short, _ := strings.Cut(test, "."); short == name {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d tests have the name %s, want 1", found, name)
		}
	}
}

// TestPlainPackages: what make race leaves out starts no goroutines, but
// for audit, of which tests run under the detector, too.
func TestPlainPackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	in, beside := plainIn.FindSubmatch(text), besideOf.FindSubmatch(text)
	if in == nil || beside == nil {
		t.Fatal("Makefile has no PLAIN or no BESIDE")
	}
	tests := testNames(t)
	for _, name := range strings.Split(string(beside[1]), "|") {
		if !tests["audit."+name] {
			t.Errorf("audit has no test %s", name)
		}
	}
	for _, dir := range strings.Fields(string(in[1])) {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || dir == "./audit" {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if starts.Match(text) {
				t.Errorf("%s starts a goroutine: take %s from PLAIN", file, dir)
			}
		}
	}
}
