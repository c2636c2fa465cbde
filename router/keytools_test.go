package router_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

// TestKeyBoundsAllCalls: what an API key gives bounds every call that is caused with it, also those of
// the tasks of plans that its user has opened otherwise than as a client, and under a grant that stands for a plan.
func TestKeyBoundsAllCalls(t *testing.T) {
	w := clientWorld(t, "bank.rates", "mail.*")
	for i, c := range []struct {
		skill string
		code  intents.Code
	}{{"bank.rates", intents.OK}, {"bank.pay", intents.RBACForbidden}, {"mail.send", intents.OK}} {
		p := w.Begun(fmt.Sprintf("p%d", i), c.skill)
		o := p.Started(1).CallOrder(c.skill, `{}`)
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
	// What its user may plan with: the pins that find and load are answered from.
	w.Want(w.Do(routertest.Order{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}}), intents.OK)
	var found []string
	for _, pin := range w.Bus.Calls("skill.find")[0].Ticket.Pins {
		found = append(found, pin.Skill)
	}
	if !slices.Equal(found, []string{"bank.rates", "mail.send"}) {
		t.Errorf("found %v", found)
	}
}
