package policies

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
)

// TestNames: the constants that a tree compares with names of the input are found with kind and
// line, in every form of comparison; other values are not.
func TestNames(t *testing.T) {
	source := Embedded()
	source["data.json"] = []byte(`{"tables": {"costs": {"in.data": 1}}}`)
	source["ext/x.rego"] = []byte(`package writ.ext.x

some_types := {"in.rule"}

more_types contains "in.contains"

costs := {"key.rule": 1}

picked contains "never" if input.now > 1

# METADATA
# title: x
# description: d
# custom:
#   id: ext.x
deny contains {"id": "ext.x", "reason": "r"} if {
	input.intent.type == "equal"
	input.intent.type in some_types
	input.intent.type in more_types
	input.intent.type in {"in.set", "in.set.too"}
	some role in input.actor.roles
	role == "some"
	"in" in input.actor.roles
	typ := input.intent.type
	typ != "local"
	costs[input.intent.type] > 0
	{"key": 1}[typ] > 0
	["array"][_] == typ
	not input.intent.args.skill == "not"
	every s in input.task.skills { s in {"every"} }
	intent := input.intent
	intent.type == "member"
	count({x | some x in input.actor.roles; x == "inner"}) == 0
	data.tables.costs[input.intent.type] > 0
	"acme" == input.actor.tenant
	some_types[typ]
	input.skill.name in ["in.array"]
	input.intent.type in picked
	startswith(input.intent.type, "pattern")
	input.intent.type == concat(".", ["made", "later"])
	input.signer.role == "other"
	helper("argument")
}

chosen := 1 if input.now > 1 else := 2 if input.intent.type == "else"

helper(x) if input.intent.type == x
`)
	e, err := New(source)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range e.Names() {
		if n.File == "ext/x.rego" {
			got = append(got, fmt.Sprintf("%d %s %s", n.Line, n.Kind, n.Name))
		}
	}
	if d := cmp.Diff([]string{
		"17 type equal", "18 type in.rule", "19 type in.contains", "20 type in.set", "20 type in.set.too", "22 role some",
		"23 role in", "25 type local", "26 type key.rule", "27 type key", "28 type array", "29 skill not", "30 skill every",
		"32 type member", "33 role inner", "34 type in.data", "35 tenant acme", "36 type in.rule", "37 skill in.array", "45 type else",
	}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestNamesOfTheDefaultTree: the default tree names only types that exist.
func TestNamesOfTheDefaultTree(t *testing.T) {
	e, err := New(Embedded())
	if err != nil {
		t.Fatal(err)
	}
	types := 0
	for _, n := range e.Names() {
		if _, ok := catalog.Builtin().Lookup(n.Name); n.Kind != NameType || !ok {
			t.Errorf("%s: %s %q", n.Where(), n.Kind, n.Name)
		}
		types++
	}
	if types == 0 {
		t.Error("no type was found")
	}
}
