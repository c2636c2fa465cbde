package router_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestKeyBoundsAllCalls: the tools of an API key bound every call that is caused with it, also
// those of the tasks of plans that its user has opened otherwise than as a client, and under a
// grant that stands for a plan.
func TestKeyBoundsAllCalls(t *testing.T) {
	w := clientWorld(t, "bank.rates", "mail.*")
	for i, c := range []struct {
		skill string
		code  intents.Code
	}{{"bank.rates", intents.OK}, {"bank.pay", intents.RBACForbidden}, {"mail.send", intents.OK}} {
		p := w.Begun(fmt.Sprintf("p%d", i), c.skill)
		o := p.Started(1).CallIntent(c.skill, `{}`)
		if a := w.Want(w.Do(o), c.code); c.code != intents.OK && a.Pointer != "/intent/args/skill" {
			t.Errorf("%+v", a)
		}
		o.Args = catalog.SkillCall{Skill: c.skill, Input: json.RawMessage(`{"again":1}`)}
		o.Grant = func(g *intents.Grant) { g.For = "plan:" + p.ID }
		w.Want(w.Do(o), c.code)
	}
	if calls := w.Bus.Calls("skill.call"); len(calls) != 4 {
		t.Errorf("%d calls", len(calls))
	}
	// What its user may plan with: the pins that answer find and load.
	w.Want(w.Do(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}}), intents.OK)
	var found []string
	for _, pin := range w.Bus.Calls("skill.find")[0].Ticket.Pins {
		found = append(found, pin.Skill)
	}
	if !slices.Equal(found, []string{"bank.rates", "mail.send"}) {
		t.Errorf("found %v", found)
	}
}

// TestKeyBoundsRuns: a key bounds the nodes of a workflow that is run with it, and those that a
// patch adds.
func TestKeyBoundsRuns(t *testing.T) {
	r, one, two := patchWorld(t, catalog.Pure)
	r.ClientKey("crm.*", "mail.*")
	a := r.Want(r.Do(r.PatchIntent("two", referencePatch)), intents.OK)
	r.Patched(a)
	one.Done()
	two.Done()
	up := r.Begin("upload_to_s3")
	if a := r.Want(up.Sign(), intents.RBACForbidden); a.Pointer != "/intent/args/skill" {
		t.Errorf("of a patch: %+v", a)
	}
	if calls := r.Bus.Calls("skill.call"); len(calls) != 2 {
		t.Errorf("%d calls", len(calls))
	}
	r, one, _ = patchWorld(t, catalog.Pure)
	r.ClientKey("mail.*")
	if a := r.Want(one.Sign(), intents.RBACForbidden); a.Pointer != "/intent/args/skill" {
		t.Errorf("of the workflow: %+v", a)
	}
}

// TestKeyBoundsSchedules: a key bounds the calls of a schedule that was put with it.
func TestKeyBoundsSchedules(t *testing.T) {
	w := clientWorld(t, "bank.rates")
	due := routertest.Result[catalog.ScheduleNext](w, w.Want(putSchedule(w, catalog.SchedulePut{ID: "daily", Agent: "general", Input: "Pay.", Cron: "0 9 * * *"}), intents.OK)).Next
	w.Clock.Move(due.Sub(w.Clock.Now()))
	if s := w.Dir.Due(w.Clock.Now()); len(s) != 1 || s[0].Client != intents.ClientOf("k1") {
		t.Fatalf("the key is not known any more: %+v", s)
	}
	p := w.NewPlan("fired")
	p.Digest = w.Want(w.Do(fire(w, "fired", "daily", due, nil)), intents.OK).IntentID
	w.Want(p.Claim(), intents.OK)
	task := p.Started(1)
	for skill, code := range map[string]intents.Code{"bank.rates": intents.OK, "bank.pay": intents.RBACForbidden, "mail.send": intents.RBACForbidden} {
		o := task.CallIntent(skill, `{}`)
		o.Ctx.Call = "1.0"
		if skill != "bank.rates" {
			o.Ctx.Call = "2.0"
		}
		w.Want(w.Do(o), code)
	}
}
