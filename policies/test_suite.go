package policies

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

// Case is one test of a tree: a rule test_*, or a cell of a decision table.
type Case struct {
	Suite  string `json:"suite"` // package or table
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Reason string `json:"reason,omitempty"` // why it failed
}

// Suite is a tree with its decision tables, by name.
type Suite struct {
	Source Source
	Tables map[string]*Table
}

// Run runs the rules test_* of the tree, as `opa test` does, and then decides every cell of the
// tables. The error is about a tree that cannot be tested.
func (s Suite) Run(ctx context.Context) ([]Case, error) {
	modules, err := parse(s.Source)
	if err != nil {
		return nil, err
	}
	cases, err := s.rego(ctx, modules)
	if err != nil {
		return nil, err
	}
	e, err := New(s.Source)
	if err != nil {
		return nil, err
	}
	e = e.WithoutDeadline() // the result of a table does not depend on the load of the machine
	for _, name := range slices.Sorted(maps.Keys(s.Tables)) {
		cells, err := s.Tables[name].run(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, cell := range cells {
			cases = append(cases, Case{name, cell.Principal + " × " + cell.Intent, cell.Wrong == "", cell.Wrong})
		}
	}
	return cases, nil
}

func (s Suite) rego(ctx context.Context, modules map[string]*ast.Module) ([]Case, error) {
	data, err := s.Source.documents()
	if err != nil {
		return nil, err
	}
	runner := tester.NewRunner().SetStore(inmem.NewFromObject(data)).SetModules(modules).RaiseBuiltinErrors(true)
	results, err := runner.RunTests(ctx, nil)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for r := range results {
		one := Case{Suite: strings.TrimPrefix(r.Package, "data."), Name: r.Name, Passed: r.Pass() && !r.Skip}
		switch {
		case r.Skip:
			one.Reason = "left out (todo_): a test that is not run shows nothing"
		case r.Error != nil:
			one.Reason = r.Error.Error()
		case !one.Passed:
			one.Reason = fmt.Sprintf("%s: fails", r.Location)
		}
		cases = append(cases, one)
	}
	return cases, nil
}
