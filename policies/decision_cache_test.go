package policies

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadSet(t *testing.T) {
	for body, want := range map[string]string{
		`input.intent.type == "x"`:                           "input.intent.type",
		`input.task.skills[_] == input.intent.args.skill`:    "input.intent.args.skill\ninput.task.skills",
		`data.x[input.actor.tenant].y`:                       "input.actor.tenant",
		`input.context.labels[input.signer.role]`:            "input.context.labels\ninput.signer.role",
		`x := input.context; x.labels.a`:                     "input.context",
		`input.context.step == 1; count(input.context) == 1`: "input.context",
		`input.ab == 1; input.a.b == 1; input.a == 1`:        "input.a\ninput.ab",
		`some k; input[k] == 1`:                              "input",
		`count(input) == 1`:                                  "input",
		`object.get(input, ["task", "step"], 0) == 1`:        "input",
		`x := input; x.task`:                                 "input",
		`f(input.now)`:                                       "input.now",
		`data.lib.unread == 1`:                               "",
		`every s in input.task.skills { s != "x" }`:          "input.task.skills",
		`[s | some s in input.task.skills] == []`:            "input.task.skills",
		`not input.skill.digest`:                             "input.skill.digest",
		`input.approvals[0].user_id == "a"`:                  "input.approvals",
		`some s in input.task.skills; s != "x"`:              "input.task.skills",
		`input.a[_].b[_].c; input.a[_].b[0].d == 1`:          "input.a",
		`input.a[_].b; count(input.a) == 1`:                  "input.a",
		`input[input.signer.role].x`:                         "input",

		`input.intent.type == "x"; input.now`:                     "input.intent.type\ninput.now",
		`input.intent.type == "x"; g with data.x as 1`:            "input.intent.type",
		`input.intent.type == "x"; g with input.task as 1`:        "input.intent.type\ninput.task",
		`input.intent.type == "x"; g with input as {"intent": 1}`: "input",
		`walk(input, [_, 1])`:                                     "input",
		`walk(input.task, [_, 1])`:                                "input.task",
		`$"{input.now}" == "x"`:                                   "input.now",
		`1 == 1`:                                                  "",
	} {
		module := "package writ.authz\n\ndecision := {\"allow\": allow, \"deny\": [], \"hold\": []}\n\ndefault allow := false\n\n" +
			"allow if { " + body + " }\n\nf(x) if x == 1\n\ng if f(1)\n"
		if got := engine(t, source(module)).ReadSet().String(); got != want {
			t.Errorf("%s\nreads\n%s\nwant\n%s", body, got, want)
		}
	}
}

// TestReadSetOfEverything: a reference counts wherever it is, reachable or not, including heads
// of rules.
func TestReadSetOfEverything(t *testing.T) {
	for rule, want := range map[string]string{
		`lonely if input.a`:                               "input.a",
		`default d := 1`:                                  "",
		`p[input.a] := 1 if true`:                         "input.a",
		`p[input.a].b contains input.c`:                   "input.a\ninput.c",
		`f(x) := input.a if x == input.b`:                 "input.a\ninput.b",
		`f(x) := input.a if x else := input.b if input.c`: "input.a\ninput.b\ninput.c",
		`o := {input.a: [y | y := {z | z := input.b}]}`:   "input.a\ninput.b",
		`f(input) := input`:                               "refused",
	} {
		s := source("package writ.authz\n\ndecision := {\"allow\": true}\n", "package lib\n\n"+rule+"\n")
		got := "refused"
		if e, err := New(s); err == nil {
			got = e.ReadSet().String()
		}
		if got != want {
			t.Errorf("%s\nreads\n%s\nwant\n%s", rule, got, want)
		}
	}
}

// TestEmbeddedReadSet: decisions of the default tree can be remembered.
func TestEmbeddedReadSet(t *testing.T) {
	reads := engine(t, Embedded()).ReadSet()
	if reads.All || len(reads.Paths) == 0 {
		t.Fatalf("the default tree may read anything: %s", reads)
	}
	if v := reads.Volatile(); len(v) > 0 {
		t.Errorf("the default tree reads what hardly ever repeats: %v", v)
	}
}

// TestMemoKeyDistinct: different values have different keys.
func TestMemoKeyDistinct(t *testing.T) {
	paths := lookups([][]string{{"a"}, {"b"}})
	seen := map[string]string{}
	for _, doc := range []string{
		`{}`, `{"a":null}`, `{"b":null}`, `{"a":""}`, `{"a":"-"}`, `{"a":"n"}`, `{"a":true}`, `{"a":false}`, `{"a":0}`, `{"a":"0"}`,
		`{"a":[]}`, `{"a":{}}`, `{"a":[null]}`, `{"a":[[]]}`, `{"a":["x","y"]}`, `{"a":["xy"]}`, `{"a":"x","b":"y"}`, `{"a":"xsy"}`,
		`{"a":{"x":"y"}}`, `{"a":{"xy":""}}`, `{"a":{"x":{"y":1}}}`, `{"a":{"x":1,"y":2}}`, `{"a":{"x":2,"y":1}}`, `{"a":[1,2]}`, `{"a":[12]}`, `{"a":1,"b":2}`,
	} {
		in := object(doc)
		key, ok := memoKey(nil, paths, func(l *lookup) (any, bool) { return below(in, l.path) })
		if !ok {
			t.Fatalf("%s has no key", doc)
		}
		if other, taken := seen[string(key)]; taken {
			t.Errorf("%s and %s share the key %q", doc, other, key)
		}
		seen[string(key)] = doc
	}
}

// mixed reads paths of all kinds: dynamic look-ups, arrays, missing members.
const mixed = `package writ.authz

decision := {"allow": allow, "deny": deny, "hold": [], "obligations": obligations}

default allow := false

allow if {
	not input.intent.args.off
	data.directory.tenants[input.actor.tenant].open == true
}

allow if count(input.task.skills) > 1

allow if input.intent.args.skill in input.task.skills

allow if input.context.labels[input.signer.role] == "yes"

# METADATA
# title: Nothing
# description: Null is not missing.
# custom:
#   id: m.null
deny contains {"id": "m.null", "reason": "Null is not missing."} if input.intent.args.off == null

# METADATA
# title: Same
# description: All are the same.
# custom:
#   id: m.same
deny contains {"id": "m.same", "reason": "All are the same."} if {
	input.actor.tenant == input.signer.role
}

obligations contains {"name": "max_bytes", "value": input.constraints.ttl_sec}

# METADATA
# title: Types
# description: What types read differs.
# custom:
#   id: m.type
deny contains {"id": "m.type", "reason": "What types read differs."} if {
	input.intent.type in {"plan", "held"}
	some step in input.intent.args.steps
	step.step > 1
	late
}

# METADATA
# title: Types
# description: Skills too.
# custom:
#   id: m.type
deny contains {"id": "m.type", "reason": "Skills too."} if {
	input.intent.type == "plan"
	input.intent.args.steps[_].skills[_] == "y"
}

late if input.now < "5"
`

// TestMemoAgrees compares remembered decisions with fresh ones on random inputs
// over three trees and two generations of data.
func TestMemoAgrees(t *testing.T) {
	data := []Data{
		{},
		{Tenants: map[string]map[string]json.RawMessage{
			"a": {"open": json.RawMessage(`true`), "skills_allow": json.RawMessage(`["x"]`), "python": json.RawMessage(`false`), "max_steps": json.RawMessage(`1`)},
			"b": {"approval": json.RawMessage(`{"once":true}`), "ttl_max": json.RawMessage(`{"*":2}`), "max_bytes": json.RawMessage(`{"*":1}`)},
		}, Approvers: map[string][]string{"b": {"y", "x"}}},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, s := range map[string]Source{"embedded": Embedded(), "tiny": source(tiny), "mixed": source(mixed, ext)} {
		for _, d := range data {
			e := withData(t, engine(t, s), d)
			e.timeout = time.Minute // the test does not depend on the machine's speed
			pool := make([]map[string]any, 400)
			for i := range pool {
				pool[i] = randomInput(rng)
			}
			for range 1500 {
				in := pool[rng.IntN(len(pool))]
				got := decide(t, e, in)
				want, err := e.Evaluate(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					doc, _ := json.Marshal(in)
					t.Fatalf("%s: input %s (-fresh +remembered):\n%s", name, doc, diff)
				}
			}
			if hits, misses := e.MemoStats(); hits == 0 || misses == 0 {
				t.Errorf("%s: %d hits and %d misses: the comparison compared nothing", name, hits, misses)
			}
		}
	}
}

// randomInput draws from few values, so that inputs repeat, and leaves members
// out, so that missing and null meet.
func randomInput(rng *rand.Rand) map[string]any {
	pick := func(values ...any) any { return values[rng.IntN(len(values))] }
	object := func(members map[string]any) map[string]any {
		for k := range members {
			if rng.IntN(6) == 0 {
				delete(members, k)
			}
		}
		return members
	}
	word := func() any { return pick("a", "b", "x") }
	steps := func() any {
		one := func() any {
			return pick(object(map[string]any{"step": rng.IntN(3), "skills": pick([]any{"x"}, []any{"x", "y"}, []any{}), "task": fmt.Sprint(rng.IntN(9))}), "x")
		}
		return pick([]any{}, []any{one()}, []any{one(), one()}, map[string]any{"1": one()}, "x", nil)
	}
	return object(map[string]any{
		"intent": object(map[string]any{
			"type": pick("skill.call", "plan", "exec_python", "held", "denied", "both"),
			"args": object(map[string]any{"skill": pick("x", "y"), "off": pick(nil, true, false, ""), "steps": steps()}),
		}),
		"actor":       object(map[string]any{"tenant": word(), "user_id": pick("x", "y")}),
		"constraints": object(map[string]any{"ttl_sec": pick(1, json.Number("1"), 3)}),
		"context":     object(map[string]any{"labels": object(map[string]any{"a": "yes", "night": pick("yes", "no"), "duty": pick("notify", "dance")})}),
		"signer":      object(map[string]any{"role": pick("task", "a", "planner")}),
		"task":        object(map[string]any{"skills": pick([]any{}, []any{"x"}, []any{"x", "y"}, "x")}),
		"plan":        object(map[string]any{"status": pick("executing", "failed")}),
		"skill":       object(map[string]any{"name": pick("x", "y"), "digest": "d", "effect": pick("pure", "once")}),
		"approvals":   pick([]any{}, []any{map[string]any{"user_id": "y"}}),
		"now":         fmt.Sprint(rng.IntN(10)),
	})
}

// TestMemoNever: what must not be remembered is not.
func TestMemoNever(t *testing.T) {
	e := engine(t, source(slow))
	decide(t, e, typed("x"))
	if n := e.memo.rows.Len(); n != 0 {
		t.Errorf("a timeout is remembered: %d rows", n)
	}
	e = engine(t, source("package writ.authz\n\ndecision := {\"allow\": count(input) == 1, \"deny\": [], \"hold\": []}\n"))
	decide(t, e, typed("x"))
	if n := e.memo.rows.Len(); n != 0 {
		t.Errorf("a policy that reads all of the input is remembered: %d rows", n)
	}
}

// TestMemoBounded: a full memo forgets what was not asked for the longest.
func TestMemoBounded(t *testing.T) {
	m := newMemo()
	asked := []byte("asked again and again")
	m.put(asked, Result{Allow: true})
	for i := range 3 * MemoSize {
		m.put(fmt.Appendf(nil, "%d", i), Result{})
		if r, ok := m.get(asked); !ok || !r.Allow {
			t.Fatalf("after %d others what is asked for is forgotten", i)
		}
	}
	if n := m.rows.Len(); n != MemoSize {
		t.Errorf("%d rows", n)
	}
}
