package catalog

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReports: an executor never names an event of the router, of
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

// TestReportedEventsAreListed: every event that an executor of ours reports is listed, and no other.
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
				if fn, ok := call.Fun.(*ast.SelectorExpr); ok && literal && (fn.Sel.Name == "NewEvent" || fn.Sel.Name == "WithEvent") {
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
	listed = slices.Compact(listed) // types share names
	if said = slices.Compact(said); !slices.Equal(said, listed) {
		t.Errorf("executors report %v, listed are %v", said, listed)
	}
}

// event names as the recorder's source has them.
var (
	made    = regexp.MustCompile(`\{"([a-z_]+\.[a-z_]+)", [a-z]`)
	ofSteps = regexp.MustCompile(`"step_%d(\.[a-z_]+)"`)
)

// TestEventKinds: every event that the recorder makes or takes from an executor is in the table of kinds, and
// nothing else is; docs/events.md has the same table.
func TestEventKinds(t *testing.T) {
	told := append(slices.Concat(slices.Collect(maps.Values(events))...), EventLine, EventRedacted)
	files, err := filepath.Glob("../../router/recorder/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.FindAllSubmatch(source, -1) {
			told = append(told, string(m[1]))
		}
		for _, m := range ofSteps.FindAllSubmatch(source, -1) {
			told = append(told, "step_N"+string(m[1]))
		}
	}
	slices.Sort(told)
	told = slices.Compact(told)
	var listed []string
	for event := range eventKinds {
		listed = append(listed, event)
	}
	slices.Sort(listed)
	if d := cmp.Diff(told, listed); d != "" || len(told) < 30 {
		t.Errorf("events that are made, and those with a kind: %s", d)
	}
	for event, want := range map[string]string{"step_12.failed": EventsOfSteps, "plan.cancelled": EventsOfCancels, "skill.called": "", "x.acme.said": "", "step_x.failed": "", "": ""} {
		if got := EventKind(event); got != want {
			t.Errorf("%s is of kind %q", event, got)
		}
	}

	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\* `?([a-z]+)`?: (`.*`)$").FindAllSubmatch(page, -1) {
		for _, event := range regexp.MustCompile("`([^`]+)`").FindAllSubmatch(row[2], -1) {
			documented[string(event[1])] = strings.TrimPrefix(string(row[1]), "none")
		}
	}
	if d := cmp.Diff(eventKinds, documented); d != "" {
		t.Errorf("docs/events.md: %s", d)
	}
}
