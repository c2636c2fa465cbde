package routertest

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// AskIntent is agent.ask for a call of the task, with the task that it asks for. change may
// change both before they are proved.
func (t *Task) AskIntent(agent, call string, change func(*Task, *catalog.AgentAsk)) (Intent, *Task) {
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
	o := t.Intent(intents.TypeAgentAsk, a)
	o.Ctx.Call = call
	return o, child
}

// MustAsk asks an agent, which must be accepted.
func (t *Task) MustAsk(agent, call string) *Task {
	t.Helper()
	o, child := t.AskIntent(agent, call, nil)
	t.Want(t.Do(o), intents.OK)
	return child
}
