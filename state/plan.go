package state

import (
	"crypto/ed25519"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// plan is a plan: view is what others are told, the rest decides which moves are legal.
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
	pending   int                  // orders of it that are open or held, or whose end nobody knows
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
	return slices.DeleteFunc(slices.Clone(p.tasks), func(t *task) bool { return t.ended != "" })
}

// inputKey is the memory key of the step that a step reads from.
func (p *plan) inputKey(s catalog.PlanStep) string {
	if from := p.step(s.InputFromStep); s.InputFromStep > 0 && from != nil {
		return from.MemoryKey
	}
	return ""
}

// effects says whether a once order of the step's current revision was committed
// and not surely without effect.
func (p *plan) effects(step int) bool {
	return slices.ContainsFunc(p.facts, func(f *catalog.OrderFact) bool {
		return f.Step == step && f.Revision == p.view.Revision && f.Effect == catalog.Once && f.Status != undelivered && f.Status != factHeld
	})
}

// waiting says whether a held order of the step has no outcome yet.
func (p *plan) waiting(step int) bool {
	return slices.ContainsFunc(p.facts, func(f *catalog.OrderFact) bool { return f.Step == step && f.Status == factHeld })
}

func (p *plan) held() bool {
	return slices.ContainsFunc(p.facts, func(f *catalog.OrderFact) bool { return f.Status == factHeld })
}

// replan counts a trigger: below three it begins a revision, at three the plan is
// exhausted and can only be closed.
func (p *plan) replan(s *catalog.StepView, trigger, reason string, at time.Time) {
	v := &p.view
	v.Status = catalog.PlanReplanning
	v.History = append(slices.Clone(v.History), catalog.Replan{Attempt: len(v.History) + 1, Trigger: trigger, FailedStep: s.Step, Reason: reason, RevisedAt: at})
	if v.ReplanCount >= catalog.MaxReplans {
		p.exhausted = true
		return
	}
	v.ReplanCount++
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

// clone copies what a move changes of the plan itself, so that a move's answer is
// made before it is committed, by the code that applies it. Tasks and facts are shared.
func (p *plan) clone() *plan {
	c := *p
	c.view.Steps, c.view.History = slices.Clone(p.view.Steps), slices.Clone(p.view.History)
	c.results, c.settled = maps.Clone(p.results), maps.Clone(p.settled)
	return &c
}

// answer is the plan as the signer of a move is told it: the plan as it is now,
// without the texts that plan.claim tells and that every move would write down again.
func (p *plan) answer() catalog.PlanView {
	v := p.told()
	v.Task, v.Response = "", ""
	for i := range v.Facts {
		v.Facts[i].Args = json.RawMessage(`{}`)
	}
	return v
}

// told is the plan as a driver that claims it is told it.
func (p *plan) told() catalog.PlanView {
	v := p.view
	v.Steps, v.History = slices.Clone(p.view.Steps), slices.Clone(p.view.History)
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

// ownPlan finds a plan of the order's actor; another user's is TASK_SCOPE. An
// operator may act on any plan of the tenant.
func (v *View) ownPlan(o Order, id string) (*plan, error) {
	p, ok := v.wholePlan(o.Tenant, id)
	switch {
	case !ok:
		return nil, illegal("/intent/args/plan_id", "no such plan")
	case p.view.UserID != o.User && o.Signer != intents.RoleOperator:
		return nil, intents.Refuse(intents.TaskScope, "/intent/args/plan_id", "the plan belongs to another user")
	case o.Context.PlanID != "" && o.Context.PlanID != id:
		return nil, intents.Refuse(intents.TaskScope, "/context/plan_id", "context names another plan")
	}
	return p, nil
}

// drivenPlan finds a plan of the order's actor that the order's epoch drives.
func (v *View) drivenPlan(o Order, id string, epoch int) (*plan, error) {
	p, err := v.ownPlan(o, id)
	switch {
	case err != nil:
		return nil, err
	case final(p.view.Status):
		return nil, illegal("/intent/args/plan_id", "the plan is "+string(p.view.Status))
	case p.view.Epoch == 0:
		return nil, illegal("/intent/args/epoch", "the plan has no driver: claim it first")
	case epoch != p.view.Epoch:
		return nil, illegal("/intent/args/epoch", "epoch is not the plan's: another driver has claimed it")
	}
	return p, nil
}

// planOf finds the plan of an order that was judged.
func (s *State) planOf(o Order, id string) (*plan, error) {
	p, ok := s.plans[o.Tenant+"/"+id]
	if !ok {
		return nil, illegal("/intent/args/plan_id", "no such plan")
	}
	return p, nil
}

// endPlan ends a plan with its tasks.
func (s *State) endPlan(p *plan, status catalog.PlanStatus, at time.Time) {
	for _, t := range p.liveTasks() {
		t.ended = "plan " + string(status)
	}
	if !final(p.view.Status) {
		s.openAll--
		if s.open[p.view.TenantID]--; s.open[p.view.TenantID] <= 0 {
			delete(s.open, p.view.TenantID)
		}
	}
	p.end(status, at)
	s.leaving.close(p, at)
	if s.forgetful {
		p.forget()
	}
	p.client, p.trace = "", "" // only its drivers ask for these, and an order that is erased has neither
	clear(p.byIntent)          // nobody orders from a step of it any more, nor reads its results
	clear(p.results)
}

// end is the effect of its end on a plan: nothing runs any more.
func (p *plan) end(status catalog.PlanStatus, at time.Time) {
	for i := range p.view.Steps {
		if step := &p.view.Steps[i]; step.Status == catalog.StepRunning {
			step.Status = catalog.StepInterrupted
		}
	}
	p.view.Status, p.view.CompletedAt = status, &at
}

// failPlan ends a plan that nobody drives to its end.
func (s *State) failPlan(p *plan, why string, at time.Time) {
	for _, t := range p.liveTasks() {
		t.ended = "plan failed: " + why
	}
	s.endPlan(p, catalog.PlanFailed, at)
	p.gaveUp(why)
}

// gaveUp says why a plan that nobody drives to its end has failed.
func (p *plan) gaveUp(why string) {
	p.view.Failure = &catalog.Failure{Reason: why, CompletedSteps: p.doneSteps()}
}

// openPlansOf a user.
func (s *State) openPlansOf(tenant, user string) []*plan {
	var out []*plan
	for _, p := range s.plans {
		if p.view.TenantID == tenant && p.view.UserID == user && !final(p.view.Status) {
			out = append(out, p)
		}
	}
	return out
}

// touchesOf are what changes when a user's open plans end.
func (v *View) touchesOf(tenant, user string) []storage.Subject {
	var out []storage.Subject
	for _, p := range v.s.openPlansOf(tenant, user) {
		out = append(out, p.touchesTasks()...)
	}
	return out
}

func (s *State) failPlansOf(tenant, user, why string, at time.Time) {
	for _, p := range s.openPlansOf(tenant, user) {
		s.failPlan(p, why, at)
	}
}
