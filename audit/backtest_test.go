package audit_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
)

// with is the embedded tree with another module, or with one changed.
func (w *world) with(name string, change func(string) string) *policies.Engine {
	w.Helper()
	s := policies.Embedded()
	s[name] = []byte(change(string(s[name])))
	e, err := policies.New(s)
	w.Must(err)
	return e
}

const noPython = `package writ.ext.strict

# METADATA
# title: No scripts
# description: Scripts are off.
# custom:
#   id: strict.python
deny contains {"id": "strict.python", "reason": "Scripts are off.", "hint": ""} if input.intent.type == "exec_python"

# METADATA
# title: Searches wait
# description: A search waits for approval.
# custom:
#   id: strict.find
hold contains {"id": "strict.find", "reason": "A search waits.", "approvers": ["ben"]} if {
	input.intent.type == "skill.find"
	input.actor.tenant == "acme"
}
`

// flipTexts are the flips of a backtest as "type before after rule tenant".
func flipTexts(b audit.Backtest) []string {
	var out []string
	for _, x := range b.Flips {
		out = append(out, strings.Join([]string{x.Type, string(x.Before), string(x.After), x.Rule, x.Tenant}, " "))
	}
	slices.Sort(out)
	return out
}

// TestBacktest: a stricter and a laxer policy give exactly the expected
// flips, over the data directory and over a bundle of it.
func TestBacktest(t *testing.T) {
	w := newWorld(t)
	w.live(9) // one search of tenant acme, one that the self-proof's rule denies
	same := w.with("none.rego", func(string) string { return "package unused\n" })
	strict := w.with("ext/strict.rego", func(string) string { return noPython })
	lax := w.with("authz/selfproof.rego", func(s string) string { return strings.ReplaceAll(s, `"forbidden"`, `"something else"`) })
	bundle := w.export(w.Journal, audit.Selection{})
	tried := map[string]func(audit.Trial) audit.Backtest{
		"records": func(o audit.Trial) audit.Backtest {
			b, err := audit.BacktestRecords(t.Context(), w.source(w.Journal), o)
			w.Must(err)
			return b
		},
		"bundle": func(o audit.Trial) audit.Backtest {
			b, err := audit.BacktestBundle(t.Context(), bytes.NewReader(bundle), o)
			w.Must(err)
			return b
		},
	}
	scripts := slices.Repeat([]string{"exec_python allow deny strict.python default"}, 9)
	for from, try := range tried {
		total := w.verify(bundle, audit.Options{}).Intents
		b := try(audit.Trial{New: same})
		if b.Records != total || b.Flipped != 0 || len(b.Flips) != 0 || b.Unreplayable != 0 || b.PerSecond <= 0 {
			t.Errorf("%s, the same policy: %+v, of %d intents", from, b, total)
		}
		b = try(audit.Trial{New: strict})
		if d := cmp.Diff(append(slices.Clone(scripts), "skill.find allow deny strict.find acme"), flipTexts(b)); d != "" {
			t.Errorf("%s, stricter (-want +got):\n%s", from, d)
		}
		if len(b.Groups) != 2 || b.Groups[0].Count != 9 || len(b.Groups[0].Samples) != 5 || b.Groups[0].Samples[0] != b.Flips[0].IntentID {
			t.Errorf("%s, stricter, grouped: %+v", from, b.Groups)
		}
		b = try(audit.Trial{New: lax})
		if d := cmp.Diff([]string{"skill.find deny allow writ.selfproof.forbidden default"}, flipTexts(b)); d != "" {
			t.Errorf("%s, laxer (-want +got):\n%s", from, d)
		}
		b = try(audit.Trial{New: strict, Today: lax, Tenant: "default"})
		if d := cmp.Diff(append(slices.Clone(scripts), "skill.find allow deny writ.selfproof.forbidden default"), flipTexts(b)); d != "" {
			t.Errorf("%s, between two, one tenant (-want +got):\n%s", from, d)
		}
		b = try(audit.Trial{New: lax, Today: strict})
		if b.Groups[0].After != intents.Allow || b.Groups[len(b.Groups)-1].After != intents.Allow || b.Flipped != 11 {
			t.Errorf("%s, new allows: %+v", from, b.Groups)
		}
		b = try(audit.Trial{New: strict, Since: w.Clock.Now()})
		if b.Records >= total || b.Flipped >= 10 {
			t.Errorf("%s, since now: %d records, %d flips", from, b.Records, b.Flipped)
		}
	}
}

// TestBacktestCannot: what cannot be decided again is counted, with the reason.
func TestBacktestCannot(t *testing.T) {
	w := newWorld(t)
	w.live(2)
	clear(w.blobs) // the policies of then are lost
	b, err := audit.BacktestRecords(t.Context(), w.source(w.Journal), audit.Trial{New: w.with("x.rego", func(string) string { return "package unused\n" })})
	w.Must(err)
	if b.Unreplayable == 0 || b.Why["the policy is not in the bundle"] != b.Unreplayable || b.Flipped != 0 {
		t.Errorf("without the policies of then: %+v", b)
	}
	if _, err := audit.PolicyInForce(t.Context(), w.source(w.Journal)); err == nil {
		t.Error("a policy that is lost is in force")
	}
}

// TestExplain: a denial, an allow and a refusal that policy never saw.
func TestExplain(t *testing.T) {
	w := newWorld(t)
	find := routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}}
	good := w.Want(w.Do(find), intents.OK)
	find.Ctx.Labels = map[string]string{"writ.selfproof": "forbidden"}
	denied := w.Want(w.Do(find), intents.PolicyDenied)
	find.Roles = []string{"auditor"}
	earlier := w.Want(w.Do(find), intents.RBACForbidden)
	source := w.source(w.Journal)
	x, err := audit.Explain(t.Context(), source, denied.IntentID, nil)
	w.Must(err)
	if p := x.Policy; p == nil || p.Verdict != intents.Deny || len(p.Fired) != 1 || p.Fired[0].ID != "writ.selfproof.forbidden" ||
		p.Fired[0].Title != "Self-proof" || p.Fired[0].Line == 0 || p.Input["intent"].(map[string]any)["type"] != "skill.find" {
		t.Errorf("the denial: %+v", x.Policy)
	}
	x, err = audit.Explain(t.Context(), source, good.IntentID, nil)
	w.Must(err)
	if x.Policy == nil || x.Policy.Verdict != intents.Allow || len(x.Policy.Fired) != 0 {
		t.Errorf("the allow: %+v", x.Policy)
	}
	x, err = audit.Explain(t.Context(), source, earlier.IntentID, nil)
	w.Must(err)
	if x.Policy != nil || x.Recorded.Code != intents.RBACForbidden {
		t.Errorf("the earlier refusal: %+v", x)
	}
	if _, err = audit.Explain(t.Context(), source, "sha256:none", nil); err == nil {
		t.Error("an intent that is not there is explained")
	}
	x, err = audit.Explain(t.Context(), source, good.IntentID, w.with("ext/strict.rego", func(string) string { return strings.ReplaceAll(noPython, "exec_python", "skill.find") }))
	w.Must(err)
	if x.Policy.Verdict != intents.Deny || x.Policy.Fired[0].ID != "strict.python" {
		t.Errorf("under another policy: %+v", x.Policy)
	}
}
