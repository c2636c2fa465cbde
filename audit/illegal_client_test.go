package audit_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state/agents"
)

// client begins a log with the plan of an MCP client whose API key gives the tools of a bank,
// and two calls of it.
func (d *dishonest) client() {
	d.Helper()
	d.Pin("bank.pay", catalog.Once)
	d.Pin("bank.rates", catalog.Pure)
	d.Pin("mail.send", catalog.Once)
	d.Data("approval", `{"once":false}`)
	d.ClientKey("bank.*")
	d.task = d.BegunClient("plan_1")
	d.plan, d.deadline = d.task.Plan, d.Clock.Now().Add(5*time.Minute).Format(time.RFC3339)
	d.Want(d.Do(d.task.Numbered(1, "bank.pay", `{"n":1}`)), intents.OK)
	d.Want(d.Do(d.task.Numbered(2, "bank.rates", `{}`)), intents.OK)
}

// callsAs appends a call of a client as accepted.
func (d *dishonest) callsAs(o routertest.Intent, skill string, effect catalog.Effect, changes ...func(*appended)) int64 {
	d.Helper()
	return d.accepted(o, append([]func(*appended){ofClient, func(a *appended) {
		a.decision.Effect = string(effect)
		a.inputs.Skill = &intents.SkillInput{Name: skill, Digest: intents.Digest([]byte(skill)), Effect: string(effect), Trusted: true, OpenWorld: intents.No}
	}}, changes...)...)
}

// ofClient makes the inputs of an intent those of the client's task.
func ofClient(a *appended) {
	a.inputs.Task.Agent, a.inputs.Task.Skills, a.inputs.Task.Revision = "client", []string{"bank.pay", "bank.rates"}, 0
}

// callsLegally: equal calls under other numbers, one that had no effect under its own again, and
// the end of the plan.
func (d *dishonest) callsLegally() {
	d.Helper()
	d.callsAs(d.task.Numbered(3, "bank.pay", `{"n":1}`), "bank.pay", catalog.Once)
	d.callsAs(d.task.Numbered(200, "bank.rates", `{}`), "bank.rates", catalog.Pure, func(a *appended) {
		a.outcome["status"], a.outcome["code"], a.outcome["reason"], a.outcome["retryable"] = "failed", "OVERLOADED", "busy", true
		a.result = struct{}{}
	})
	d.callsAs(d.task.Numbered(200, "bank.rates", `{"now":true}`), "bank.rates", catalog.Pure)
	d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", Reply: "These."}), ofClient)
	d.accepted(d.closing("complete"))
}

// opensClient appends the opening of another plan of a client.
func (d *dishonest) opensClient(change func(o *routertest.Intent, a *catalog.PlanOpen)) int64 {
	d.Helper()
	o := d.NewPlan("plan_2").OpenClientIntent()
	a, ok := o.Args.(catalog.PlanOpen)
	if !ok {
		d.Fatalf("%T", o.Args)
	}
	change(&o, &a)
	o.Args = a
	return d.accepted(o)
}

const (
	clientOpens  = "plan.open: the agent client, and no other, is opened with the API key of its grant, for no schedule"
	clientGrants = "a task's intent: its grant came through its client's API key, and is no standing one"
	clientNumber = "an intent of a plan: a client's call has a number from 1 to 200, and no other has it"
)

var clientMisdeeds = []misdeed{
	{"client-without-key", "client", clientOpens, "names the API key", func(d *dishonest) int64 {
		return d.opensClient(func(_ *routertest.Intent, a *catalog.PlanOpen) { a.APIKey = "" })
	}},
	{"key-of-another-agent", "client", clientOpens, "only the plan of the agent client", func(d *dishonest) int64 {
		return d.opensClient(func(_ *routertest.Intent, a *catalog.PlanOpen) { a.Agent = "general" })
	}},
	{"client-of-another-key", "client", clientOpens, "takes grants of that API key", func(d *dishonest) int64 {
		return d.opensClient(func(_ *routertest.Intent, a *catalog.PlanOpen) { a.APIKey = "k2" })
	}},
	{"client-on-a-schedule", "client", clientOpens, "for a schedule", func(d *dishonest) int64 {
		return d.opensClient(func(_ *routertest.Intent, a *catalog.PlanOpen) {
			a.Schedule = &catalog.Firing{ID: "hourly", Due: onTheHour}
		})
	}},
	{"client-without-its-user", "client", clientOpens, "takes grants of that API key", func(d *dishonest) int64 {
		return d.opensClient(func(o *routertest.Intent, a *catalog.PlanOpen) {
			o.Grant = func(g *intents.Grant) { g.For = "plan:" + a.PlanID }
		})
	}},
	{"client-called-without-its-user", "client", clientGrants, "takes grants of that API key", func(d *dishonest) int64 {
		o := d.task.Numbered(3, "bank.rates", `{}`)
		o.Grant = func(g *intents.Grant) { g.For = "plan:" + d.plan.ID }
		return d.callsAs(o, "bank.rates", catalog.Pure)
	}},
	{"client-called-without-its-key", "client", clientGrants, "takes grants of that API key", func(d *dishonest) int64 {
		o := d.task.Numbered(3, "bank.rates", `{}`)
		o.Grant = func(g *intents.Grant) { g.Act.Client = "test" }
		return d.callsAs(o, "bank.rates", catalog.Pure)
	}},
	{"client-number-taken", "client", clientNumber, "has the number 2", func(d *dishonest) int64 {
		return d.callsAs(d.task.Numbered(2, "bank.rates", `{"other":true}`), "bank.rates", catalog.Pure)
	}},
	{"client-number-missing", "client", clientNumber, "have the numbers 1 to 200", func(d *dishonest) int64 {
		return d.callsAs(d.task.CallIntent("bank.pay", `{"n":2}`), "bank.pay", catalog.Once)
	}},
	{"client-number-too-high", "client", clientNumber, "have the numbers 1 to 200", func(d *dishonest) int64 {
		return d.callsAs(d.task.Numbered(201, "bank.pay", `{"n":2}`), "bank.pay", catalog.Once)
	}},
	{"client-beyond-its-key", "client", "a task's intent: its agent may call the skill", "not among those", func(d *dishonest) int64 {
		return d.callsAs(d.task.Numbered(3, "mail.send", `{}`), "mail.send", catalog.Once)
	}},
	{"client-shown-more", "client", "a task's intent: the context is its step's", "another task than the step's", func(d *dishonest) int64 {
		return d.callsAs(d.task.Numbered(3, "mail.send", `{}`), "mail.send", catalog.Once, func(a *appended) {
			a.inputs.Task.Skills = append(a.inputs.Task.Skills, "mail.send")
		})
	}},
	{"client-signs-another-type", "client", "a task's intent: its agent has a tool for the type", "has no tool for", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("write_temp", catalog.WriteTemp{Data: json.RawMessage(`1`)}), ofClient)
	}},
	{"client-got", "client", "agent.get: the plan is open, and an agent's", "no agent runs the step", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Manager, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: d.plan.ID, Step: 1}}, func(a *appended) {
			a.result = catalog.AgentGetResult{Agent: "client"}
		})
	}},
	{"client-named", "client", "registry.push: no agent has the name of clients", "stands for MCP clients", func(d *dishonest) int64 {
		bundle := packed(d, `{"agents/client.yaml":"name: client\ndescription: Mine.\n"}`)
		return d.pushes("default", 1, shopAgent, func(a *catalog.RegistryPush) {
			r, err := agents.Unpack(bundle)
			d.Must(err)
			a.Bundle, a.Digest = bundle, r.Digest()
		})
	}},
}

// packed is a bundle of files that the reader of directories would leave out.
func packed(d *dishonest, files string) string {
	d.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(files))
	d.Must(err)
	d.Must(z.Close())
	return base64.StdEncoding.EncodeToString(b.Bytes())
}
