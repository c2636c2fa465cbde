package router

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// plan is a plan on the fold. View is what others are told; the rest decides
// which moves are legal.
type plan struct {
	view      catalog.PlanView
	opened    int64                // position of plan.open
	said      []int64              // positions of the orders that its words are in
	claimed   int64                // position of the last plan.claim; Nobody before the first
	unheld    bool                 // a hold has ended, or was of plan.open, and nobody has claimed the plan since
	roles     []string             // of the grant that opened it
	client    string               // act.client of that grant
	trace     string               // trace_id of plan.open
	exhausted bool                 // the fourth replan: only plan.close failed is legal
	tasks     []*task              // that its steps opened
	results   map[int][]string     // step to memory keys its tasks wrote, of the step's revision
	byIntent  map[string]orderRef  // dispatched orders, for "from"
	facts     []*catalog.OrderFact // once and held orders, told to later drivers
	settled   map[string]bool      // intent_ids of facts whose step is done
}

type orderRef struct {
	position       int64
	revision, step int
}

// task is what one ephemeral key may do.
type task struct {
	id, tenant, user string
	kid              string
	public           ed25519.PublicKey
	plan             *plan
	planID           string
	session, turn    string
	revision, step   int
	spec             catalog.PlanStep
	inputKey         string
	deadline         time.Time
	ended            string // why; empty while it lives
}

// final says that nothing can move a plan any more.
func final(s catalog.PlanStatus) bool {
	return s == catalog.PlanComplete || s == catalog.PlanFailed
}

// lastDone is the number of steps done; steps are done in order.
func (p *plan) lastDone() int {
	n := 0
	for _, s := range p.view.Steps {
		if s.Status == catalog.StepDone {
			n = s.Step
		}
	}
	return n
}

func (p *plan) step(n int) *catalog.StepView {
	for i := range p.view.Steps {
		if p.view.Steps[i].Step == n {
			return &p.view.Steps[i]
		}
	}
	return nil
}

// liveTasks of the plan.
func (p *plan) liveTasks() []*task {
	var out []*task
	for _, t := range p.tasks {
		if t.ended == "" {
			out = append(out, t)
		}
	}
	return out
}

// move is the fold of one type of plan order. Legality was asserted by the commit.
type move func(d *Directory, o decided) error

var planMoves = map[string]move{
	"plan.open": foldPlanOpen, "plan.claim": foldPlanClaim, "plan": foldPlan, "step": foldStep,
	"step.finish": foldStepFinish, "plan.close": foldPlanClose, "cancel": foldCancel,
}

func foldPlanOpen(d *Directory, o decided) error {
	var a catalog.PlanOpen
	if err := json.Unmarshal(o.args, &a); err != nil {
		return err
	}
	d.opens(o.tenant)
	d.plans[o.tenant+"/"+a.PlanID] = &plan{
		opened: o.position, said: []int64{o.recorded}, claimed: storage.Nobody, unheld: o.decision.Verdict == intents.Hold, roles: o.roles, client: o.client, trace: o.trace, results: make(map[int][]string),
		byIntent: make(map[string]orderRef), settled: make(map[string]bool),
		view: catalog.PlanView{
			PlanID: a.PlanID, TenantID: o.tenant, UserID: o.user, SessionID: o.ctx.SessionID,
			TurnID: o.ctx.TurnID, Status: catalog.PlanPending, Task: a.Task, MaxSteps: catalog.MaxSteps,
			Steps: []catalog.StepView{}, History: []catalog.Replan{}, CreatedAt: o.at,
		},
	}
	return nil
}

func (d *Directory) planOf(o decided, id string) (*plan, error) {
	p, ok := d.plans[o.tenant+"/"+id]
	if !ok {
		return nil, fmt.Errorf("no plan %s", id)
	}
	return p, nil
}

func foldPlanClaim(d *Directory, o decided) error {
	var a catalog.PlanClaim
	if err := json.Unmarshal(o.args, &a); err != nil {
		return err
	}
	p, err := d.planOf(o, a.PlanID)
	if err != nil {
		return err
	}
	for _, t := range p.liveTasks() {
		t.ended = "a newer plan.claim"
	}
	claim(p, a.Epoch, o.at)
	p.claimed, p.unheld = o.position, false
	return nil
}

// claim is the effect of plan.claim on a plan: running steps are interrupted,
// and either run again or, where an order with an effect may have happened, the
// plan replans. A held step whose order has ended runs again.
func claim(p *plan, epoch int, at time.Time) {
	v := &p.view
	v.Epoch = epoch
	if v.Status == catalog.PlanPending {
		v.Status = catalog.PlanPlanning
	}
	for i := range v.Steps {
		s := &v.Steps[i]
		switch s.Status {
		case catalog.StepRunning:
			if p.effects(s.Step) {
				s.Status = catalog.StepInterrupted
				s.FailureReason = "interrupted after an order with an effect"
				replan(p, s, "interrupted", s.FailureReason, at)
			} else {
				s.Status = catalog.StepPending
			}
		case catalog.StepHeld:
			if !p.waiting(s.Step) {
				s.Status = catalog.StepPending
			}
		default:
		}
	}
}

// effects says whether a once order of the step's current revision was
// committed and not surely without effect.
func (p *plan) effects(step int) bool {
	for _, f := range p.facts {
		if f.Step == step && f.Revision == p.view.Revision && f.Effect == catalog.Once && f.Status != undelivered && f.Status != "held" {
			return true
		}
	}
	return false
}

// waiting says whether a held order of the step has no outcome yet.
func (p *plan) waiting(step int) bool {
	for _, f := range p.facts {
		if f.Step == step && f.Status == "held" {
			return true
		}
	}
	return false
}

// replan counts a trigger: below three it begins a revision, at three the plan is
// exhausted and can only be closed.
func replan(p *plan, s *catalog.StepView, trigger, reason string, at time.Time) {
	v := &p.view
	v.Status = catalog.PlanReplanning
	v.History = append(slices.Clone(v.History), catalog.Replan{Attempt: len(v.History) + 1, Trigger: trigger, FailedStep: s.Step, Reason: reason, RevisedAt: at})
	if v.ReplanCount >= catalog.MaxReplans {
		p.exhausted = true
		return
	}
	v.ReplanCount++
}

func foldPlan(d *Directory, o decided) error {
	var a catalog.Plan
	if err := json.Unmarshal(o.args, &a); err != nil {
		return err
	}
	p, err := d.planOf(o, a.PlanID)
	if err != nil {
		return err
	}
	done := p.lastDone()
	kept := slices.DeleteFunc(slices.Clone(p.view.Steps), func(s catalog.StepView) bool { return s.Step > done })
	maps.DeleteFunc(p.results, func(step int, _ []string) bool { return step > done })
	for _, s := range a.Steps {
		kept = append(kept, catalog.StepView{PlanStep: s, Status: catalog.StepPending, Revision: a.Revision})
	}
	p.view.Steps, p.view.Revision, p.view.PlanDigest = kept, a.Revision, o.decision.IntentID
	p.view.Status = catalog.PlanExecuting
	p.said = append(p.said, o.recorded)
	return nil
}

func foldStep(d *Directory, o decided) error {
	var a catalog.Step
	if err := json.Unmarshal(o.args, &a); err != nil {
		return err
	}
	p, err := d.planOf(o, a.PlanID)
	if err != nil {
		return err
	}
	s := p.step(a.Step)
	key, err := a.JWK.ToKey()
	if s == nil || err != nil {
		return fmt.Errorf("step %d of %s: %v", a.Step, a.PlanID, err)
	}
	deadline, err := time.Parse(time.RFC3339Nano, a.Deadline)
	if err != nil {
		return err
	}
	at := o.at
	s.Status, s.TaskID, s.StartedAt, s.FinishedAt = catalog.StepRunning, a.TaskID, &at, nil
	name := o.tenant + "/" + a.TaskID
	t := &task{
		id: a.TaskID, tenant: o.tenant, user: o.user, kid: key.KID, public: key.Public, plan: p, planID: a.PlanID,
		session: p.view.SessionID, turn: p.view.TurnID, revision: s.Revision, step: s.Step, spec: s.PlanStep,
		inputKey: p.inputKey(s.PlanStep), deadline: deadline,
	}
	p.tasks = append(p.tasks, t)
	d.tasks[name] = t
	d.taskKID[key.KID] = name
	return nil
}

// inputKey is the memory key of the step that a step reads from.
func (p *plan) inputKey(s catalog.PlanStep) string {
	if from := p.step(s.InputFromStep); s.InputFromStep > 0 && from != nil {
		return from.MemoryKey
	}
	return ""
}

func foldStepFinish(d *Directory, o decided) error {
	var a catalog.StepFinish
	if err := json.Unmarshal(o.args, &a); err != nil {
		return err
	}
	t, ok := d.tasks[o.tenant+"/"+a.TaskID]
	if !ok {
		return fmt.Errorf("no task %s", a.TaskID)
	}
	t.ended = "step.finish"
	endStep(t.plan, t.step, a, o.at)
	return nil
}

// endStep is the effect of step.finish on a plan.
func endStep(p *plan, step int, a catalog.StepFinish, at time.Time) {
	s := p.step(step)
	if s == nil {
		return
	}
	s.FinishedAt, s.FailureReason, s.Suggestion = &at, a.Reason, a.Suggestion
	switch a.Status {
	case "done":
		s.Status, s.MemoryKey, s.Validated = catalog.StepDone, a.MemoryKey, true
		for _, f := range p.facts {
			if f.Step == step && f.Revision == s.Revision {
				p.settled[f.IntentID] = true
			}
		}
	case "insufficient":
		s.Status = catalog.StepInsufficient
		replan(p, s, "insufficient", a.Reason, at)
	default:
		s.Status = catalog.StepFailed
		replan(p, s, "failed", a.Reason, at)
	}
}

func foldPlanClose(d *Directory, o decided) error {
	var a catalog.PlanClose
	if err := json.Unmarshal(o.args, &a); err != nil {
		return err
	}
	p, err := d.planOf(o, a.PlanID)
	if err != nil {
		return err
	}
	p.view.Response, p.view.Failure = a.Response, a.Failure
	p.said = append(p.said, o.recorded)
	d.endPlan(p, catalog.PlanStatus(a.Status), o.at)
	return nil
}

func foldCancel(d *Directory, o decided) error {
	var a catalog.Cancel
	if err := json.Unmarshal(o.args, &a); err != nil {
		return err
	}
	p, err := d.planOf(o, a.PlanID)
	if err != nil {
		return err
	}
	d.endPlan(p, catalog.PlanFailed, o.at)
	p.view.Failure = &catalog.Failure{Reason: "cancelled", CompletedSteps: p.doneSteps()}
	return nil
}

func (p *plan) doneSteps() []int {
	out := []int{}
	for _, s := range p.view.Steps {
		if s.Status == catalog.StepDone {
			out = append(out, s.Step)
		}
	}
	return out
}

func (d *Directory) endPlan(p *plan, status catalog.PlanStatus, at time.Time) {
	for _, t := range p.liveTasks() {
		t.ended = "plan " + string(status)
	}
	for i := range p.view.Steps {
		if s := &p.view.Steps[i]; s.Status == catalog.StepRunning {
			s.Status = catalog.StepInterrupted
		}
	}
	if !final(p.view.Status) {
		d.closes(p.view.TenantID)
	}
	p.view.Status, p.view.CompletedAt = status, &at
	if d.forgetful {
		p.forget()
	}
	clear(p.byIntent) // nobody orders from a step of it any more
}

// clonePlan copies what a move changes, so that a legal move can be tried, and
// its result told, before it is committed.
func clonePlan(p *plan) *plan {
	c := *p
	c.view.Steps = slices.Clone(p.view.Steps)
	c.view.History = slices.Clone(p.view.History)
	c.results = maps.Clone(p.results)
	return &c
}

// viewWithFacts is the plan as drivers are told it.
func (p *plan) viewWithFacts() catalog.PlanView {
	v := p.view
	v.Steps = slices.Clone(p.view.Steps)
	v.History = slices.Clone(p.view.History)
	v.Facts = nil
	for _, f := range p.facts {
		if s := p.step(f.Step); f.Step > 0 && (s == nil || s.Status != catalog.StepDone) { // of steps only
			told := *f
			if told.Status == undelivered {
				told.Status = string(intents.Failed)
			}
			v.Facts = append(v.Facts, told)
		}
	}
	return v
}
