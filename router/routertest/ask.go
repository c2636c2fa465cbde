package routertest

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// AskOrder is agent.ask for a call of the task, with the task that it asks for. change may
// change both before they are proved.
func (t *Task) AskOrder(agent, call string, change func(*Task, *catalog.AgentAsk)) (Order, *Task) {
	t.Helper()
	child := t.NewTask(t.Step)
	child.Ask, child.Revision = call, t.Revision
	a := catalog.AgentAsk{
		Agent: agent, Input: "Which, in " + call + "?", Context: catalog.AskContext{EpisodeID: SessionOf(t.ID)}, PlanID: t.ID, Epoch: t.Epoch, Parent: t.TaskID,
		TaskID: child.TaskID, Deadline: t.Clock.Now().Add(30 * time.Second).Format(time.RFC3339),
	}
	if change != nil {
		change(child, &a)
	}
	a.JWK = child.Key.VerificationKey().ToJWK()
	var err error
	a.PoP, err = intents.SignPoP(child.Key, a)
	t.Must(err)
	o := t.Order(intents.TypeAgentAsk, a)
	o.Ctx.Call = call
	return o, child
}

// Asked asks an agent, which must be accepted.
func (t *Task) Asked(agent, call string) *Task {
	t.Helper()
	o, child := t.AskOrder(agent, call, nil)
	t.Want(t.Do(o), intents.OK)
	return child
}
