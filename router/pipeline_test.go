package router_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// find is a good intent: the planner looks for skills.
func find(w *routertest.World) routertest.Intent {
	return routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "quakes"}}
}

// vector is one way in which an intent is refused.
type vector struct {
	name    string
	raw     func(w *routertest.World) []byte
	code    intents.Code
	pointer string
}

// signed makes a vector of a change to a good intent.
func signed(name string, code intents.Code, pointer string, change func(*routertest.World, *routertest.Intent)) vector {
	return vector{name, func(w *routertest.World) []byte {
		o := find(w)
		change(w, &o)
		return w.Sign(o)
	}, code, pointer}
}

// granted changes the grant.
func granted(name string, code intents.Code, pointer string, change func(*routertest.World, *intents.Grant)) vector {
	return signed(name, code, pointer, func(w *routertest.World, o *routertest.Intent) {
		o.Grant = func(g *intents.Grant) { change(w, g) }
	})
}

// unrecorded are the refusals of stages 1, 2 and 4: counted, never recorded.
var unrecorded = []vector{
	{"no JSON", func(*routertest.World) []byte { return []byte("{") }, intents.SchemaInvalid, ""},
	{"unknown member", func(w *routertest.World) []byte {
		return bytes.Replace(w.Sign(find(w)), []byte(`"version"`), []byte(`"extra":1,"version"`), 1)
	}, intents.SchemaInvalid, "/extra"},
	{"another version", func(w *routertest.World) []byte {
		return bytes.Replace(w.Sign(find(w)), []byte(`"version":"1.0"`), []byte(`"version":"2.0"`), 1)
	}, intents.SchemaInvalid, "/version"},
	{"too large", func(*routertest.World) []byte { return bytes.Repeat([]byte(" "), intents.MaxSize+1) }, intents.PayloadTooLarge, ""},
	{"bad signature", func(w *routertest.World) []byte {
		return bytes.Replace(w.Sign(find(w)), []byte("quakes"), []byte("Quakes"), 1)
	}, intents.SignatureInvalid, "/sig"},
	signed("for another log", intents.SignatureInvalid, "/constraints/audience", func(_ *routertest.World, o *routertest.Intent) { o.Audience = "writ/other" }),
	signed("unknown key", intents.KeyUnknown, "/sig", func(w *routertest.World, o *routertest.Intent) { o.By = w.NewKey(intents.RolePlanner) }),
	signed("revoked key", intents.KeyRevoked, "/sig", func(w *routertest.World, _ *routertest.Intent) { w.RevokeKey(w.Planner) }),
	signed("no grant", intents.GrantInvalid, "/actor/grant", func(_ *routertest.World, o *routertest.Intent) { o.NoGrant = true }),
	signed("grant by the manager", intents.GrantInvalid, "/actor/grant", func(w *routertest.World, o *routertest.Intent) { o.IssuedBy = &w.Manager }),
	granted("expired grant", intents.GrantInvalid, "/actor/grant", func(_ *routertest.World, g *intents.Grant) {
		g.IssuedAt -= 3600
		g.Expires -= 3600
	}),
	granted("grant of another session", intents.GrantInvalid, "/context", func(_ *routertest.World, g *intents.Grant) { g.Session = "S2" }),
	granted("grant of another turn", intents.GrantInvalid, "/context", func(_ *routertest.World, g *intents.Grant) { g.Turn = "T2" }),
	granted("standing grant of another plan", intents.GrantInvalid, "/actor/grant", func(_ *routertest.World, g *intents.Grant) { g.For = "plan:" + routertest.PlanID("p9") }),
	granted("grant of another tenant", intents.RBACForbidden, "/actor", func(_ *routertest.World, g *intents.Grant) { g.Tenant = "system" }),
	granted("grant of another user", intents.RBACForbidden, "/actor", func(_ *routertest.World, g *intents.Grant) { g.Subject = "bob" }),
	signed("actor claims more roles", intents.RBACForbidden, "/actor/roles", func(_ *routertest.World, o *routertest.Intent) { o.Claim = []string{"admin"} }),
	signed("revoked grant", intents.GrantInvalid, "/actor/grant", func(w *routertest.World, _ *routertest.Intent) {
		w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: w.Clock.Now().Add(time.Second).Format(time.RFC3339)}), intents.OK)
	}),
	signed("another's operator key", intents.RBACForbidden, "/actor", func(w *routertest.World, o *routertest.Intent) { o.By, o.User = w.Operator, "mallory" }),
	signed("expired", intents.ExpiredTTL, "/constraints/ttl_sec", func(w *routertest.World, o *routertest.Intent) {
		o.At = w.Clock.Now().Add(-time.Minute - intents.Leeway - time.Millisecond)
	}),
	signed("from the future", intents.NotYetValid, "/constraints/issued_at", func(w *routertest.World, o *routertest.Intent) {
		o.At = w.Clock.Now().Add(intents.Leeway + time.Millisecond)
	}),
}

// recorded are the refusals of stages 3, 5, 6 and 7: one record for each.
var recorded = []vector{
	signed("unknown type", intents.UnknownIntent, "/intent/type", func(_ *routertest.World, o *routertest.Intent) { o.Type = "skill.fly" }),
	signed("wrong role", intents.KeyRole, "/sig", func(w *routertest.World, o *routertest.Intent) { o.By = w.Manager }),
	signed("a router's own key", intents.KeyRole, "/sig", func(w *routertest.World, o *routertest.Intent) { o.By = w.Signer }),
	signed("no such plan", intents.TaskScope, "/context/plan_id", func(_ *routertest.World, o *routertest.Intent) { o.Ctx.PlanID = routertest.PlanID("p9") }),
	signed("missing argument", intents.SchemaInvalid, "/intent/args/query", func(_ *routertest.World, o *routertest.Intent) { o.Args = struct{}{} }),
	signed("argument too much", intents.SchemaInvalid, "/intent/args/colour", func(_ *routertest.World, o *routertest.Intent) {
		o.Args = map[string]string{"query": "q", "colour": "red"}
	}),
	signed("illegal transition", intents.TaskScope, "/intent/args/plan_id", func(w *routertest.World, o *routertest.Intent) {
		o.By, o.Type, o.Args = w.Manager, "plan.claim", catalog.PlanClaim{PlanID: routertest.PlanID("p9"), Epoch: 1, Driver: "d1"}
	}),
	signed("key of another intent", intents.ConflictIdempotency, "/constraints/idempotency_key", func(w *routertest.World, o *routertest.Intent) {
		o.Key = "k"
		w.OK(*o)
		o.Args = catalog.SkillFind{Query: "other"}
	}),
	signed("no capability", intents.RBACForbidden, "/actor", func(_ *routertest.World, o *routertest.Intent) { o.Roles = []string{"auditor"} }),
	signed("declared, not had", intents.RBACForbidden, "/constraints/capabilities", func(_ *routertest.World, o *routertest.Intent) {
		o.Capabilities = []string{"skills:read", "admin:keys"}
	}),
	signed("had, not declared", intents.RBACForbidden, "/constraints/capabilities", func(_ *routertest.World, o *routertest.Intent) {
		o.Capabilities = []string{"skills:call"}
	}),
	signed("no such tenant", intents.RBACForbidden, "/actor/tenant", func(_ *routertest.World, o *routertest.Intent) { o.Tenant = "nowhere" }),
	signed("unpinned skill", intents.PolicyDenied, "", func(_ *routertest.World, o *routertest.Intent) {
		o.Type, o.Args = "skill.load", catalog.SkillLoad{Skill: "feed"}
	}),
	signed("the forbidden label", intents.PolicyDenied, "", func(_ *routertest.World, o *routertest.Intent) {
		o.Ctx.Labels = map[string]string{"writ.selfproof": "forbidden"}
	}),
}

func TestRefusalsWithoutRecord(t *testing.T) {
	for _, v := range unrecorded {
		t.Run(v.name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			raw := v.raw(w)
			before := w.Journal.Next()
			check(t, v, w.Send(raw), false)
			if next := w.Journal.Next(); next != before {
				t.Errorf("%d records were made", next-before)
			}
			counts := w.Router.Counts()
			if n := counts.Refused[v.code]; n != 1 {
				t.Errorf("counted %d times", n)
			}
			if counts.Principals != map[bool]int64{true: 1}[v.pointer == "/actor"] || counts.Versions != map[bool]int64{true: 1}[v.pointer == "/version"] {
				t.Errorf("%d for another principal, %d of another version", counts.Principals, counts.Versions)
			}
		})
	}
}

func TestRefusalsWithRecord(t *testing.T) {
	for _, v := range recorded {
		t.Run(v.name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			raw := v.raw(w)
			before := w.Journal.Next()
			first := w.Send(raw)
			check(t, v, first, true)
			rec, err := w.Journal.Get(t.Context(), *first.Position)
			w.Must(err)
			var d intents.Decision
			w.Must(json.Unmarshal(rec.Parts[storage.PartDecision], &d))
			if d.Verdict != intents.Deny || d.Code != v.code || d.IntentID != first.IntentID {
				t.Errorf("recorded %+v", d)
			}
			again := w.Send(raw)
			check(t, v, again, true)
			if *again.Position != before || w.Journal.Next() != before+1 {
				t.Errorf("again at %d, next %d: a refusal is recorded once, at %d", *again.Position, w.Journal.Next(), before)
			}
			if n := w.Router.Counts().Refused[v.code]; n != 2 {
				t.Errorf("counted %d times, was refused twice", n)
			}
		})
	}
}

func check(t *testing.T, v vector, a *intents.Answer, hasRecord bool) {
	t.Helper()
	if a.Code != v.code || a.Pointer != v.pointer {
		t.Fatalf("%s at %q (%s), want %s at %q", a.Code, a.Pointer, a.Reason, v.code, v.pointer)
	}
	if (a.Position != nil) != hasRecord || a.Receipt != "" || a.Outcome != nil {
		t.Errorf("position %v, receipt %q, outcome %v", a.Position, a.Receipt, a.Outcome)
	}
	if strings.Contains(a.Reason, "quakes") || a.Reason == "" {
		t.Errorf("reason %q", a.Reason)
	}
}

// The policy's own words go into the denial: rule id, reason, hint.
func TestPolicyDenialIsData(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Type, o.Args = "skill.load", catalog.SkillLoad{Skill: "feed"}
	d := w.Want(w.Do(o), intents.PolicyDenied).Decision
	if len(d.PolicyIDs) != 1 || d.PolicyIDs[0] != "writ.skill.unpinned" || d.Hint == "" || !strings.Contains(d.Reason, "no approved pin") {
		t.Errorf("%+v", d)
	}
}

// Every violation of a schema is reported, not only the first.
func TestAllSchemaViolationsAreReported(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Args = map[string]any{"limit": 0, "colour": "red"}
	a := w.Want(w.Do(o), intents.SchemaInvalid)
	if len(a.Violations) < 3 {
		t.Errorf("violations %v", a.Violations)
	}
	for _, v := range a.Violations {
		if !strings.HasPrefix(v.Pointer, "/intent/args") {
			t.Errorf("pointer %q is not into the intent", v.Pointer)
		}
	}
}

// The leeway of five seconds is inclusive on both ends.
func TestFreshnessLeeway(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for _, at := range []time.Duration{intents.Leeway, -time.Minute - intents.Leeway} {
		o := find(w)
		o.At = w.Clock.Now().Add(at)
		w.OK(o)
	}
}

// Stages come in their order: of two faults the earlier stage reports its own.
func TestEarlierStageSpeaks(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	at := w.Clock.Now().Add(-time.Hour)
	for _, c := range []struct {
		name   string
		change func(*routertest.Intent)
		code   intents.Code
	}{
		{"type before role", func(o *routertest.Intent) { o.Type, o.By = "skill.fly", w.Manager }, intents.UnknownIntent},
		{"role before arguments", func(o *routertest.Intent) { o.By, o.Args = w.Manager, struct{}{} }, intents.KeyRole},
		{"scope before arguments", func(o *routertest.Intent) { o.Ctx.PlanID, o.Args = routertest.PlanID("p9"), struct{}{} }, intents.TaskScope},
		{"arguments before freshness", func(o *routertest.Intent) { o.Args, o.At = struct{}{}, at }, intents.SchemaInvalid},
		{"freshness before capability", func(o *routertest.Intent) { o.At, o.Roles = at, []string{"auditor"} }, intents.ExpiredTTL},
		{"capability before policy", func(o *routertest.Intent) {
			o.Roles, o.Ctx.Labels = []string{"auditor"}, map[string]string{"writ.selfproof": "forbidden"}
		}, intents.RBACForbidden},
	} {
		o := find(w)
		c.change(&o)
		if a := w.Do(o); a.Code != c.code {
			t.Errorf("%s: %s, want %s", c.name, a.Code, c.code)
		}
	}
}
