package catalog

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Who may report what: an executor never names an event of the router, of
// another type, or of another executor.
func TestReports(t *testing.T) {
	vendor := Row{Type: "x.acme.echo", Executor: "x-acme"}
	billing := Row{Type: "x.acme.bill", Executor: "x-acme-billing"}
	call, _ := Builtin().Lookup("skill.call")
	grant, _ := Builtin().Lookup("hitl.approve")
	for _, c := range []struct {
		row   Row
		event string
		want  bool
	}{
		{call, "skill.called", true},
		{call, "python_script.executed", false},
		{call, "approval.decided", false},
		{call, "x.acme.said", false},
		{call, "", false},
		{grant, "approval.decided", false}, // the router's own events are not reported to it
		{vendor, "x.acme.said", true},
		{vendor, "x.acme.said.twice", true},
		{vendor, "x.acme.", false},
		{vendor, "x.acme.Said it", false},
		{vendor, "x.acme", false},
		{vendor, "x.globex.said", false},
		{vendor, "x.acme-billing.paid", false},
		{vendor, "skill.called", false},
		{vendor, "approval.decided", false},
		{vendor, "x.acme." + strings.Repeat("a", 65), false},
		{billing, "x.acme-billing.paid", true},
		{billing, "x.acme.paid", false},
		{Row{Type: "x.acme.echo", Executor: "python"}, "python_script.executed", false},
		{Row{Type: "x.acme.echo", Executor: "python"}, "x.python.executed", false},
	} {
		if got := c.row.Reports(c.event); got != c.want {
			t.Errorf("%s of %s reports %q: %v", c.row.Type, c.row.Executor, c.event, got)
		}
	}
	for typ := range events {
		if row, ok := Builtin().Lookup(typ); !ok || row.Executor == ExecutorRouter {
			t.Errorf("%s: no type of an executor", typ)
		}
	}
}

// Every event that an executor of ours reports is listed, and none besides.
func TestReportedEventsAreListed(t *testing.T) {
	var said []string
	err := filepath.WalkDir("../../executors", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 {
				name, literal := call.Args[0].(*ast.BasicLit)
				if fn, ok := call.Fun.(*ast.SelectorExpr); ok && literal && (fn.Sel.Name == "NewFact" || fn.Sel.Name == "WithFact") {
					event, err := strconv.Unquote(name.Value)
					if err != nil {
						t.Error(err)
					}
					said = append(said, event)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, names := range events {
		listed = append(listed, names...)
	}
	slices.Sort(said)
	slices.Sort(listed)
	if said = slices.Compact(said); !slices.Equal(said, listed) {
		t.Errorf("executors report %v, listed are %v", said, listed)
	}
}
