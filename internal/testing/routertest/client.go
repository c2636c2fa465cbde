package routertest

import (
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// ClientKey puts the API key that usual grants come with, and the skills that it gives.
func (w *World) ClientKey(tools ...string) {
	w.Helper()
	hash := intents.Digest([]byte(fmt.Sprint("key", tools)))
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{ID: usualKey, Hash: hash, UserID: "ana", MaxRoles: []string{"user", "approver"}, MayAssertUser: true, Tools: tools}}), intents.OK)
}

// OpenClientIntent is plan.open of a client.
func (p *Plan) OpenClientIntent() Intent {
	return p.intent(p.Gateway, "plan.open", catalog.PlanOpen{PlanID: p.ID, Task: "Calls of a client.", Agent: agents.Client, APIKey: usualKey})
}

// BegunClient opens the plan of a client and its task.
func (w *World) BegunClient(id string) *Task {
	w.Helper()
	p := w.NewPlan(id)
	p.Digest = p.Want(p.Do(p.OpenClientIntent()), intents.OK).IntentID
	p.Want(p.Claim(), intents.OK)
	return p.Started(1)
}

// Numbered is a call of a client.
func (t *Task) Numbered(n int, skill, input string) Intent {
	o := t.CallIntent(skill, input)
	o.Ctx.Occurrence = n
	return o
}
