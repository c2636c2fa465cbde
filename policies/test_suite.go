package policies

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
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
	Single bool // the source is that of Single: its coverage is that of the extension's own files
}

// Run runs the rules test_* of the tree, as `opa test` does, and then decides
// every cell of the tables. The error is about a tree that cannot be tested.
func (s Suite) Run(ctx context.Context) ([]Case, error) { return s.run(ctx, nil) }

// Coverage runs everything and returns the lines of the deciding modules that were evaluated.
func (s Suite) Coverage(ctx context.Context) ([]Case, Coverage, error) {
	c := cover.New()
	cases, err := s.run(ctx, c)
	if err != nil {
		return nil, Coverage{}, err
	}
	modules, err := parse(s.Source.Deciding())
	if err != nil {
		return nil, Coverage{}, err
	}
	below := ""
	if s.Single {
		below = alonePrefix
	}
	return cases, covered(c.Report(modules), below), nil
}

func (s Suite) run(ctx context.Context, tracer topdown.QueryTracer) ([]Case, error) {
	modules, err := parse(s.Source)
	if err != nil {
		return nil, err
	}
	cases, err := s.rego(ctx, modules, tracer)
	if err != nil {
		return nil, err
	}
	e, err := New(ctx, s.Source)
	if err != nil {
		return nil, err
	}
	e = e.WithoutDeadline() // the result of a table does not depend on the load of the machine
	for _, name := range slices.Sorted(maps.Keys(s.Tables)) {
		cells, err := s.Tables[name].run(ctx, e, tracer)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, cell := range cells {
			cases = append(cases, Case{name, cell.Principal + " × " + cell.Intent, cell.Wrong == "", cell.Wrong})
		}
	}
	return cases, nil
}

func (s Suite) rego(ctx context.Context, modules map[string]*ast.Module, tracer topdown.QueryTracer) ([]Case, error) {
	data, err := s.Source.documents()
	if err != nil {
		return nil, err
	}
	runner := tester.NewRunner().SetStore(inmem.NewFromObject(data)).SetModules(modules).RaiseBuiltinErrors(true)
	if tracer != nil {
		runner.SetCoverageQueryTracer(tracer)
	}
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

// Coverage of a tree by its tests, in lines.
type Coverage struct {
	Percent float64             `json:"percent"`
	Files   map[string]Lines    `json:"files"`
	Missed  map[string][][2]int `json:"missed"` // first and last line of each range that was not evaluated
}

// Lines of one file.
type Lines struct {
	Covered int `json:"covered"`
	Missed  int `json:"missed"`
}

// covered counts the files below a prefix, with names relative to it.
func covered(r cover.Report, below string) Coverage {
	out := Coverage{Files: map[string]Lines{}, Missed: map[string][][2]int{}}
	var all Lines
	for name, f := range r.Files {
		if isTest(name) || !strings.HasPrefix(name, below) {
			continue
		}
		name = strings.TrimPrefix(name, below)
		out.Files[name] = Lines{f.CoveredLines, f.NotCoveredLines}
		all.Covered, all.Missed = all.Covered+f.CoveredLines, all.Missed+f.NotCoveredLines
		for _, x := range f.NotCovered {
			if last := len(out.Missed[name]) - 1; last >= 0 && out.Missed[name][last][1] >= x.Start.Row {
				out.Missed[name][last][1] = x.End.Row
				continue
			}
			out.Missed[name] = append(out.Missed[name], [2]int{x.Start.Row, x.End.Row})
		}
	}
	if n := all.Covered + all.Missed; n > 0 {
		out.Percent = 100 * float64(all.Covered) / float64(n)
	}
	return out
}
