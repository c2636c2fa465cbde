package policies

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
)

// tiny is a tree with one rule of each kind.
const tiny = `package writ.authz

decision := {"allow": allow, "deny": deny, "hold": hold, "obligations": obligations}

default allow := false

allow if input.intent.type != "unlisted"

# METADATA
# title: Denied
# description: It is denied.
# custom:
#   id: t.deny
#   hint: do not
deny contains {"id": "t.deny", "reason": "It is denied.", "hint": "do not"} if input.intent.type in {"denied", "both"}

# METADATA
# title: Held
# description: It is held.
# custom:
#   id: t.hold
hold contains {"id": "t.hold", "reason": "It is held.", "approvers": data.directory.approvers.acme} if {
	input.intent.type in {"held", "both"}
}

obligations contains {"name": input.context.labels.duty, "value": 1}
`

func source(modules ...string) Source {
	s := Source{}
	for i, m := range modules {
		s[string(rune('a'+i))+".rego"] = []byte(m)
	}
	return s
}

func engine(tb testing.TB, s Source) *Engine {
	tb.Helper()
	e, err := New(s)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func withData(tb testing.TB, e *Engine, d Data) *Engine {
	tb.Helper()
	e, err := e.WithData(d)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func decide(tb testing.TB, e *Engine, input map[string]any) Result {
	tb.Helper()
	r, err := e.Decide(tb.Context(), input)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func typed(typ string) map[string]any { return map[string]any{"intent": map[string]any{"type": typ}} }

func TestDecideVerdicts(t *testing.T) {
	e := withData(t, engine(t, source(tiny)), Data{Approvers: map[string][]string{"acme": {"ben"}}})
	denied := Rule{ID: "t.deny", Reason: "It is denied.", Hint: "do not"}
	held := Rule{ID: "t.hold", Reason: "It is held.", Approvers: []string{"ben"}}
	for typ, want := range map[string]Result{
		"allowed":  {Allow: true, Obligations: []intents.Obligation{}},
		"denied":   {Deny: []Rule{denied}},
		"held":     {Hold: []Rule{held}, Obligations: []intents.Obligation{}},
		"both":     {Deny: []Rule{denied}},
		"unlisted": {Deny: []Rule{{ID: IDDefault, Reason: "no policy allows this intent"}}},
	} {
		if diff := cmp.Diff(want, decide(t, e, typed(typ))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", typ, diff)
		}
	}
}

func TestResultRefusal(t *testing.T) {
	e := withData(t, engine(t, source(tiny)), Data{Approvers: map[string][]string{"acme": {"ben"}}})
	if r := decide(t, e, typed("allowed")).Refusal(); r != nil {
		t.Errorf("allowed, yet refused: %v", r)
	}
	r := decide(t, e, typed("denied")).Refusal()
	if r.Code != intents.PolicyDenied || r.Hint != "do not" || !cmp.Equal(r.PolicyIDs, []string{"t.deny"}) {
		t.Errorf("refusal of a denied intent: %+v", r)
	}
	held := decide(t, e, typed("held"))
	if r := held.Refusal(); r.Code != intents.ApprovalRequired || !cmp.Equal(held.Approvers(), []string{"ben"}) {
		t.Errorf("refusal of a held intent: %+v, approvers %v", r, held.Approvers())
	}
}

func TestDecideObligations(t *testing.T) {
	e := engine(t, source(tiny))
	in := typed("allowed")
	in["context"] = map[string]any{"labels": map[string]any{"duty": "max_bytes"}}
	want := []intents.Obligation{{Name: "max_bytes", Value: 1.0}}
	if got := decide(t, e, in); !got.Allow || !cmp.Equal(got.Obligations, want) {
		t.Errorf("known obligation: %+v", got)
	}
	in["context"] = map[string]any{"labels": map[string]any{"duty": "dance"}}
	if got := decide(t, e, in); got.Verdict() != intents.Deny || got.Deny[0].ID != IDEngine {
		t.Errorf("unknown obligation: %+v", got)
	}
}

// TestDecideBroken: any fault in a policy is a denial by writ.engine.
func TestDecideBroken(t *testing.T) {
	head := "package writ.authz\n\n"
	for name, module := range map[string]string{
		"undefined":       `decision := {"allow": true, "deny": [], "hold": []} if input.nowhere`,
		"not an object":   `decision := true`,
		"no deny":         `decision := {"allow": true, "hold": []}`,
		"unknown member":  `decision := {"allow": true, "deny": [], "hold": [], "denied": []}`,
		"allow not bool":  `decision := {"allow": "yes", "deny": [], "hold": []}`,
		"unknown rule id": `decision := {"allow": true, "deny": [{"id": "x", "reason": "y"}], "hold": []}`,
		"built-in error":  `decision := {"allow": 1 / count(input.nowhere) == 1, "deny": [], "hold": []} ` + "\n" + `decision := {"allow": to_number("x") == 1, "deny": [], "hold": []}`,
	} {
		got := decide(t, engine(t, source(head+module)), typed("allowed"))
		if got.Allow || len(got.Deny) != 1 || got.Deny[0].ID != IDEngine {
			t.Errorf("%s: %+v", name, got)
		}
		if code := got.Refusal().Code; code != intents.PolicyDenied {
			t.Errorf("%s: code %s", name, code)
		}
	}
}

const slow = `package writ.authz

decision := {"allow": count([1 | some i in numbers.range(1, 10000); some j in numbers.range(1, 10000); i == j]) > 0, "deny": [], "hold": []}
`

func TestDecideTimeout(t *testing.T) {
	begin := time.Now()
	got := decide(t, engine(t, source(slow)), typed("allowed"))
	if got.Allow || got.Deny[0].ID != IDEngine || got.Deny[0].Reason != "the policy took too long" {
		t.Errorf("slow policy: %+v", got)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the deadline of %s came after %s", Timeout, took)
	}
}

// TestDecideCancelled: a cancelled call is no denial.
func TestDecideCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := engine(t, source(slow)).Decide(ctx, typed("allowed")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestNewRefuses(t *testing.T) {
	meta := func(says string) string {
		return "package writ.ext.a\n\n# METADATA\n# " + says + "\ndeny contains {\"id\": \"a\", \"reason\": \"Never.\"} if input.x\n"
	}
	if _, err := New(source(tiny, meta("title: Never\n# description: Never.\n# custom:\n#   id: a"))); err != nil {
		t.Errorf("a rule with all that it needs: %v", err)
	}
	for name, tc := range map[string]struct {
		source Source
		says   string
	}{
		"http":           {source(tiny + "\nx := http.send({})\n"), "http.send"},
		"clock":          {source(tiny + "\nx := time.now_ns()\n"), "time.now_ns"},
		"chance":         {source(tiny + "\nx := rand.intn(\"a\", 2)\n"), "rand.intn"},
		"uuid":           {source(tiny + "\nx := uuid.rfc4122(\"a\")\n"), "uuid.rfc4122"},
		"look-up":        {source(tiny + "\nx := net.lookup_ip_addr(\"a\")\n"), "net.lookup_ip_addr"},
		"runtime":        {source(tiny + "\nx := opa.runtime()\n"), "opa.runtime"},
		"strict":         {source(tiny + "\nf(x) := 1\n"), "unused"},
		"rego v0":        {source("package writ.authz\n\ndecision = x { x := 1 }\n"), "if"},
		"syntax":         {source("package writ.authz\n\ndecision := {\n"), "parse"},
		"metadata":       {source(tiny, "package writ.authz\n\ndeny contains {} if input.x\n"), "needs METADATA"},
		"extension":      {source(tiny, "package writ.ext.a\n\nhold contains {} if input.x\n"), "needs METADATA"},
		"no title":       {source(tiny, meta("description: Never.\n# custom:\n#   id: a")), "needs METADATA"},
		"no description": {source(tiny, meta("title: Never\n# custom:\n#   id: a")), "needs METADATA"},
		"no id":          {source(tiny, meta("title: Never\n# description: Never.")), "needs METADATA"},
		"no entry":       {source("package other\n\nx := 1\n"), Query},
		"no module":      {Source{}, "no Rego module"},
		"directory":      {Source{"a.rego": []byte(tiny), "data.json": []byte(`{"directory": {}}`)}, "data.directory"},
		"not data":       {Source{"a.rego": []byte(tiny), "data.json": []byte(`[]`)}, "data.json"},
		"data twice":     {Source{"a.rego": []byte(tiny), "data.json": []byte(`{"a": {"b": 1}}`), "a/data.yaml": []byte("b: 2")}, "another"},
	} {
		_, err := New(tc.source)
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: error %v, want one that says %q", name, err, tc.says)
		}
	}
}

const ext = `package writ.ext.night

# METADATA
# title: Night
# description: Not at night.
# custom:
#   id: ext.night
deny contains {"id": "ext.night", "reason": "Not at night."} if input.context.labels.night == "yes"

allow := true

# METADATA
# title: Watch
# description: Somebody watches.
# custom:
#   id: ext.watch
hold contains {"id": "ext.watch", "reason": "Somebody watches.", "approvers": ["ben"]} if input.context.labels.watch == "yes"
`

// TestExtensionsOnlyTighten: an extension denies and holds what the tree allows,
// and never allows what the tree denies.
func TestExtensionsOnlyTighten(t *testing.T) {
	e := engine(t, source(tiny, ext))
	labelled := func(typ, label string) map[string]any {
		in := typed(typ)
		in["context"] = map[string]any{"labels": map[string]any{label: "yes", "duty": "notify"}}
		return in
	}
	for _, tc := range []struct {
		typ, label string
		want       intents.Verdict
		ids        []string
	}{
		{"allowed", "day", intents.Allow, nil},
		{"allowed", "night", intents.Deny, []string{"ext.night"}},
		{"allowed", "watch", intents.Hold, []string{"ext.watch"}},
		{"denied", "night", intents.Deny, []string{"ext.night", "t.deny"}},
		{"denied", "watch", intents.Deny, []string{"t.deny"}},
		{"unlisted", "day", intents.Deny, []string{IDDefault}},
	} {
		got := decide(t, e, labelled(tc.typ, tc.label))
		if got.Verdict() != tc.want || !cmp.Equal(got.PolicyIDs(), tc.ids) {
			t.Errorf("%s %s: %s %v, want %s %v", tc.typ, tc.label, got.Verdict(), got.PolicyIDs(), tc.want, tc.ids)
		}
	}
}

// TestWithData: a generation sees its own data and no remembered decision of another.
func TestWithData(t *testing.T) {
	e := engine(t, Embedded())
	in := sample()
	if got := decide(t, e, in); !got.Allow {
		t.Fatalf("without data: %+v", got)
	}
	strict := withData(t, e, Data{Tenants: map[string]map[string]json.RawMessage{"acme": {"skills_allow": json.RawMessage(`["order_list"]`)}}})
	if got := decide(t, strict, in); !cmp.Equal(got.PolicyIDs(), []string{"writ.skill.tenant"}) {
		t.Errorf("with data: %+v", got)
	}
	if got := decide(t, e, in); !got.Allow {
		t.Errorf("the old generation has changed: %+v", got)
	}
	if strict.Digest() != e.Digest() {
		t.Error("data changes the tree's digest")
	}
}

// sample is the input for a task's call of a pinned skill.
func sample() map[string]any {
	return map[string]any{
		"intent": map[string]any{"type": "skill.call", "args": map[string]any{"skill": "outlet_list", "input": map[string]any{}}},
		"actor":  map[string]any{"user_id": "ana", "tenant": "acme", "roles": []any{"user"}},
		"constraints": map[string]any{
			"issued_at": "2026-11-20T10:00:00.000Z", "ttl_sec": 120, "audience": "writ/test", "idempotency_key": "k1", "capabilities": []any{},
		},
		"context":   map[string]any{"plan_id": "plan_1", "step": 1, "task_id": "task_1"},
		"signer":    map[string]any{"kid": "k1", "role": "task"},
		"task":      map[string]any{"task_id": "task_1", "plan_id": "plan_1", "revision": 1, "step": 1, "skills": []any{"outlet_list"}, "deadline": "2026-11-20T10:05:00Z"},
		"plan":      map[string]any{"plan_id": "plan_1", "status": "executing", "epoch": 1, "revision": 1, "replan_count": 0, "steps": 1},
		"skill":     map[string]any{"name": "outlet_list", "digest": intents.Digest(nil), "effect": "pure"},
		"approvals": []any{},
		"now":       "2026-11-20T10:00:01.000Z",
	}
}
