package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aob.dev/writ/policies"
)

func readSuite(args, places []string) (policies.Suite, error) {
	tree, err := readTree(args)
	if err != nil {
		return policies.Suite{}, err
	}
	if policies.IsExtension(tree) {
		if tree, err = policies.Single(tree); err != nil {
			return policies.Suite{}, err
		}
	}
	s := policies.Suite{Source: tree, Tables: map[string]*policies.Table{}}
	if len(places) == 0 && len(args) > 0 {
		for _, dir := range []string{filepath.Join(args[0], "testdata"), filepath.Join(filepath.Dir(filepath.Clean(args[0])), "testdata")} {
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				places = append(places, dir)
			}
		}
	}
	for _, place := range places {
		if err := readTables(place, s.Tables); err != nil {
			return s, err
		}
	}
	return s, nil
}

// readTables reads a decision table, or all *.yaml below a directory.
func readTables(place string, into map[string]*policies.Table) error {
	return filepath.WalkDir(place, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name != place && filepath.Ext(name) != ".yaml" {
			return err
		}
		f, err := os.Open(name) //nolint:gosec // G304: the user names it
		if err != nil {
			return err
		}
		defer f.Close()
		table, err := policies.ParseTable(f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		into[name] = table
		return nil
	})
}

func policyTest(c *command) {
	tables := c.Flags().StringArray("tables", nil, "decision tables: a file, or a directory of *.yaml (default: testdata in the tree or beside it)")
	c.answer = func(args []string) (answer, error) {
		s, err := readSuite(args, *tables)
		if err != nil {
			return answer{}, malformed(err)
		}
		cases, err := s.Run(c.Context())
		tested := testedOf(cases)
		return answer{data: tested, text: caseTree(cases), end: tested.verdict()}, err
	}
}

// policyTestReport is `writ policy test --json`.
type policyTestReport struct {
	Tests  int             `json:"tests"`
	Failed int             `json:"failed"`
	Cases  []policies.Case `json:"cases"`
}

func testedOf(cases []policies.Case) policyTestReport {
	t := policyTestReport{Tests: len(cases), Cases: append([]policies.Case{}, cases...)}
	for _, c := range cases {
		if !c.Passed {
			t.Failed++
		}
	}
	return t
}

// verdict is exit 1 for a failure, and if there are no tests.
func (t policyTestReport) verdict() error {
	switch {
	case t.Tests == 0:
		return errors.New("no tests: the tree has neither rules test_* nor decision tables")
	case t.Failed > 0:
		return fmt.Errorf("%d of %d failed", t.Failed, t.Tests)
	}
	return nil
}

// caseTree is the cases by suite: how many passed, and why others did not.
func caseTree(cases []policies.Case) string {
	by := map[string][]policies.Case{}
	for _, c := range cases {
		by[c.Suite] = append(by[c.Suite], c)
	}
	var out strings.Builder
	for _, suite := range slices.Sorted(maps.Keys(by)) {
		passed := 0
		var lines strings.Builder
		for _, c := range by[suite] {
			if c.Passed {
				passed++
				continue
			}
			fmt.Fprintf(&lines, "  FAIL %s\n       %s\n", c.Name, c.Reason)
		}
		fmt.Fprintf(&out, "%s: %d of %d passed\n%s", suite, passed, len(by[suite]), lines.String())
	}
	return out.String()
}
