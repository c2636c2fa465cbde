package routertest

import (
	"strings"
	"testing/fstest"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// RegistryOf is a push of agents, by name of their files without .yaml.
func (w *World) RegistryOf(tenant string, revision int64, files map[string]string) catalog.RegistryPush {
	w.Helper()
	r := w.Registry(files)
	bundle, err := r.Pack()
	w.Must(err)
	return catalog.RegistryPush{Tenant: tenant, Revision: revision, Digest: r.Digest(), Bundle: bundle}
}

// Registry of agents, by name of their files without .yaml; of other files by path.
func (w *World) Registry(files map[string]string) *agents.Revision {
	w.Helper()
	dir := fstest.MapFS{}
	for name, text := range files {
		path := "agents/" + name
		if strings.Contains(name, "/") {
			path = name
		}
		dir[path+".yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	r, err := agents.Read(dir, func(string) string { return "" })
	w.Must(err)
	return r
}

// PushAgents puts agents in force for tenant default.
func (w *World) PushAgents(revision int64, files map[string]string) {
	w.Helper()
	w.Want(w.Admin("registry.push", w.RegistryOf("default", revision, files)), intents.OK)
}

// OpenAgentIntent is plan.open of an agent.
func (p *Plan) OpenAgentIntent(agent string) Intent {
	return p.intent(p.Gateway, "plan.open", catalog.PlanOpen{PlanID: p.ID, Task: "Which ten?", Agent: agent})
}

// BegunAgent opens and claims a plan of an agent.
func (w *World) BegunAgent(id, agent string) *Plan {
	w.Helper()
	p := w.NewPlan(id)
	a := p.Want(p.Do(p.OpenAgentIntent(agent)), intents.OK)
	p.Digest = a.IntentID
	p.Want(p.Claim(), intents.OK)
	return p
}

// Reply ends the task of an agent with its reply.
func (t *Task) Reply(text string) *intents.Answer {
	t.Helper()
	return t.Do(t.Intent("step.finish", catalog.StepFinish{TaskID: t.TaskID, Status: "done", Reply: text}))
}
