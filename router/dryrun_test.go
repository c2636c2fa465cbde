package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router"
)

func dryRun(w *routertest.World, raw []byte) *intents.Answer {
	w.Helper()
	before, counted := w.Journal.Next(), w.Router.Counts()
	a, err := w.Router.DryRun(w.Context(), raw)
	if err != nil {
		a = router.RefusalAnswer(raw, err)
	}
	after := w.Router.Counts()
	if w.Journal.Next() != before || len(after.Refused) != len(counted.Refused) || after.Accepted != counted.Accepted {
		w.Error("a dry run left a trace")
	}
	return a
}

// explaining are roles that may read explanations.
var explaining = []string{"user", "auditor"}

func TestDryRun(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Roles = explaining
	a := w.Want(dryRun(w, w.Sign(o)), intents.OK)
	if a.Position != nil || a.Receipt != "" || a.Outcome != nil || a.Decision.Verdict != intents.Allow {
		t.Errorf("%+v", a)
	}
	if n := len(w.Bus.Calls("skill.find")); n != 0 {
		t.Errorf("%d dispatches", n)
	}
	o.Type, o.Args = "skill.load", catalog.SkillLoad{Skill: "feed"}
	if a := w.Want(dryRun(w, w.Sign(o)), intents.PolicyDenied); a.Position != nil || len(a.Decision.PolicyIDs) == 0 {
		t.Errorf("%+v", a)
	}
}

// An allowed dry run takes no key and changes no state.
func TestDryRunTakesNothing(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	p.Roles = explaining
	raw := w.Sign(p.OpenIntent())
	w.Want(dryRun(w, raw), intents.OK)
	w.Want(dryRun(w, raw), intents.OK)
	a := w.Want(w.Send(raw), intents.OK)
	if a.Replayed {
		t.Error("the dry run took the key")
	}
}

func TestDryRunNeedsPolicyExplain(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Want(dryRun(w, w.Sign(find(w))), intents.RBACForbidden)
	// An operator's roles are those of the directory.
	o := routertest.Intent{By: w.Operator, Type: "skill.approve", Args: catalog.SkillApprove{Skill: "s", Digest: intents.Digest(nil), Effect: catalog.Pure}}
	w.Want(dryRun(w, w.Sign(o)), intents.OK)
}

func TestDryRunIsNeverForATask(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	task := w.Begun("p1", "feed").Started(1)
	o := task.CallIntent("feed", `{}`)
	o.Roles = explaining
	w.Want(dryRun(w, w.Sign(o)), intents.RBACForbidden)
}
