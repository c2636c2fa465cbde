package policies_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
)

// must returns v and panics on an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// tried is a tree with an untrusted file.
func tried(name, text string) policies.Source {
	s := policies.Embedded()
	s[name] = []byte(text)
	return s
}

const denyAll = `package writ.ext.tried

# METADATA
# title: Tried
# description: It is tried.
# custom:
#   id: tried
deny contains object.union(rego.metadata.rule().custom, {"reason": "It is tried."}) if {
`

// TestApart: a tree in a process of its own decides as one in this process does.
func TestApart(t *testing.T) {
	s := tried("ext/tried/tried.rego", denyAll+"	data.directory.tenants[input.actor.tenant].driver == \"namespaces\"\n}\n")
	here, err := policies.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	a, err := policies.NewApart(t.Context(), s, "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	data := policies.Data{Tenants: map[string]map[string]json.RawMessage{"acme": {"driver": json.RawMessage(`"namespaces"`)}}}
	input := map[string]any{"actor": map[string]any{"tenant": "acme"}, "intent": map[string]any{"type": "plan.list", "args": map[string]any{}}}
	for _, d := range []policies.Data{{}, data, {}, data} {
		want, err1 := must(here.WithData(t.Context(), d)).Evaluate(t.Context(), input)
		got, err2 := must(a.Engine().WithData(t.Context(), d)).Decide(t.Context(), input)
		if err1 != nil || err2 != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%v, %v, %s", err1, err2, cmp.Diff(want, got))
		}
	}
	if a.Engine().Digest() != here.Digest() || a.Err() != nil {
		t.Error(a.Engine().Digest(), a.Err())
	}
}

// TestApartSeesOneTenant: no rule of a tree on trial can read another tenant's data.
func TestApartSeesOneTenant(t *testing.T) {
	data := policies.Data{
		Tenants:   map[string]map[string]json.RawMessage{"acme": {"x.n": json.RawMessage(`1`)}, "beta": {"x.secret": json.RawMessage(`"hunter2"`)}},
		Pins:      map[string]map[string]intents.SkillInput{"beta": {"pay": {Name: "pay"}}},
		Approvers: map[string][]string{"beta": {"bob"}},
		Roles:     map[string]map[string][]string{"beta": {"hunter": {"skills:call"}}},
	}
	for _, others := range []string{`data.directory.tenants.beta`, `data.directory.pins.beta`, `data.directory.approvers.beta`, `data.directory.roles.beta`, "count(data.directory.tenants) > 1"} {
		a, err := policies.NewApart(t.Context(), tried("ext/tried/tried.rego", denyAll+"	"+others+"\n}\n"), "acme")
		if err != nil {
			t.Fatal(err)
		}
		got, err := must(a.Engine().WithData(t.Context(), data)).Decide(t.Context(), map[string]any{"intent": map[string]any{"type": "plan.list"}})
		if err != nil || strings.Contains(strings.Join(got.PolicyIDs(), " "), "tried") {
			t.Errorf("%s: %v, %+v", others, err, got)
		}
		a.Close()
		own := must(must(policies.New(t.Context(), tried("ext/tried/tried.rego", denyAll+"	"+others+"\n}\n"))).ForTenant(t.Context(), "acme"))
		if got, err = must(own.WithData(t.Context(), data)).Decide(t.Context(), map[string]any{"intent": map[string]any{"type": "plan.list"}}); err != nil || strings.Contains(strings.Join(got.PolicyIDs(), " "), "tried") {
			t.Errorf("%s in this process: %v, %+v", others, err, got)
		}
	}
}

// TestApartIsBounded: policies that use all memory or time end their own process and nothing
// else.
func TestApartIsBounded(t *testing.T) {
	policies.ApartCPU(3)
	t.Cleanup(func() { policies.ApartCPU(20) })
	for name, text := range map[string]string{
		"memory":  denyAll + "	a := numbers.range(1, 20000000)\n	b := [x | some x in a]\n	c := [[x, y] | some x in b; some y in a]\n	count(c) > 0\n}\n",
		"time":    denyAll + "	count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); some c in numbers.range(1, 3000); a + b == c]) < 0\n}\n",
		"compile": "package writ.ext.tried\n\nx := " + strings.Repeat("1 + ", 200_000) + "1\n",
	} {
		t.Run(name, func(t *testing.T) {
			a, err := policies.NewApart(t.Context(), tried("ext/tried/tried.rego", text), "acme")
			if name == "compile" {
				if err == nil {
					a.Close()
				}
				return // refused or not: this process survives
			}
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if r, err := a.Engine().Decide(t.Context(), map[string]any{"intent": map[string]any{"type": "plan.list"}}); err == nil {
				t.Errorf("%+v", r)
			}
			if a.Err() == nil || a.Context().Err() == nil {
				t.Error("nobody is told that it took too much")
			}
		})
	}
}

// TestNestingIsBounded: nesting is bounded in every tree, whatever its source.
func TestNestingIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"arrays":  "x := " + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000),
		"objects": "x := " + strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000),
		"calls":   "x := " + strings.Repeat("abs(", 50_000) + "1" + strings.Repeat(")", 50_000),
		"groups":  "x := " + strings.Repeat("(", 50_000) + "1" + strings.Repeat(")", 50_000),
		"bodies":  "x := " + strings.Repeat("[1 | ", 50_000) + "true" + strings.Repeat("]", 50_000),
	} {
		_, err := policies.New(t.Context(), tried("ext/deep/deep.rego", "package writ.ext.deep\n\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), "nested too deeply") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// TestSubprocessDeniesHiddenInput: a tree on trial judges an input that is only a mark as the
// router does.
func TestSubprocessDeniesHiddenInput(t *testing.T) {
	for rule, want := range map[string]bool{`input.intent.args.input.region != "eu"`: true, `input.intent.args.skill == "x"`: false} {
		text := denyAll + "	" + rule + "\n}\n"
		a, err := policies.NewApart(t.Context(), tried("ext/tried/tried.rego", text), "acme")
		if err != nil {
			t.Fatal(err)
		}
		here := must(policies.New(t.Context(), tried("ext/tried/tried.rego", text)))
		for name, e := range map[string]*policies.Engine{"apart": a.Engine(), "here": here} {
			if got := must(policies.ReadsMark(t.Context(), e, "intent", "args", "input")); got != want {
				t.Errorf("%s, %s: read: %v", rule, name, got)
			}
		}
		a.Close()
	}
}
