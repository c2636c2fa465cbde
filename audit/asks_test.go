package audit_test

import (
	"testing"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// asks writes a plan of an agent that asks others: one is held, one does not answer, and
// the next driver's task asks the held one again. It returns the intents that have texts.
func (w *world) asks() (said []*intents.Answer) {
	w.Helper()
	w.Pin("crm.list", catalog.Pure)
	w.Pin("crm.close", catalog.Once)
	w.Approval(`{"once":true}`, "ben")
	w.PushAgents(1, map[string]string{"desk": deskAgent, "mail": mailAgent, "shop": shopAgent})
	p := w.BegunAgent("asks", "desk")
	do := func(o routertest.Intent, code intents.Code) *intents.Answer {
		w.Helper()
		w.Clock.Move(time.Second)
		return w.Want(w.Do(o), code)
	}
	task := p.Started(1)
	ask, mail := task.AskIntent("mail", "1.0", nil)
	said = append(said, do(ask, intents.OK))
	shop := task.MustAsk("shop", "1.1")
	held := do(mail.CallIntent("crm.close", `{"n":1}`), intents.ApprovalRequired)
	do(mail.Intent("step.finish", catalog.StepFinish{TaskID: mail.TaskID, Status: "held", Reply: "One waits."}), intents.OK)
	do(task.Intent("step.finish", catalog.StepFinish{TaskID: shop.TaskID, Status: catalog.AskUnavailable, Reason: "It hangs."}), intents.OK)
	do(task.Intent("step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "held", Reply: "One waits."}), intents.OK)
	do(routertest.Intent{
		By: w.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Ctx: intents.Context{TurnID: "approval"},
		Args: catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove},
	}, intents.OK)
	_, err := w.Router.Await(w.Context(), *held.Position)
	w.Must(err)
	w.Want(p.Claim(), intents.OK)
	task = p.Started(1)
	mail = task.MustAsk("mail", "1.0")
	other := task.MustAsk("mail", "1.2")
	do(other.CallIntent("crm.close", `{"n":1}`), intents.ApprovalRequired) // equal, and another's
	said = append(said, do(mail.Intent("step.finish", catalog.StepFinish{TaskID: mail.TaskID, Status: "done", Reply: "Closed."}), intents.OK))
	do(task.Intent("step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "done", Reply: "These."}), intents.OK)
	w.Want(p.Complete(), intents.OK)
	return said
}

// TestAsks: a log of asks verifies, also after questions and answers have
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
			w.Want(w.Erase(a, catalog.ErasesEnvelope), intents.OK)
		}
		said = nil
	}
}
