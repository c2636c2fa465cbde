package audit_test

import (
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// misdeed is what a dishonest router does at the end of an honest log.
type misdeed struct {
	name, scene string
	rule        string // that it breaks
	finding     string // the auditor's finding
	do          func(d *dishonest) (bad int64)
}

// misdeeds are all of them. Each breaks one rule of docs/spec/state.md, at one record.
var misdeeds = slices.Concat(turnMisdeeds, planMisdeeds, graphMisdeeds, idMisdeeds, taskMisdeeds, holdMisdeeds, directoryMisdeeds, stopMisdeeds, rawMisdeeds, recordMisdeeds, agentMisdeeds, askMisdeeds, unknownOutcomeMisdeeds, dropMisdeeds, scheduleMisdeeds, registryMisdeeds, agentStepMisdeeds, budgetMisdeeds, clientMisdeeds, breakerMisdeeds, remoteMisdeeds, routingMisdeeds, runMisdeeds, patchMisdeeds, approvalMisdeeds, standingMisdeeds, batchMisdeeds, erasureMisdeeds, transientMisdeeds)

// step is the intent that opens another task for a step of the plan, after a change
// that its proof of possession covers.
func (d *dishonest) step(n int, change func(t *routertest.Task, a *catalog.Step)) routertest.Intent {
	d.Helper()
	t := d.plan.NewTask(n)
	a := t.StepArgs()
	if change != nil {
		change(t, &a)
	}
	a.JWK = t.Key.VerificationKey().ToJWK()
	return d.plan.StepIntent(t.Proved(a))
}

// transition is an intent of the manager about the plan.
func (d *dishonest) transition(typ string, args any) routertest.Intent {
	return routertest.Intent{By: d.Manager, Type: typ, Args: args, Ctx: intents.Context{PlanID: d.plan.ID}}
}

func (d *dishonest) revision(n int, steps []catalog.PlanStep) routertest.Intent {
	o := d.transition("plan", catalog.Plan{PlanID: d.plan.ID, Epoch: 1, Revision: n, Steps: steps})
	o.By = d.Planner
	return o
}

// answering is a revision with an answer.
func (d *dishonest) answering(n int, answer string, steps ...catalog.PlanStep) routertest.Intent {
	o := d.revision(n, nil)
	o.Args = catalog.Plan{PlanID: d.plan.ID, Epoch: 1, Revision: n, Steps: append([]catalog.PlanStep{}, steps...), Answer: answer}
	return o
}

// id of a plan or task made some time before or after now.
func (d *dishonest) id(kind string, after time.Duration) string {
	return intents.TimedID(kind, d.Clock.Now().Add(after), "_x")
}

// opens is plan.open with an id.
func (d *dishonest) opens(id string) routertest.Intent {
	p := *d.plan
	p.ID = id
	return p.OpenIntent()
}

// begins opens a task with an id for the second step.
func (d *dishonest) begins(id string) int64 {
	return d.accepted(d.step(2, func(_ *routertest.Task, a *catalog.Step) { a.TaskID = id }))
}

// claims makes another driver claim the plan.
func (d *dishonest) claims(epoch int) {
	d.Helper()
	d.accepted(d.plan.ClaimIntent(epoch))
	d.plan.Epoch = epoch
}

// finishing ends the task without a result.
func (d *dishonest) finishing(status string) routertest.Intent {
	return d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: status})
}

func (d *dishonest) closing(status string) routertest.Intent {
	c := catalog.PlanClose{PlanID: d.plan.ID, Epoch: d.plan.Epoch, Status: status, Response: "These."}
	if status == "failed" {
		c.Response, c.Failure = "", &catalog.Failure{Reason: "infeasible", CompletedSteps: []int{}}
	}
	return d.transition("plan.close", c)
}

// The times in the ids of plans and tasks.
const (
	planIDTime = "plan.open: the id carries its time, at most an hour old and 5 s ahead"
	taskIDTime = "step: the id carries its time, at most an hour old and 5 s ahead"
)

var recordMisdeeds = []misdeed{
	{"outcome-without-decision", "directory", "outcome: an intent was accepted", "no open intent", func(d *dishonest) int64 {
		return d.ends(d.records.Next()-1, intents.Done, intents.OK)
	}},
	{"outcome-twice", "released", "outcome: the intent's first", "no open intent", func(d *dishonest) int64 {
		return d.ends(*d.held.Position, intents.Done, intents.OK)
	}},
	{"takeover-of-ended-intent", "released", "takeover: the intent is open", "not open", func(d *dishonest) int64 {
		at, _ := d.now()
		return d.add(storage.KindTakeover, at, map[string]any{storage.PartTakeover: map[string]any{"of": *d.held.Position}})
	}},
	{"key-taken", "directory", "every intent: its idempotency key is free", "a second intent", func(d *dishonest) int64 {
		return d.accepted(d.finds("second", "k"))
	}},
	{"key-misnamed", "directory", "every intent: decision.key is the intent's", "another idempotency key", func(d *dishonest) int64 {
		return d.accepted(d.finds("second", "k"), func(a *appended) { a.decision.Key = "00000000000000000000000000000000" })
	}},
	{"key-of-another", "directory", "every intent: decision.key is the intent's", "the intents name another", func(d *dishonest) int64 {
		return d.accepted(d.finds("second", "m"), func(a *appended) {
			a.decision.Key = storage.NewIntentKeys(routertest.KeySecret).Key("default", "ana", "skill.find", "k").String()
		})
	}},
	{"key-missing", "directory", "every intent: decision.key is the intent's", "no idempotency key", func(d *dishonest) int64 {
		return d.accepted(d.finds("second", "m"), func(a *appended) { a.decision.Key = "" })
	}},
	{"summary-of-another-intent", "apart", "every intent: its summary follows from it", "summary says something else", func(d *dishonest) int64 {
		other := d.closing("failed")
		other.Args = catalog.PlanClose{PlanID: "plan_2", Epoch: d.plan.Epoch, Status: "failed", Failure: &catalog.Failure{Reason: "infeasible", CompletedSteps: []int{}}}
		return d.accepted(d.closing("failed"), d.summarised(other))
	}},
	{"summary-with-texts", "apart", "every intent: its summary follows from it", "summary says something else", func(d *dishonest) int64 {
		keep := d.summarised(d.closing("failed"))
		return d.accepted(d.closing("failed"), func(a *appended) {
			keep(a)
			a.summary.Args = json.RawMessage(`{"epoch":2,"failure":{"completed_steps":[],"reason":"infeasible"},"plan_id":"` + d.plan.ID + `","status":"failed"}`)
		})
	}},
	{"summary-left-out", "apart", "every intent: its summary follows from it", "summary says something else", func(d *dishonest) int64 {
		return d.accepted(d.closing("failed"), func(a *appended) { a.silent = true })
	}},
	{"decided-after-record", "directory", "every intent: facts.now is not after the record's time", "another time", func(d *dishonest) int64 {
		return d.accepted(d.finds("later", ""), func(a *appended) { a.inputs.Now = intents.FormatTime(d.Clock.Now().Add(time.Second)) })
	}},
	{"decided-before-issued", "directory", "every intent: issued_at is not after facts.now", "before it was issued", func(d *dishonest) int64 {
		o := d.finds("earlier", "")
		o.At = d.Clock.Now().Add(time.Minute)
		return d.accepted(o)
	}},
	{"decided-too-late", "directory", "every intent: facts.now is within ttl_sec of issued_at", "after its ttl_sec", func(d *dishonest) int64 {
		o := d.finds("late", "")
		o.At = d.Clock.Now().Add(-2 * time.Minute)
		return d.accepted(o)
	}},
	{"decided-for-another-log", "directory", "every intent: its audience is the log", "SIGNATURE_INVALID", func(d *dishonest) int64 {
		o := d.finds("elsewhere", "")
		o.Audience = "writ/" + d.Planner.KID
		return d.accepted(o)
	}},
	{"sent-elsewhere", "directory", "every intent: it is sent where the catalog says", "another executor", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "gil", Roles: []string{"user"}}}}
		return d.accepted(o, func(a *appended) { a.decision.Executor = "python" }) // what the router carries out is the same in every catalog
	}},
	{"decided-on-the-future", "directory", "every intent: decision.directory is before its record", "come after it", func(d *dishonest) int64 {
		return d.accepted(d.finds("seen", ""), func(a *appended) { a.decision.Directory = d.records.Next() + 1 })
	}},
	{"rules-after-genesis", "directory", "control: the rules of a log are those of its genesis", "are those of its genesis", func(d *dishonest) int64 {
		return d.control(map[string]any{"rules": 1})
	}},
	{"rules-nobody-knows", "directory", "control: a verifier knows the rules of the genesis", "by rules 1 alone", func(d *dishonest) int64 {
		var c state.Control
		d.Must(json.Unmarshal(d.records[0].Parts[storage.PartControl], &c))
		c.Rules = 99
		r, err := storage.RecordOf(storage.KindControl, d.records[0].At, c)
		d.Must(err)
		d.records[0] = r
		return 0
	}},
	{"genesis-twice", "directory", "control: one genesis", "second genesis", func(d *dishonest) int64 {
		at, _ := d.now()
		r := storage.NewRecord(storage.KindControl, at, d.records[0].Parts)
		r.Position = d.records.Next()
		d.records = append(d.records, r)
		return r.Position
	}},
	{"policy-not-in-force", "directory", "every intent: the policy that decided is in force", "which is not in force", func(d *dishonest) int64 {
		return d.accepted(d.finds("otherwise", ""), func(a *appended) { a.decision.PolicyDigest = intents.Digest([]byte("another policy")) })
	}},
	{"policy-decides-before-its-record", "directory", "every intent: the policy that decided is in force", "which is not in force", func(d *dishonest) int64 {
		other := intents.Digest([]byte("another policy"))
		at := d.accepted(d.finds("otherwise", ""), func(a *appended) { a.decision.PolicyDigest = other })
		d.control(map[string]any{"policy_digest": other})
		return at
	}},
	{"policy-taken-back", "directory", "control: policy revisions only increase", "after revision", func(d *dishonest) int64 {
		d.control(map[string]any{"policy_digest": d.policyDigest(), "policy_revision": 3})
		return d.control(map[string]any{"policy_digest": d.policyDigest(), "policy_revision": 2})
	}},
}
