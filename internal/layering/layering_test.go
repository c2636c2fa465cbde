package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestLayering fails on an import that the floors forbid.
func TestLayering(t *testing.T) {
	imports, err := Imports(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(imports["intents"]) == 0 || len(imports) < 10 {
		t.Fatalf("only %d packages found: the check would prove nothing", len(imports))
	}
	for _, b := range Check(imports) {
		t.Error(b)
	}
}

// TestRowsNamePackages: a row for a package that is not there would say nothing.
func TestRowsNamePackages(t *testing.T) {
	imports, err := Imports(root)
	if err != nil {
		t.Fatal(err)
	}
	packages := slices.Collect(maps.Keys(imports))
	there := func(row, path string) {
		if !slices.ContainsFunc(packages, func(p string) bool { return below(p, path) }) {
			t.Errorf("row %s: there is no package %s", row, path)
		}
	}
	for _, c := range columns {
		there(c.path, c.path)
		for _, user := range c.users {
			there(c.path, user)
		}
	}
	for library, users := range only {
		for _, user := range users {
			there(library, user)
		}
	}
}

// TestExecutorsDoNotSeeTheJournal: executors may use documents and blobs of
// storage, never its journal.
func TestExecutorsDoNotSeeTheJournal(t *testing.T) {
	files := 0
	err := filepath.WalkDir(filepath.Join(root, "executors"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "storage" && (sel.Sel.Name == "Journal" || sel.Sel.Name == "Records") {
				t.Errorf("%s uses storage.%s", name, sel.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Fatal("no executors found")
	}
}

// TestCheckFindsBreaches: each rule catches what it is for, and lets the rest be.
func TestCheckFindsBreaches(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		broken   bool
	}{
		{"router", Module + "/policies", false},
		{"router", Module + "/storage", false},
		{"router/httpapi", Module + "/router", false},
		{"executors/memory", Module + "/storage", false},
		{"internal/node", Module + "/storage/sqlite", false},
		{"internal/node", Module + "/bus/natsserver", false},
		{"bus/natsserver", Module + "/bus", false},
		{"storage/ledger", Module + "/storage", false},
		{"audit", Module + "/storage/ledger", false},
		{"internal/problem", Module + "/intents", false},
		{"gateway", "github.com/gin-gonic/gin", false},
		{"policies", "github.com/open-policy-agent/opa/v1/ast", false},
		{"agentic", Module + "/state/agents", false},
		{"gateway", Module + "/state/agents", false},
		{"state", Module + "/state/agents", false},

		{"intents", Module + "/router", true},
		{"schemas", Module + "/intents", true},
		{"router", Module + "/gateway", true},
		{"gateway", Module + "/policies", true},
		{"agentic", Module + "/storage", true},
		{"agentic", Module + "/executors", true},
		{"executors", Module + "/state/agents", true},
		{"state", Module + "/agentic", true},
		{"state", Module + "/router", true},
		{"state", Module + "/policies", true},
		{"state/agents", Module + "/state", true},
		{"state/workflows", Module + "/state", true},
		{"agentic", Module + "/state", true},
		{"policies", Module + "/storage", true},
		{"router", Module + "/storage/sqlite", true},
		{"executors/memory", Module + "/storage/sqlite", true},
		{"storage", Module + "/storage/sqlite", true},
		{"gateway", Module + "/bus/natsserver", true},
		{"bus", Module + "/bus/natsserver", true},
		{"router", Module + "/internal/node", true},
		{"internal/node", Module + "/internal/cli", true},
		{"router", "github.com/gin-gonic/gin", true},
		{"router", "github.com/open-policy-agent/opa/v1/rego", true},
		{"executors", "github.com/nats-io/nats.go", true},
		{"intents", "github.com/stretchr/testify/assert", true},
		{"somewhere", Module + "/intents", true},
	} {
		got := Check(map[string][]string{tc.from: {tc.to}})
		if (len(got) > 0) != tc.broken {
			t.Errorf("%s imports %s: breaches %v", tc.from, tc.to, got)
		}
	}
}

// mostShare is the most that a top folder may have of all lines, in percent.
const mostShare = 20

// TestShares: no top folder has more than a fifth of the code, neither blank nor comment. Tests,
// and what serves only those, do not count.
func TestShares(t *testing.T) {
	lines, all := map[string]int{}, 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		switch rel = filepath.ToSlash(rel); {
		case d.IsDir() && (rel == "bench" || rel == "internal/testing" || d.Name() == "testdata" || d.Name() == "node_modules" || rel != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		folder, _, _ := strings.Cut(rel, "/")
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines[folder]++
				all++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 10 {
		t.Fatalf("only %d folders found: the test would prove nothing", len(lines))
	}
	for _, folder := range slices.Sorted(maps.Keys(lines)) {
		share := 100 * float64(lines[folder]) / float64(all)
		t.Logf("%6d lines, %4.1f %%: %s", lines[folder], share, folder)
		if share > mostShare {
			t.Errorf("%s has %.1f %% of the lines: move what has a trade of its own out of it", folder, share)
		}
	}
}
