package audit_test

import (
	"context"
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

const leadFlow = `
workflow_id: lead
version: 1.0.0
description: Uploads a lead and tells people.
inputs: {type: object, properties: {file: {type: string}}}
nodes:
  - {id: parse, type: function, fn: crm.parse, inputs: {file: "${inputs.file}"}}
  - {id: upload, type: function, fn: crm.put, inputs: {rows: "${nodes.parse.outputs.rows}"}, retry: {max: 2, backoff_sec: 60}}
  - {id: mail, type: function, fn: crm.put, inputs: {subject: "it failed"}}
  - {id: end, type: function, fn: crm.parse, inputs: {file: "x"}}
edges:
  - {from: parse, to: upload}
  - {from: parse, to: mail, condition: "nodes.parse.outputs.success == false"}
  - {from: upload, to: end}
  - {from: mail, to: end}
`

// Steps of its nodes.
const (
	parseStep = iota + 1
	uploadStep
	mailStep
	endStep
)

// lead begins a log with a run of the workflow that its driver has claimed.
func (d *dishonest) lead() *routertest.Run {
	d.Helper()
	d.Pin("crm.parse", catalog.Pure)
	d.Pin("crm.put", catalog.Once)
	d.Data("approval", `{"once":false}`)
	d.PushAgents(1, map[string]string{"workflows/lead": leadFlow})
	d.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
		return routertest.Done(map[string]any{"output": map[string]any{"rows": []int{1}}})
	})
	r := d.BegunRun("plan_1", "lead", `{"file":"f"}`)
	d.plan = r.Plan
	return r
}

func (d *dishonest) running() *routertest.Run {
	d.Helper()
	r := d.lead()
	n := r.Begin("parse")
	n.Done()
	d.done = n.Task
	return r
}

func (d *dishonest) nodeRunning() {
	d.Helper()
	r := d.running()
	d.task = r.Begin("upload").Task
	d.deadline = d.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
}

func (d *dishonest) ran() {
	d.Helper()
	r := d.running()
	r.Begin("upload").Done()
	d.Want(d.Do(r.SkipIntent("mail")), intents.OK)
	r.Begin("end").Done()
	d.Want(r.Close("complete"), intents.OK)
}

// edges are what a decision made of those that lead to a node.
func edges(e ...intents.EdgeInput) func(*appended) {
	return func(a *appended) { a.inputs.Edges = e }
}

var (
	toUpload = edges(intents.EdgeInput{From: "parse", Holds: true})
	toMail   = edges(intents.EdgeInput{From: "parse", Saw: intents.Digest([]byte(`{"/nodes/parse/outputs/success":true}`))})
	toEnd    = edges(intents.EdgeInput{From: "upload", Holds: true}, intents.EdgeInput{From: "mail"})
)

// beginsNode opens the task of a node, as its driver would.
func (d *dishonest) beginsNode(n int, by intents.Signer, changes ...func(*appended)) int64 {
	d.Helper()
	o := d.step(n, func(t *routertest.Task, _ *catalog.Step) { t.Revision, d.task = 1, t })
	o.By = by
	d.deadline = d.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
	return d.accepted(o, changes...)
}

// runTransition is an intent of the run's driver.
func (d *dishonest) runTransition(typ string, args any) routertest.Intent {
	o := d.transition(typ, args)
	o.By = d.Workflow
	return o
}

func (d *dishonest) skips(n int, changes ...func(*appended)) int64 {
	d.Helper()
	o := d.runTransition("node.skip", catalog.NodeSkip{PlanID: d.plan.ID, Epoch: 1, Step: n})
	o.Key = catalog.RandomKey()
	return d.accepted(o, changes...)
}

// ofNode makes the inputs of an intent those of the node's task, whose skill has an effect.
func (d *dishonest) ofNode(skill string, effect catalog.Effect) func(*appended) {
	return func(a *appended) {
		a.inputs.Task = &intents.TaskInput{TaskID: d.task.TaskID, PlanID: d.task.ID, Revision: 1, Step: d.task.Step, Skills: []string{skill}, Deadline: d.deadline}
		if a.inputs.Skill == nil {
			return
		}
		a.decision.Effect = string(effect)
		a.inputs.Skill = &intents.SkillInput{Name: skill, Digest: intents.Digest([]byte(skill)), Effect: string(effect), Trusted: true, OpenWorld: intents.No}
		a.result = json.RawMessage(`{"output":{"rows":[1]}}`)
		if a.outcome != nil {
			a.outcome["outputs"] = json.RawMessage(`{"success":true}`)
		}
	}
}

// uploads is the intent of the second node.
func (d *dishonest) uploads(change func(*routertest.Intent), changes ...func(*appended)) (int64, string) {
	d.Helper()
	o := d.task.Intent("skill.call", json.RawMessage(`{"skill":"crm.put","input":{"rows":[1]}}`))
	if change != nil {
		change(&o)
	}
	return d.accept(o, append([]func(*appended){d.ofNode("crm.put", catalog.Once)}, changes...)...)
}

// endsNode ends the task of the node.
func (d *dishonest) endsNode(status, intent string) int64 {
	d.Helper()
	f := catalog.StepFinish{TaskID: d.task.TaskID, Status: status, Intent: intent}
	if status == "failed" {
		f.Reason = "it failed"
	}
	return d.accepted(d.task.Intent("step.finish", f), d.ofNode("crm.put", catalog.Once))
}

// failUndelivered fails an intent that no executor received.
func failUndelivered(a *appended) {
	a.outcome["status"], a.outcome["code"], a.result = "failed", "DISPATCH_UNAVAILABLE", json.RawMessage(`{}`)
	delete(a.outcome, "outputs")
}

func (d *dishonest) closesRun(status string) int64 {
	d.Helper()
	a := catalog.PlanClose{PlanID: d.plan.ID, Epoch: 1, Status: status, Response: "Complete."}
	if status == "failed" {
		a.Response, a.Failure = "", &catalog.Failure{Reason: "a node has failed", CompletedSteps: []int{}}
	}
	return d.accepted(d.runTransition("plan.close", a))
}

// runsLegally continues from the scene of a run as an honest router would.
func (d *dishonest) runsLegally() {
	d.Helper()
	d.beginsNode(uploadStep, d.Workflow, toUpload)
	d.nodeRunsLegally()
}

// nodeRunsLegally continues where the second node runs: at first no executor listens.
func (d *dishonest) nodeRunsLegally() {
	d.Helper()
	d.uploads(nil, failUndelivered)
	d.endsNode("failed", "")
	d.skips(mailStep, toMail)
	d.Clock.Move(time.Minute)
	d.beginsNode(uploadStep, d.Workflow, toUpload)
	_, id := d.uploads(func(o *routertest.Intent) { o.Ctx.Occurrence = 1 })
	d.endsNode("done", id)
	d.beginsNode(endStep, d.Workflow, toEnd)
	_, id = d.accept(d.task.Intent("skill.call", json.RawMessage(`{"skill":"crm.parse","input":{"file":"x"}}`)), d.ofNode("crm.parse", catalog.Pure))
	d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", Intent: id}), d.ofNode("crm.parse", catalog.Pure))
	d.closesRun("complete")
}

const (
	beginsWhen  = "runs: a node begins when those before it have ended and an edge to it holds"
	skipsWhen   = "runs: a node is skipped when those before it have ended and no edge to it holds"
	endsAs      = "runs: a node ends as its intent has"
	oneIntent   = "runs: an attempt of a node is one intent"
	whoAdvances = "runs: workflow keys move runs, and managers other plans"
)

var runMisdeeds = []misdeed{
	{"run-of-no-workflow", "run-begun", "workflow.start: the tenant has the workflow", "no such workflow", func(d *dishonest) int64 {
		p := d.NewPlan("plan_2")
		return d.accepted(p.StartIntent("leads", `{}`))
	}},
	{"run-opened-twice", "run-begun", "workflow.start: no plan of the tenant has the id", "a plan with this id exists", func(d *dishonest) int64 {
		o := d.plan.StartIntent("lead", `{"file":"g"}`)
		return d.accepted(o)
	}},
	{"run-moved-by-manager", "run-begun", whoAdvances, "workflow keys move runs", func(d *dishonest) int64 {
		return d.beginsNode(uploadStep, d.Manager, toUpload)
	}},
	{"node-begun-too-early", "run-begun", beginsWhen, "has not ended", func(d *dishonest) int64 {
		return d.beginsNode(endStep, d.Workflow, toEnd)
	}},
	{"node-begun-without-edge", "run-begun", beginsWhen, "what led to the node says", func(d *dishonest) int64 {
		return d.beginsNode(mailStep, d.Workflow, toMail)
	}},
	{"node-begun-by-other-edges", "run-begun", beginsWhen, "other edges", func(d *dishonest) int64 {
		return d.beginsNode(uploadStep, d.Workflow)
	}},
	{"node-begun-from-a-skipped-one", "run-begun", beginsWhen, "other edges", func(d *dishonest) int64 {
		d.beginsNode(uploadStep, d.Workflow, toUpload)
		_, id := d.uploads(nil)
		d.endsNode("done", id)
		d.skips(mailStep, toMail)
		return d.beginsNode(endStep, d.Workflow, edges(intents.EdgeInput{From: "upload", Holds: true}, intents.EdgeInput{From: "mail", Holds: true}))
	}},
	{"node-skipped-too-early", "run-begun", skipsWhen, "has not ended", func(d *dishonest) int64 {
		return d.skips(endStep, toEnd)
	}},
	{"node-skipped-though-led-to", "run-begun", skipsWhen, "what led to the node says", func(d *dishonest) int64 {
		return d.skips(uploadStep, toUpload)
	}},
	{"node-skipped-twice", "run-begun", "runs: a skipped node is pending", "not a pending node", func(d *dishonest) int64 {
		d.skips(mailStep, toMail)
		return d.skips(mailStep, toMail)
	}},
	{"node-signs-another-type", "node-running", "a task's intent: its agent has a tool for the type", "has no tool for", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"}), d.ofNode("crm.put", catalog.Once))
	}},
	{"node-signed-twice", "node-running", oneIntent, "an equal intent", func(d *dishonest) int64 {
		d.uploads(nil)
		at, _ := d.uploads(func(o *routertest.Intent) { o.Key = "again" })
		return at
	}},
	{"node-of-another-attempt", "node-running", "runs: occurrence is the number of attempts that have failed", "attempts of the node have failed", func(d *dishonest) int64 {
		at, _ := d.uploads(func(o *routertest.Intent) { o.Ctx.Occurrence = 1 })
		return at
	}},
	{"node-done-without-intent", "node-running", endsAs, "names the intent of the node", func(d *dishonest) int64 {
		return d.endsNode("done", intents.Digest([]byte("none")))
	}},
	{"node-done-though-failed", "node-running", endsAs, "names the intent of the node", func(d *dishonest) int64 {
		_, id := d.uploads(nil, failUndelivered)
		return d.endsNode("done", id)
	}},
	{"node-failed-though-done", "node-running", endsAs, "is done", func(d *dishonest) int64 {
		d.uploads(nil)
		return d.endsNode("failed", "")
	}},
	{"node-retried-too-early", "node-running", "runs: a node is tried again after its backoff", "tried again from", func(d *dishonest) int64 {
		d.uploads(nil, failUndelivered)
		d.endsNode("failed", "")
		return d.beginsNode(uploadStep, d.Workflow, toUpload)
	}},
	{"node-retried-though-sent", "node-running", "runs: a node is tried again while it has attempts and did nothing that acts once", "the step is failed", func(d *dishonest) int64 {
		d.uploads(nil, func(a *appended) {
			failUndelivered(a)
			a.outcome["code"] = "EXECUTOR_FAILED"
		})
		d.endsNode("failed", "")
		d.Clock.Move(time.Minute)
		return d.beginsNode(uploadStep, d.Workflow, toUpload)
	}},
	{"node-begun-after-a-failure", "node-running", "runs: nothing begins once a node has failed that only leads on without a condition", "only be closed as failed", func(d *dishonest) int64 {
		d.uploads(nil, func(a *appended) {
			failUndelivered(a)
			a.outcome["code"] = "EXECUTOR_FAILED"
		})
		d.endsNode("failed", "")
		return d.skips(mailStep, toMail)
	}},
	{"run-closed-too-early", "run-begun", "runs: a run is complete when each node has ended well", "a run is complete", func(d *dishonest) int64 {
		return d.closesRun("complete")
	}},
	{"replay-of-open-run", "run-begun", "run.replay: the run has ended", "has not ended", func(d *dishonest) int64 {
		return d.repeats("ana", false)
	}},
	{"replay-of-another-user", "ran", "run.replay: another user's run needs a capability", "no such run of this user", func(d *dishonest) int64 {
		return d.repeats("ben", false)
	}},
	{"replay-of-effects", "ran", "run.replay: effects are repeated after an approval", "once people have approved", func(d *dishonest) int64 {
		return d.repeats("ana", true)
	}},
}

// repeats appends a run.replay as accepted.
func (d *dishonest) repeats(user string, effects bool) int64 {
	d.Helper()
	return d.accepted(routertest.Intent{By: d.Gateway, User: user, Type: "run.replay", Args: catalog.RunReplay{
		RunID: d.plan.ID, FromNode: "upload", Mode: catalog.ReplayFreeze, RepeatEffects: effects,
	}}, func(a *appended) {
		a.replay = json.RawMessage(`{"inputs":{"file":"f"},"outputs":{"parse":{"success":true,"rows":[1]},"upload":{"success":true},"end":{"success":true}}}`)
	})
}
