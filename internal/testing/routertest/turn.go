package routertest

import (
	"encoding/json"
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// Plan is one plan of a user, advanced by the keys of the agents' side. Its methods submit one
// intent each and return its answer.
type Plan struct {
	*World
	ID, User string
	Tenant   string // default, if empty
	Epoch    int
	Revision int
	Digest   string // of the current revision
	Roles    []string
	Session  string // its own, if empty
}

// NewPlan is a plan that nobody has opened yet, of user ana. Its id is PlanID while
// that may be used.
func (w *World) NewPlan(name string) *Plan {
	id, now := PlanID(name), w.Clock.Now()
	if intents.CheckTimedID(intents.KindPlan, id, now) != "" {
		id = intents.TimedID(intents.KindPlan, now, name)
	}
	return &Plan{World: w, ID: id, User: "ana"}
}

// PlanID is the id of a plan that is opened within an hour after a world began.
func PlanID(name string) string { return intents.TimedID(intents.KindPlan, Began, name) }

// TaskID is the id of a task that is opened within an hour after a world began.
func TaskID(name string) string { return intents.TimedID(intents.KindTask, Began, name) }

// On is the same plan in another world, as after a restart.
func (p *Plan) On(w *World) *Plan {
	c := *p
	c.World = w
	return &c
}

// intent is an intent about the plan.
func (p *Plan) intent(by intents.Signer, typ string, args any) Intent {
	return Intent{By: by, Type: typ, Args: args, User: p.User, Tenant: p.Tenant, Roles: p.Roles, Ctx: intents.Context{PlanID: p.ID, SessionID: p.Session}}
}

// OpenIntent is plan.open.
func (p *Plan) OpenIntent() Intent {
	return p.intent(p.Gateway, "plan.open", catalog.PlanOpen{PlanID: p.ID, Task: "Which ten?"})
}

// OpenIntentWith is plan.open with texts beside it.
func (p *Plan) OpenIntentWith(texts catalog.Transient) Intent {
	o := p.OpenIntent()
	o.Beside = texts.Salted()
	o.Args = catalog.PlanOpen{PlanID: p.ID, Task: "Which ten?", Transient: o.Beside.Digests()}
	return o
}

// Open opens the plan.
func (p *Plan) Open() *intents.Answer { p.Helper(); return p.Do(p.OpenIntent()) }

// ClaimIntent is plan.claim for an epoch.
func (p *Plan) ClaimIntent(epoch int) Intent {
	return p.intent(p.Manager, "plan.claim", catalog.PlanClaim{PlanID: p.ID, Epoch: epoch, Driver: fmt.Sprintf("d%d", epoch)})
}

// Claim makes the manager the plan's driver.
func (p *Plan) Claim() *intents.Answer {
	p.Helper()
	a := p.Do(p.ClaimIntent(p.Epoch + 1))
	if a.Code == intents.OK {
		p.Epoch++
	}
	return a
}

// Steps makes steps of given skills, numbered from first, each with the result of the
// one before it.
func Steps(first int, skills ...string) []catalog.PlanStep {
	var out []catalog.PlanStep
	for i, s := range skills {
		step := catalog.PlanStep{Step: first + i, Task: "Do " + s, Skills: []string{s}, ReturnSpec: catalog.ReturnSpec{Shape: "array<number>", Reason: "the next step"}}
		if i > 0 {
			step.InputFromStep = step.Step - 1
		}
		out = append(out, step)
	}
	return out
}

// PlanIntent is the next revision with steps.
func (p *Plan) PlanIntent(steps []catalog.PlanStep) Intent {
	return p.intent(p.Planner, "plan", catalog.Plan{PlanID: p.ID, Epoch: p.Epoch, Revision: p.Revision + 1, Steps: steps})
}

// Plan submits the next revision.
func (p *Plan) Plan(steps []catalog.PlanStep) *intents.Answer {
	p.Helper()
	a := p.Do(p.PlanIntent(steps))
	if a.Code == intents.OK {
		p.Revision++
		p.Digest = a.IntentID
	}
	return a
}

// Begun opens, claims and plans with one skill a step.
func (w *World) Begun(id string, skills ...string) *Plan {
	w.Helper()
	p := w.NewPlan(id)
	p.Want(p.Open(), intents.OK)
	p.Want(p.Claim(), intents.OK)
	p.Want(p.Plan(Steps(1, skills...)), intents.OK)
	return p
}

// Task is an opened task and its key.
type Task struct {
	*Plan
	TaskID   string
	Key      intents.Signer
	Step     int
	Revision int
	Ask      string // the call that asked for it; empty: it is the step's own
}

// NewTask makes the key of a task for a step; nothing is submitted.
func (p *Plan) NewTask(step int) *Task {
	p.Helper()
	return &Task{Plan: p, TaskID: intents.TimedID(intents.KindTask, p.Clock.Now(), fmt.Sprint("_", p.task.Add(1))), Key: p.NewKey(intents.RoleTask), Step: step, Revision: p.Revision}
}

// StepArgs are the arguments that open the task, with proof of possession.
func (t *Task) StepArgs() catalog.Step {
	t.Helper()
	return t.Proved(catalog.Step{
		PlanID: t.ID, PlanDigest: t.Digest, Step: t.Step, Epoch: t.Epoch, TaskID: t.TaskID,
		JWK: t.Key.VerificationKey().ToJWK(), Deadline: t.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339),
	})
}

// Proved adds the key's proof of possession.
func (t *Task) Proved(a catalog.Step) catalog.Step {
	t.Helper()
	a.PoP = ""
	pop, err := intents.SignPoP(t.Key, a)
	t.Must(err)
	a.PoP = pop
	return a
}

// StepIntent is step with given arguments.
func (p *Plan) StepIntent(a catalog.Step) Intent { return p.intent(p.Manager, "step", a) }

// Started opens a task that must be accepted.
func (p *Plan) Started(step int) *Task {
	p.Helper()
	t := p.NewTask(step)
	p.Want(p.Do(p.StepIntent(t.StepArgs())), intents.OK)
	return t
}

// Intent is an intent of the task.
func (t *Task) Intent(typ string, args any) Intent {
	o := t.intent(t.Key, typ, args)
	o.Ctx = intents.Context{PlanID: t.ID, SessionID: t.Session, Revision: t.Revision, Step: t.Step, TaskID: t.TaskID, Ask: t.Ask}
	return o
}

// CallIntent is skill.call with an input.
func (t *Task) CallIntent(skill, input string) Intent {
	return t.Intent("skill.call", catalog.SkillCall{Skill: skill, Input: json.RawMessage(input)})
}

// Call calls a skill.
func (t *Task) Call(skill, input string) *intents.Answer {
	t.Helper()
	return t.Do(t.CallIntent(skill, input))
}

// Write stores a result.
func (t *Task) Write(label string) *intents.Answer {
	t.Helper()
	return t.Do(t.Intent("write_memory", catalog.WriteMemory{Label: label, Data: json.RawMessage(`[1,2]`)}))
}

// MemoryKey of a label of the task.
func (t *Task) MemoryKey(label string) string {
	return MemoryKey("default", SessionOf(t.ID), t.TaskID, label)
}

// Finish ends the task.
func (t *Task) Finish(status, key, reason string) *intents.Answer {
	t.Helper()
	return t.Do(t.Intent("step.finish", catalog.StepFinish{TaskID: t.TaskID, Status: status, MemoryKey: key, Reason: reason}))
}

// Done writes a result and finishes the task with it.
func (t *Task) Done() string {
	t.Helper()
	t.Want(t.Write("result"), intents.OK)
	t.Want(t.Finish("done", t.MemoryKey("result"), ""), intents.OK)
	return t.MemoryKey("result")
}

// Read is the manager's read_memory.
func (p *Plan) Read(key string) *intents.Answer {
	p.Helper()
	return p.Do(p.intent(p.Manager, "read_memory", catalog.ReadMemory{Key: key, Confirm: true}))
}

// Complete closes the plan with an answer.
func (p *Plan) Complete() *intents.Answer {
	p.Helper()
	return p.Do(p.intent(p.Manager, "plan.close", catalog.PlanClose{PlanID: p.ID, Epoch: p.Epoch, Status: "complete", Response: "These."}))
}

// Fail closes the plan as failed.
func (p *Plan) Fail() *intents.Answer {
	p.Helper()
	return p.Do(p.intent(p.Manager, "plan.close", catalog.PlanClose{
		PlanID: p.ID, Epoch: p.Epoch, Status: "failed",
		Failure: &catalog.Failure{Reason: "infeasible", CompletedSteps: []int{}},
	}))
}

// Asks closes the plan with a question to its user.
func (p *Plan) Asks(question string) *intents.Answer {
	p.Helper()
	return p.Do(p.intent(p.Manager, "plan.close", catalog.PlanClose{PlanID: p.ID, Epoch: p.Epoch, Status: "needs_input", Response: question}))
}

// CancelIntent is cancel by a signer.
func (p *Plan) CancelIntent(by intents.Signer) Intent {
	return p.intent(by, "cancel", catalog.Cancel{PlanID: p.ID})
}

// Cancel by a signer.
func (p *Plan) Cancel(by intents.Signer) *intents.Answer {
	p.Helper()
	return p.Do(p.CancelIntent(by))
}

// View is the plan in the state, with the texts of its records.
func (p *Plan) View() catalog.PlanView {
	p.Helper()
	v, texts, ok := p.Dir.PlanWithoutTexts("default", p.ID)
	if !ok {
		p.Fatalf("no plan %s", p.ID)
	}
	for _, at := range texts {
		r, err := p.Journal.Get(p.Context(), at)
		p.Must(err)
		o, err := state.ReadIntent(r)
		p.Must(err)
		p.Must(state.RestoreTexts(&v, o))
	}
	return v
}

// Status is the status of the plan and of its steps in the state.
func (p *Plan) Status() (catalog.PlanStatus, []catalog.StepStatus) {
	p.Helper()
	v := p.View()
	var steps []catalog.StepStatus
	for _, s := range v.Steps {
		steps = append(steps, s.Status)
	}
	return v.Status, steps
}

// TwoSteps plays a whole turn of two steps, from the pins of its skills to the
// answer.
func (w *World) TwoSteps() *Plan {
	w.Helper()
	w.Pin("earthquake_feed", catalog.Pure)
	w.Pin("rank", catalog.Pure)
	p := w.NewPlan("plan_1")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	plan := intents.Context{PlanID: p.ID}
	w.OK(Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}, Ctx: plan})
	w.OK(Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "strongest earthquakes"}, Ctx: plan})
	w.OK(Intent{By: w.Planner, Type: "skill.load", Args: catalog.SkillLoad{Skill: "earthquake_feed"}, Ctx: plan})
	w.OK(Intent{By: w.Planner, Type: "skill.load", Args: catalog.SkillLoad{Skill: "rank"}, Ctx: plan})
	w.Want(p.Plan(Steps(1, "earthquake_feed", "rank")), intents.OK)

	t1 := p.Started(1)
	w.Want(t1.Call("earthquake_feed", `{}`), intents.OK)
	w.OK(t1.Intent("read_lines", catalog.ReadLines{FileID: "f_1", Start: 0, N: 20}))
	script := w.OK(t1.Intent("exec_python", catalog.ExecPython{Script: "print([1,2])"}))
	w.OK(t1.Intent("write_memory", catalog.WriteMemory{Label: "strongest", From: script.IntentID}))
	k1 := t1.MemoryKey("strongest")
	w.Want(t1.Finish("done", k1, ""), intents.OK)
	w.Want(p.Read(k1), intents.OK)

	t2 := p.Started(2)
	w.OK(t2.Intent("read_memory", catalog.ReadMemory{Key: k1}))
	ranked := w.Want(t2.Call("rank", `{"by":"magnitude"}`), intents.OK)
	w.OK(t2.Intent("write_memory", catalog.WriteMemory{Label: "ranking", From: ranked.IntentID}))
	k2 := t2.MemoryKey("ranking")
	w.Want(t2.Finish("done", k2, ""), intents.OK)
	w.Want(p.Read(k2), intents.OK)
	w.Want(p.Complete(), intents.OK)
	return p
}
