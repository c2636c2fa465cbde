package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
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
		{"internal/node", Module + "/internal/bus/natsserver", false},
		{"internal/bus/natsserver", Module + "/internal/bus", false},
		{"storage/ledger", Module + "/storage", false},
		{"audit", Module + "/storage/ledger", false},
		{"internal/problem", Module + "/intents", false},
		{"gateway", "github.com/gin-gonic/gin", false},
		{"policies", "github.com/open-policy-agent/opa/v1/ast", false},
		{"agentic", Module + "/agentic/agents", false},
		{"gateway", Module + "/agentic/agents", false},
		{"state", Module + "/agentic/agents", false},

		{"intents", Module + "/router", true},
		{"schemas", Module + "/intents", true},
		{"router", Module + "/gateway", true},
		{"gateway", Module + "/policies", true},
		{"agentic", Module + "/storage", true},
		{"agentic", Module + "/executors", true},
		{"executors", Module + "/agentic/agents", true},
		{"state", Module + "/agentic", true},
		{"policies", Module + "/storage", true},
		{"router", Module + "/storage/sqlite", true},
		{"executors/memory", Module + "/storage/sqlite", true},
		{"storage", Module + "/storage/sqlite", true},
		{"gateway", Module + "/internal/bus/natsserver", true},
		{"internal/bus", Module + "/internal/bus/natsserver", true},
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
