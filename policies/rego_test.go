package policies

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

// TestRego runs every rule test_* of the embedded tree, as `opa test` would.
func TestRego(t *testing.T) {
	all := Embedded()
	modules, err := parse(all)
	if err != nil {
		t.Fatal(err)
	}
	data, err := all.documents()
	if err != nil {
		t.Fatal(err)
	}
	runner := tester.NewRunner().SetStore(inmem.NewFromObject(data)).SetModules(modules).RaiseBuiltinErrors(true)
	results, err := runner.RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r := range results {
		n++
		if !r.Pass() {
			t.Errorf("%s", r)
		}
	}
	if n == 0 {
		t.Fatal("no Rego test was run")
	}
}

// TestRegoFormat requires that the tree is formatted as `opa fmt` does.
func TestRegoFormat(t *testing.T) {
	for name, content := range Embedded() {
		if !isModule(name) {
			continue
		}
		formatted, err := format.SourceWithOpts(name, content, format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(formatted, content) {
			t.Errorf("%s: opa fmt would change it to\n%s", name, formatted)
		}
	}
}

// TestRegoStrict compiles the tree with its tests, as `opa check --strict` does.
func TestRegoStrict(t *testing.T) {
	modules, err := parse(Embedded())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compile(modules); err != nil {
		t.Fatal(err)
	}
}

// TestRegoMetadata requires METADATA on every rule of the tree, helpers included.
func TestRegoMetadata(t *testing.T) {
	modules, err := parse(Embedded().Deciding())
	if err != nil {
		t.Fatal(err)
	}
	set, problems := ast.BuildAnnotationSet(slices.Collect(maps.Values(modules)))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, m := range modules {
		for _, rule := range m.Rules {
			if rule.Default {
				continue
			}
			described := false
			for _, ref := range set.Chain(rule) {
				a := ref.Annotations
				described = described || a != nil && a.Description != "" && (a.Scope == "rule" || a.Scope == "document")
			}
			if !described {
				t.Errorf("%s: rule %s has no METADATA with a description", rule.Location, rule.Head.Ref())
			}
		}
	}
}
