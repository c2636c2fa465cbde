package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// surfaces are the ways by which a test meets writ as its users do: HTTP, the command line, the
// bus, and files of documented formats (settings, agents, policies, envelopes, bundles). A Go test
// reaches one if it, or a function of its folder's tests that it calls, uses one of these names.
var surfaces = []string{
	"http.NewRequest", "http.NewRequestWithContext", "http.Get", "http.Post", "httptest.NewRequest", "httptest.NewRequestWithContext", "websocket.Dial", // HTTP
	"client.NewStreamableHttpClient", "openai.NewClient", // its clients
	"cli.Main", "testscript.Run", "testscript.RunT", // programs
	"nats.Connect", "bus.Connect", // the bus
	"config.Load", "agents.ReadDir", "policies.ReadDir", "intents.Parse", "audit.Verify", "audit.Replay", // files
}

// reaching are the tests that reach a surface, as package.TestName.
func reaching(t *testing.T) map[string]bool {
	t.Helper()
	folders := map[string][]string{}
	walk(t, func(name string) {
		if strings.HasSuffix(name, "_test.go") {
			folders[path.Dir(name)] = append(folders[path.Dir(name)], name)
		}
	})
	out := map[string]bool{}
	for _, files := range folders {
		uses := map[string]map[string]bool{} // by function; a method is .name
		pkgs := map[string]string{}          // of tests
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			pkg := strings.TrimSuffix(f.Name.Name, "_test")
			if pkg == "main" {
				pkg = path.Base(path.Dir(name))
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				key := fn.Name.Name
				if fn.Recv != nil {
					key = "." + key
				}
				if uses[key] == nil {
					uses[key] = map[string]bool{}
				}
				named(fn.Body, pkg, uses[key])
				if strings.HasSuffix(name, "_integration_test.go") && (uses[key]["exec.Command"] || uses[key]["exec.CommandContext"]) {
					uses[key]["testscript.Run"] = true // they run real programs, over files of ours
				}
				pkgs[key] = pkg
			}
		}
		for fn, pkg := range pkgs {
			if strings.HasPrefix(fn, "Test") || strings.HasPrefix(fn, "Fuzz") {
				out[pkg+"."+fn] = out[pkg+"."+fn] || reaches(fn, uses, map[string]bool{})
			}
		}
	}
	return out
}

// named collects the names that a body uses: those of functions as they are, those behind a
// dot as .name, and with the package or value before it; pkg is where it stands itself.
func named(body ast.Node, pkg string, into map[string]bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				into[x.Name+"."+n.Sel.Name] = true
			}
			into["."+n.Sel.Name] = true
			named(n.X, pkg, into)
			return false
		case *ast.Ident:
			into[n.Name], into[pkg+"."+n.Name] = true, true
		}
		return true
	})
}

func reaches(fn string, uses map[string]map[string]bool, seen map[string]bool) bool {
	if seen[fn] {
		return false
	}
	seen[fn] = true
	for name := range uses[fn] {
		if slices.Contains(surfaces, name) || uses[name] != nil && reaches(name, uses, seen) {
			return true
		}
	}
	return false
}

// TestDoneOnTheSurface: a row that is done names a test that meets writ as its users do.
func TestDoneOnTheSurface(t *testing.T) {
	reach := reaching(t)
	if reach["docs.TestDoneOnTheSurface"] || reach["recorder.TestStepRecord"] || !reach["e2e.TestCatalogTypes"] {
		t.Fatal("what reaches a surface is not told from what does not")
	}
	for _, r := range requirements(t) {
		if r.state == "done" && !r.onSurface(reach) {
			t.Errorf("%s is done, but none of %v uses HTTP, the command line, the bus or a file: name one that does, or call the row partial", r.id, r.shownBy)
		}
	}
}

// onSurface reports whether a test of the row meets writ as its users do.
func (r requirement) onSurface(reach map[string]bool) bool {
	return slices.ContainsFunc(r.shownBy, func(name string) bool { return reach[name] || !goTest.MatchString(name) })
}

// goTest is the name of a Go test; others are scripts and pages, which the real binary runs.
var goTest = regexp.MustCompile(`^\w+\.(Test|Fuzz)\w+$`)
