package audit_test

import (
	"testing"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

// asks writes a plan of an agent that asks others: one is held, one does not answer, and
// the next driver's task asks the held one anew. It gives the orders that have texts.
func (w *world) asks() (said []*intents.Answer) {
	w.Helper()
	w.Pin("crm.list", catalog.Pure)
	w.Pin("crm.close", catalog.Once)
	w.Approval(`{"once":true}`, "ben")
	w.PushAgents(1, map[string]string{"desk": deskAgent, "mail": mailAgent, "shop": shopAgent})
	p := w.BegunAgent("asks", "desk")
	do := func(o routertest.Order, code intents.Code) *intents.Answer {
		w.Helper()
		w.Clock.Move(time.Second)
		return w.Want(w.Do(o), code)
	}
	task := p.Started(1)
	ask, mail := task.AskOrder("mail", "1.0", nil)
	said = append(said, do(ask, intents.OK))
	shop := task.Asked("shop", "1.1")
	held := do(mail.CallOrder("crm.close", `{"n":1}`), intents.ApprovalRequired)
	do(mail.Order("step.finish", catalog.StepFinish{TaskID: mail.TaskID, Status: "held", Reply: "One waits."}), intents.OK)
	do(task.Order("step.finish", catalog.StepFinish{TaskID: shop.TaskID, Status: catalog.AskUnavailable, Reason: "It hangs."}), intents.OK)
	do(task.Order("step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "held", Reply: "One waits."}), intents.OK)
	do(routertest.Order{
		By: w.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Ctx: intents.Context{TurnID: "approval"},
		Args: catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove},
	}, intents.OK)
	_, err := w.Router.Await(w.Context(), *held.Position)
	w.Must(err)
	w.Want(p.Claim(), intents.OK)
	task = p.Started(1)
	mail = task.Asked("mail", "1.0")
	other := task.Asked("mail", "1.2")
	do(other.CallOrder("crm.close", `{"n":1}`), intents.ApprovalRequired) // equal, and another's
	said = append(said, do(mail.Order("step.finish", catalog.StepFinish{TaskID: mail.TaskID, Status: "done", Reply: "Closed."}), intents.OK))
	do(task.Order("step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "done", Reply: "These."}), intents.OK)
	w.Want(p.Complete(), intents.OK)
	return said
}

// TestAsks: a log of asks verifies, and still does when what was asked and answered has
// been erased.
func TestAsks(t *testing.T) {
	w := newWorld(t)
	said := w.asks()
	for range 2 {
		for name, sel := range map[string]audit.Selection{"all": {}, "tenant": {Tenant: "default", Complete: true}, "masked": {Masked: true}} {
			if r := w.verify(w.export(w.Journal, sel), audit.Options{Trust: w.trust(), Replay: true}); !r.OK || r.Replayed == 0 {
				t.Errorf("%s: %+v %v", name, r, r.FirstBad)
			}
		}
		for _, a := range said {
			w.Want(w.Erase(a, catalog.ErasesOrder), intents.OK)
		}
		said = nil
	}
}
