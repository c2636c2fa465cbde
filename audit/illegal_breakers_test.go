package audit_test

import (
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/breakers"
)

// broken is a plan whose skill server has failed, a call that was refused for it, and a held one.
func (d *dishonest) broken() {
	d.Helper()
	d.Pin("pay", catalog.Once)
	d.Approval(`{"skills":["pay"]}`, "ben")
	d.plan = d.Begun("plan_1", "pay")
	d.start()
	d.held = d.Want(d.task.Call("pay", `{"n":0}`), intents.ApprovalRequired)
	d.Data("approval", `{"once":false}`)
	report := routertest.Failed(intents.ExecutorFailed)
	report.Transport = &intents.Transport{Failure: true}
	d.Bus.On("skill.call", routertest.Always(report))
	for n := range breakers.Defaults.Failures {
		d.Want(d.task.Call("pay", fmt.Sprintf(`{"n":%d}`, n+1)), intents.ExecutorFailed)
	}
	d.Want(d.task.Call("pay", `{"n":9}`), intents.DispatchUnavailable)
}

// unavailable makes an intent one that a breaker has refused.
func unavailable(a *appended) {
	a.decision.Verdict, a.decision.Code, a.decision.Key, a.outcome = intents.Deny, intents.DispatchUnavailable, "", nil
}

// continuesLegally: the breaker refuses another call, and lets the held one go. What it does is the
// router's word.
func (d *dishonest) continuesLegally() {
	d.Helper()
	d.accepted(d.task.CallIntent("pay", `{"n":10}`), once, unavailable)
	d.accepted(d.task.CallIntent("pay", `{"n":11}`), once)
	_, by, yes := d.says(routertest.Intent{User: "ben", Roles: []string{"approver"}})
	d.released(*d.held.Position, by, yes)
}

const ofBreakers = "skill.call: unavailable is only a skill server, or an agent that a request is routed to"

// breakerMisdeeds pretend that a skill server fails which is not called.
var breakerMisdeeds = []misdeed{
	{"unavailable-without-server", "spent", ofBreakers, "it calls none", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("skill.find", catalog.SkillFind{Query: "pay"}), unavailable)
	}},
	{"unavailable-unapproved", "spent", ofBreakers, "it calls none", func(d *dishonest) int64 {
		return d.accepted(d.task.CallIntent("pay", `{"n":2}`), once, unavailable, func(a *appended) { a.inputs.Skill = nil })
	}},
}
