package policies

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The differential test of the memo: for any modules, Decide returns what a fresh evaluation
// returns, for inputs that differ in one member at a time.

// probes are inputs around one intent: of two types, unchanged and with one member changed or
// left out.
func probes() []map[string]any {
	base := `{
		"intent": {"type": "x", "args": {"skill": "a", "n": "1", "steps": [{"step": 1, "skills": ["a"]}]}},
		"actor": {"user_id": "ana", "tenant": "acme", "roles": ["user"]},
		"constraints": {"ttl_sec": 60, "audience": "log"},
		"context": {"step": 1, "labels": {"a": "yes", "task": "yes", "n": "7"}},
		"signer": {"kid": "k", "role": "task"},
		"task": {"skills": ["a", "b"], "step": 1},
		"plan": {"status": "executing"},
		"skill": {"name": "a", "digest": "d", "effect": "pure"},
		"approvals": [],
		"now": "5"}`
	changes := []string{
		`{}`, `{}`, `{"intent":null}`,
		`{"intent":{"args":{"skill":"b"}}}`, `{"intent":{"args":{"skill":null}}}`, `{"intent":{"args":{"n":"x"}}}`, `{"intent":{"args":{"n":1}}}`,
		`{"intent":{"args":{"steps":[{"step":1,"skills":["b"]}]}}}`, `{"intent":{"args":{"steps":{}}}}`, `{"intent":{"args":[]}}`,
		`{"actor":{"user_id":"ben"}}`, `{"actor":{"tenant":"other"}}`, `{"actor":{"tenant":""}}`, `{"actor":{"roles":["admin"]}}`, `{"actor":null}`,
		`{"constraints":{"ttl_sec":0}}`, `{"constraints":{"ttl_sec":"60"}}`,
		`{"context":{"labels":{"a":"no"}}}`, `{"context":{"labels":{"task":"no","n":"seven"}}}`, `{"context":{"labels":{"h":"h1"}}}`, `{"context":null}`,
		`{"signer":{"role":"manager"}}`, `{"signer":{"role":"a"}}`, `{"signer":{"kid":"l"}}`,
		`{"task":{"skills":["b"]}}`, `{"task":{"skills":[]}}`, `{"task":{"skills":"a"}}`, `{"task":{"step":2}}`, `{"task":null}`,
		`{"plan":{"status":"failed"}}`, `{"skill":{"effect":"once"}}`, `{"skill":null}`, `{"approvals":[{"user_id":"ben"}]}`, `{"now":"6"}`,
	}
	var out []map[string]any
	for i, change := range changes {
		for _, typ := range []string{`"plan"`, []string{`"x"`, `""`}[i%2]} {
			in := merge(object(base), object(change))
			if intent, ok := in["intent"].(map[string]any); ok {
				intent["type"], _ = plainJSON(json.RawMessage(typ))
			}
			out = append(out, in)
		}
	}
	return out
}

func object(text string) map[string]any {
	v, _ := plainJSON(json.RawMessage(text))
	o, ok := v.(map[string]any)
	if !ok {
		panic("a probe is no object: " + text)
	}
	return o
}

// differing is a tree of rules under conditions, with helpers that they may call directly, after
// other conditions or dynamically; two are in extensions.
func differing(conditions map[string]string) Source {
	helpers := `package lib

h1 if input.signer.kid == "k"

h2 if input.intent.type in {"", "plan"}

h3 if {
	input.intent.type in {"", "plan"}
	h4
}

h4 if input.actor.user_id == "ana"

default h5 := "none"

h5 := input.plan.status if input.intent.type == "x"

else := input.now if input.task.step == 2

f1(x) if x == input.signer.role

f2(x) := concat("/", [x, input.actor.user_id])

f3(x, y) := x if y == "x"

else := input.actor.tenant

by_role[input.signer.role] := input.actor.user_id

names contains input.context.labels[_]

nested[input.signer.role].of contains input.actor.user_id
`
	tree := `package writ.authz

decision := {"allow": allow, "deny": deny, "hold": hold, "obligations": []}

default allow := false

allow if input.signer.role != "nobody"
`
	s := Source{"lib.rego": []byte(helpers)}
	for _, place := range []string{"deny", "hold", "ext", "more"} {
		condition, kind := conditions[place], "deny"
		if place == "hold" {
			kind = place
		}
		if condition == "" {
			condition = "false"
		}
		rule := fmt.Sprintf(`
# METADATA
# title: Rule
# description: A rule.
# custom:
#   id: %s.rule
%s contains {"id": "%[1]s.rule", "reason": "A rule."} if {
	%[3]s
}
`, place, kind, condition)
		switch {
		case place == "deny" || place == "hold":
			tree += rule
		case conditions[place] != "":
			s[place+".rego"] = []byte("package writ.ext." + place + "\n" + rule)
		}
	}
	s["tree.rego"] = []byte(tree)
	return s
}

// differ compares a tree's decisions with fresh ones, twice in different order, and reports
// whether any was remembered.
func differ(t *testing.T, name string, s Source, inputs []map[string]any, rng *rand.Rand) (remembered bool) {
	t.Helper()
	e := withData(t, engine(t, s), Data{Tenants: map[string]map[string]json.RawMessage{
		"acme": {"open": json.RawMessage(`true`), "skills_allow": json.RawMessage(`["a"]`), "max_steps": json.RawMessage(`0`)},
	}}).WithoutDeadline()
	fresh := make([]*Result, len(inputs))
	for range 2 {
		for _, i := range rng.Perm(len(inputs)) {
			if fresh[i] == nil {
				r, err := e.Evaluate(t.Context(), inputs[i])
				if err != nil {
					t.Fatal(err)
				}
				fresh[i] = &r
			}
			if got := decide(t, e, inputs[i]); !cmp.Equal(*fresh[i], got) {
				in, _ := json.Marshal(inputs[i])
				t.Errorf("%s\ninput %s\nis decided %v from memory and %v afresh\n%s", name, in, got.Verdict(), fresh[i].Verdict(), s["tree.rego"])
				return true
			}
		}
	}
	hits, _ := e.MemoStats()
	return hits > 0
}

// asks are conditions of every kind that a rule may have on its input.
var asks = []string{
	`input.intent.type == "x"`, `input.intent.type == ""`, `input.intent.type != "plan"`, `input.intent.type in {"", "plan"}`,
	`input.intent.type in ["x", ""]`, `"plan" == input.intent.type`, `input.intent.type in {"plan", "x"}`, `not input.intent.type`,
	`typ := input.intent.type; typ in {"", "x"}`, `startswith(input.intent.type, "pl")`,
	`input.intent.type in {"x", input.signer.role}`, `input.signer.role == "task"`, `input.signer.role in {"task", "manager"}`, `input.actor.user_id == "ana"`,
	`input.actor.tenant == input.signer.role`, `input.constraints.ttl_sec > 30`, `to_number(input.context.labels.n) > 3`, `1 / input.constraints.ttl_sec < 1`,
	`concat(",", input.task.skills) != ""`, `input.context.labels[input.signer.role] == "yes"`, `some s in input.task.skills; s == "b"`,
	`every s in input.task.skills { s != input.signer.role }`, `every k, v in input.context.labels { v != k }`, `count([1 | input.plan.status == "failed"]) == 0`,
	`{s: 1 | some s in input.task.skills} == {"b": 1}`, `{x | some x in [input.now, input.plan.status]} == {"5", "failed"}`, `input.skill.effect == "once"`,
	`not input.skill`, `object.get(input.task, "step", 0) == 1`, `input.intent.args.steps[_].skills[_] == "b"`, `input.intent.args.skill == null`,
	`data.directory.tenants[input.actor.tenant].open`, `input.intent.args.skill in data.directory.tenants.acme.skills_allow`, `data.lib.h1`, `data.lib.h2`, `data.lib.h3`,
	`not data.lib.h3`, `data.lib.h4`, `data.lib.h5 == "executing"`, `data.lib.h5 == "5"`, `data.lib.f1("task")`, `data.lib.f2("x") == "x/ana"`,
	`data.lib.f3("x", input.intent.type) == "acme"`, `data.lib[input.context.labels.h]`, `data.lib.by_role.task == "ana"`, `data.lib.by_role[input.actor.user_id]`,
	`"no" in data.lib.names`, `data.lib.nested.manager.of[_] == "ben"`, `data.lib.h4 with input.actor.user_id as input.signer.role`,
	`data.lib.h3 with input.intent.type as "plan"`, `data.lib.h3 with input.intent as {"type": ""}`, `data.lib.h5 == "1" with input.plan.status as "1"`,
	`data.lib.h1 with input as {"signer": {"kid": input.signer.role}}`, `data.lib.f1("a") with input.signer.role as input.now`, `data.lib.h1 with data.x as input.now`,
	`data.lib.f2("x") == "x/" with concat as "x/"`, `x := input; x.now == "5"`, `input[_].role == "manager"`, `walk(input, [_, "ben"])`, `walk(input.task, [_, "b"])`,
	`count(input) == 9`, `object.get(input, ["plan", "status"], "") == "failed"`, `json.marshal(input.intent.args) != "{}"`, `$"{input.now}" == "5"`,
	`[typ, who] := [input.intent.type, input.actor.user_id]; typ == "x"; who == "ben"`, `{"a": a} = input.context.labels; a == "no"`, `input.approvals[0].user_id == "ben"`,
	`count(input.approvals) == 0`, `input.now > "5"`, `not input.context`, `x := input.actor; x.tenant == ""`,
}

// TestMemoAdversarial has each condition alone in a rule and after a condition on the type, with
// overlapping types and errors ahead of them, in the tree and in extensions that tighten one
// another.
func TestMemoAdversarial(t *testing.T) {
	inputs, rng := probes(), rand.New(rand.NewPCG(11, 1))
	modules, remembered := 0, 0
	try := func(conditions map[string]string) {
		modules++
		if differ(t, fmt.Sprint(conditions), differing(conditions), inputs, rng) {
			remembered++
		}
	}
	for i, ask := range asks {
		other := asks[(i*7+3)%len(asks)]
		try(map[string]string{
			"deny": ask + `; input.intent.type in {"", "plan"}; data.lib.h4`,
			"hold": `data.lib.h3`,
		})
		try(map[string]string{
			"deny": `input.intent.type in {"", "plan"}; ` + ask,
			"hold": `input.intent.type in {"plan", "x"}; ` + ask,
			"ext":  `to_number(input.intent.args.n) > 0; input.intent.type in {"", "x"}; input.intent.type in {"x", "plan"}; data.lib.h4`,
			"more": `input.intent.type == "x"; ` + other,
		})
	}
	if modules < 130 || remembered < modules/2 {
		t.Errorf("%d modules, of which %d have remembered anything", modules, remembered)
	}
}

// TestMemoGenerated has rules of one to five conditions, drawn at random.
func TestMemoGenerated(t *testing.T) {
	inputs, rng := probes(), rand.New(rand.NewPCG(11, 2))
	rule := func() string {
		var parts []string
		if rng.IntN(2) == 0 { // the conditions on the type come first in the list
			parts = append(parts, asks[rng.IntN(7)])
		}
		for i := range 1 + rng.IntN(4) {
			ask := asks[rng.IntN(len(asks))]
			if rng.IntN(5) == 0 && !strings.ContainsAny(ask, ";:{_") && !strings.HasPrefix(ask, "not ") {
				ask = "not " + ask
			}
			if strings.Contains(ask, ";") || strings.Contains(ask, ":=") { // local names
				ask = fmt.Sprintf("count([1 | %s]) == %d", ask, i%2)
			}
			parts = append(parts, ask)
		}
		return strings.Join(parts, "\n\t")
	}
	remembered, modules := 0, 80
	if os.Getenv("WRIT_CAMPAIGN") != "" {
		modules = 1000
	}
	for i := range modules {
		conditions := map[string]string{"deny": rule()}
		for _, place := range []string{"hold", "ext", "more"} {
			if rng.IntN(2) == 0 {
				conditions[place] = rule()
			}
		}
		if differ(t, fmt.Sprint("module ", i), differing(conditions), inputs, rng) {
			remembered++
		}
	}
	if remembered < modules/3 {
		t.Errorf("of %d modules only %d have remembered anything", modules, remembered)
	}
}
