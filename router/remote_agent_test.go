package router_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage/blobdir"
)

const helpdesk = `agent_id: helpdesk
display_name: Help desk
description: Resets passwords.
endpoint: https://first.example/mcp
type: mcp
is_default: true
confidence_threshold: 0
clarification_required: false
examples: [Reset my password]
`

const front = `name: front
description: Asks others.
sub_agents: [helpdesk, local]
`

const anyone = `name: anyone
description: Asks any.
tools: [{name: ask_agent}]
`

const local = `name: local
description: Is here.
tools: [{server: helpdesk, name: handle_message}]
`

// message is the one call of a remote agent's task.
func message(t *routertest.Task, skill string) routertest.Intent {
	o := t.Intent("skill.call", catalog.SkillCall{Skill: skill, Input: json.RawMessage(`{"raw_input":"Reset my password"}`)})
	o.Ctx.Call = "1.0"
	return o
}

// lastPins are those of the last ticket of a call.
func lastPins(t *testing.T, w *routertest.World) []intents.Pin {
	t.Helper()
	calls := w.Bus.Calls("skill.call")
	if len(calls) == 0 {
		t.Fatal("no call was dispatched")
	}
	return calls[len(calls)-1].Ticket.Pins
}

// TestRemoteAgent: a plan of a remote agent has one task that makes one call, under the pin that
// follows from the registry at the plan's opening. It needs no approval of a skill and gives none,
// and no other plan has the pin.
func TestRemoteAgent(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	people(w)
	w.Data("approval", `{"once":true}`) // which is about skills
	files := map[string]string{"helpdesk": helpdesk, "front": front, "anyone": anyone, "local": local}
	w.PushAgents(1, files)
	p := w.BegunAgent("p", "helpdesk")
	task := p.Started(1)
	files["helpdesk"] = strings.Replace(helpdesk, "first", "second", 1) + "idempotent: true\n"
	w.PushAgents(2, files)
	w = w.Restart()
	task.Plan = p.On(w)

	got := w.Want(w.Do(message(task, "helpdesk.handle_message")), intents.OK)
	if got.Decision.Effect != string(catalog.Once) {
		t.Errorf("its effect is %s", got.Decision.Effect)
	}
	want := intents.Pin{Skill: "helpdesk.handle_message", Digest: intents.Digest([]byte(helpdesk)), Effect: "once", Kind: "agent", Server: "https://first.example/mcp"}
	if pins := lastPins(t, w); len(pins) != 1 || pins[0] != want {
		t.Errorf("the ticket has the pins %+v, want %+v", pins, want)
	}
	for _, o := range []routertest.Intent{
		message(task, "handle_message"), message(task, "other.handle_message"),
		task.Intent("skill.load", catalog.SkillLoad{Skill: "helpdesk.handle_message"}), task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"}),
	} {
		refused(t, w.Do(o), intents.TaskScope, "")
	}
	w.Want(task.Reply("Which account?"), intents.OK)

	// A plan that is opened now has the new endpoint and effect.
	task = w.BegunAgent("q", "helpdesk").Started(1)
	w.Want(w.Do(message(task, "helpdesk.handle_message")), intents.OK)
	if pins := lastPins(t, w); pins[0].Server != "https://second.example/mcp" || pins[0].Effect != "idempotent" {
		t.Errorf("a new plan has %+v", pins[0])
	}

	// Asked by another agent. An agent that may ask any asks local ones.
	task = w.BegunAgent("r", "front").Started(1)
	child := task.MustAsk("helpdesk", "1.0")
	w.Want(w.Do(message(child, "helpdesk.handle_message")), intents.OK)
	refused(t, w.Do(message(task.MustAsk("local", "1.1"), "helpdesk.handle_message")), intents.PolicyDenied, "")
	task = w.BegunAgent("s", "anyone").Started(1)
	o, _ := task.AskIntent("helpdesk", "1.0", nil)
	refused(t, w.Do(o), intents.TaskScope, "may ask")

	// A step of a planner's plan, which names the agent and never its tool.
	p = w.NewPlan("planned")
	p.Want(p.Open(), intents.OK)
	p.Want(p.Claim(), intents.OK)
	offered := routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(routertest.Intent{By: w.Planner, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: p.ID}}), intents.OK)).Others
	if len(offered) != 4 {
		t.Errorf("the planner is told of %+v", offered)
	}
	p.Want(p.Plan(append(routertest.Steps(1, "helpdesk.handle_message"), byAgent(2, "helpdesk"))), intents.OK)
	task = p.Started(1)
	refused(t, w.Do(message(task, "helpdesk.handle_message")), intents.PolicyDenied, "")
	task.Done()
	task = p.Started(2)
	w.Want(w.Do(message(task, "helpdesk.handle_message")), intents.OK)
	w.Want(w.Do(task.Intent("write_memory", catalog.WriteMemory{Label: "said", Data: json.RawMessage(`"Which account?"`)})), intents.OK)
}

// TestRemoteAgentHeld: approval can be required for a remote agent by its name, and a released
// intent goes to the endpoint of the plan.
func TestRemoteAgentHeld(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	people(w)
	w.Data("approval", `{"skills":["handle_message"]}`)
	w.PushAgents(1, map[string]string{"helpdesk": helpdesk})
	task := w.BegunAgent("p", "helpdesk").Started(1)
	x := releaseWorld{w, task, w.Want(w.Do(message(task, "helpdesk.handle_message")), intents.ApprovalRequired)}
	w.PushAgents(2, map[string]string{"helpdesk": strings.Replace(helpdesk, "first", "second", 1)})
	w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	w.Want(x.outcome(), intents.OK)
	if pins := lastPins(t, w); len(pins) != 1 || pins[0].Server != "https://first.example/mcp" || pins[0].Kind != intents.KindAgent {
		t.Errorf("the released call has the pins %+v", pins)
	}
}

// TestRemoteAgentOfKeptRegistry: if a registry's content is stored beside the log, the endpoint is
// read when the call is sent. If it cannot be read, nothing is sent.
func TestRemoteAgentOfKeptRegistry(t *testing.T) {
	dir := t.TempDir()
	blobs, err := blobdir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := routertest.New(t, routertest.Options{Blobs: blobs})
	people(w)
	words := rand.New(rand.NewPCG(1, 2))
	files := map[string]string{"helpdesk": helpdesk}
	for i := range 4 {
		var text strings.Builder
		for range 6000 {
			fmt.Fprintf(&text, "%x ", words.Uint32())
		}
		files[fmt.Sprintf("a%d", i)] = fmt.Sprintf("name: a%d\ndescription: Knows.\ninstructions: %s\n", i, text.String())
	}
	r := w.Registry(files)
	if bundle, err := r.Pack(); err != nil || bundle != "" {
		t.Fatalf("it fits into an intent: %v", err)
	}
	w.Must(r.Keep(func(content []byte) error {
		_, _, err := blobs.Keep(t.Context(), "system", bytes.NewReader(content))
		return err
	}))
	w.Want(w.Admin("registry.push", catalog.RegistryPush{Tenant: "default", Revision: 1, Digest: r.Digest()}), intents.OK)
	task := w.BegunAgent("p", "helpdesk").Started(1)
	w.Want(w.Do(message(task, "helpdesk.handle_message")), intents.OK)
	if pins := lastPins(t, w); pins[0].Server != "https://first.example/mcp" || pins[0].Digest != intents.Digest([]byte(helpdesk)) {
		t.Errorf("the ticket has the pins %+v", pins)
	}
	task = w.BegunAgent("q", "helpdesk").Started(1)
	w.Must(os.RemoveAll(dir))
	if a := w.Do(message(task, "helpdesk.handle_message")); a.Code != intents.DispatchUnavailable || len(w.Bus.Calls("skill.call")) != 1 {
		t.Errorf("without the file: %s %s", a.Code, a.Reason)
	}
}
