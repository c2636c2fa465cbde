package audit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// approvals writes held intents and every decision that people may make about them.
func (w *world) approvals() {
	w.Helper()
	w.Pin("pay", catalog.Once)
	w.apiKeys("k1", "ben", "cleo", "dora")
	w.Approval(`{"once":true,"count":2}`, "ben", "cleo")
	for _, c := range []struct {
		plan string
		end  func(says func(who, decision string) *intents.Answer, p *routertest.Plan)
		want intents.Code
	}{
		{"p_yes", func(says func(who, decision string) *intents.Answer, _ *routertest.Plan) {
			w.Want(says("dora", "approve"), intents.RBACForbidden)
			w.Want(says("ben", "approve"), intents.OK)
			w.Want(says("cleo", "approve"), intents.OK)
		}, intents.OK},
		{"p_no", func(says func(who, decision string) *intents.Answer, _ *routertest.Plan) {
			w.Want(says("ben", "approve"), intents.OK)
			w.Want(says("cleo", "reject"), intents.OK)
		}, intents.ApprovalRejected},
		{"p_over", func(_ func(who, decision string) *intents.Answer, p *routertest.Plan) {
			w.Want(p.Cancel(w.Gateway), intents.OK)
		}, intents.Cancelled},
		{"p_late", func(_ func(who, decision string) *intents.Answer, _ *routertest.Plan) {
			w.Clock.Move(intents.MaxHold)
			w.Must(w.Router.ExpireHolds(w.Context()))
		}, intents.ApprovalExpired},
	} {
		p := w.Begun(c.plan, "pay")
		held := w.Want(p.Started(1).Call("pay", `{"for":"`+c.plan+`"}`), intents.ApprovalRequired)
		c.end(func(who, decision string) *intents.Answer {
			a := catalog.Approve{IntentID: held.IntentID, Decision: decision}
			if decision != catalog.DecisionApprove {
				a.Reason = "no"
			}
			return w.Do(routertest.Intent{By: w.Gateway, Type: "hitl.approve", User: who, Roles: []string{"approver"}, Args: a, Grant: through(who)})
		}, p)
		out, err := w.Router.Await(w.Context(), *held.Position)
		w.Must(err)
		w.Want(out, c.want)
	}
}

// TestVerifyApprovals: a log with holds, approvals and releases verifies, and every decision in it,
// that of the release too, is decided the same again.
func TestVerifyApprovals(t *testing.T) {
	w := newWorld(t)
	w.approvals()
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || !r.Complete || r.FirstBad != nil {
		t.Fatalf("%+v %+v", r, r.FirstBad)
	}
	// One of dora's, which rests on the hold, cannot be replayed; each release is.
	if r.Unreplayable != 1 || r.Replayed != r.Intents-1+1 {
		t.Errorf("%d intents, %d replayed, %d not: %v", r.Intents, r.Replayed, r.Unreplayable, r)
	}
}

// TestForgedRelease: a release that people did not approve is found, and so is one made
// for other reasons than the policy's.
func TestForgedRelease(t *testing.T) {
	w := newWorld(t)
	w.approvals()
	var at int64
	for _, rec := range w.Records() {
		if rec.Kind == storage.KindRelease {
			at = rec.Position
		}
	}
	if at == 0 {
		t.Fatal("no release")
	}
	for name, c := range map[string]struct {
		change func(m, inputs, decision map[string]any)
		want   string
	}{
		"one who said nothing": {func(_, inputs, _ map[string]any) {
			inputs["approvals"] = append(inputs["approvals"].([]any), map[string]any{"user_id": "dora", "at": inputs["now"]})
		}, "an approval that nobody gave"},
		"one is enough": {func(_, inputs, _ map[string]any) {
			inputs["approvals"] = inputs["approvals"].([]any)[:1]
		}, "without the approvals that writ.skill.once wants"},
		"by nobody": {func(m, _, _ map[string]any) { m["by"] = intents.Digest(nil) }, "another intent than the last approval"},
		"other obligations": {func(_, _, d map[string]any) {
			d["obligations"] = []any{map[string]any{"name": "max_bytes", "value": 1}}
		}, "other obligations"},
		"other roles":    {func(_, f, _ map[string]any) { f["roles"] = []any{"admin"} }, "roles that the grant does not give"},
		"another effect": {func(_, _, d map[string]any) { d["effect"] = "pure" }, "another executor or effect"},
		"another input": {func(_, f, _ map[string]any) {
			f["inputs"] = []any{map[string]any{"pointer": "/input", "ref": "cas://x", "sha256": "x", "size_bytes": 1}}
		}, "other inputs"},
	} {
		t.Run(name, func(t *testing.T) {
			forged := w.rewritten(at, func(r *storage.Record) {
				var m map[string]any
				w.Must(json.Unmarshal(r.Parts[storage.PartRelease], &m))
				c.change(m, m["facts"].(map[string]any), m["decision"].(map[string]any))
				raw, err := json.Marshal(m)
				w.Must(err)
				r.Parts[storage.PartRelease] = raw
			})
			r := w.verify(w.export(forged, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
			if r.OK || r.FirstBad == nil || r.FirstBad.Position != at || !strings.Contains(r.FirstBad.Reason, c.want) {
				t.Errorf("%+v, want at %d: %s", r.FirstBad, at, c.want)
			}
		})
	}
}
