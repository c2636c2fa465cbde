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

// plan is a plan. View is what others see of it; the other fields decide which moves are
// legal. Names and types are those of a snapshot, too.
type plan struct {
	View      catalog.PlanView    `json:"view"`
	Opened    int64               `json:"opened"`             // position of plan.open
	Texts     []int64             `json:"texts"`              // positions of the orders that hold its texts
	Claimed   int64               `json:"claimed"`            // position of the last plan.claim; Nobody before the first
	Unheld    bool                `json:"unheld"`             // a hold has ended, or was of plan.open, and no driver knows it
	Roles     []string            `json:"roles"`              // of the grant that opened it
	Client    string              `json:"client"`             // act.client of that grant
	Trace     string              `json:"trace"`              // trace_id of plan.open
	Exhausted bool                `json:"exhausted"`          // the fourth replan: only plan.close failed is legal
	Tasks     []*task             `json:"tasks"`              // that its steps opened
	Results   map[int][]string    `json:"results"`            // step to memory keys its tasks wrote, of the step's revision
	ByIntent  map[string]orderRef `json:"by_intent"`          // dispatched orders, for "from"
	Facts     []*fact             `json:"facts"`              // once and held orders, for later drivers; only appended to
	Calls     []*called           `json:"calls,omitempty"`    // orders of agents' calls, until it is closed; only appended to
	Settled   map[string]bool     `json:"settled"`            // intent_ids of facts whose step is done
	Run       *run                `json:"run,omitempty"`      // of a run while it is open
	Nodes     map[int]nodeRef     `json:"nodes,omitempty"`    // of a run that has ended: what came of its nodes, by step
	Runs      *runs               `json:"runs,omitempty"`     // its agent while it is open; nil: a planner's plan
	Registry  []int64             `json:"registry,omitempty"` // of a planner's plan: the revisions of system and tenant when it was opened
	Agents    map[int]*runs       `json:"agents,omitempty"`   // of its steps that name one, while it is open

	Unsaid  bool                 `json:"unsaid,omitempty"`  // nobody knows the answer that its end repeats: it was erased
	Request string               `json:"request,omitempty"` // digest of the request that opened it, from rules 4 on
	Turning bool                 `json:"turning,omitempty"` // it is the open turn of its session
	Turn    *catalog.TurnContext `json:"turn,omitempty"`    // while it is open
	Used    int                  `json:"used,omitempty"`    // tokens

	Scheduled bool `json:"scheduled,omitempty"` // it was opened for a schedule: nobody drives it at once
	ByAgent   bool `json:"by_agent,omitempty"`  // which an agent has put

	Numbers map[int]bool `json:"numbers,omitempty"` // of calls of a client, while it is open

	// Gate that it was opened at; nil: at none. Before is the request before, about which the
	// user was asked. Routed is the position where its session went to its agent, and Over
	// says that the session goes on no more.
	Gate   *catalog.Gate      `json:"gate,omitempty"`
	Before *catalog.Clarified `json:"before,omitempty"`
	Routed int64              `json:"routed,omitempty"`
	Over   bool               `json:"over,omitempty"`

	pending int // orders of it that are open or held, or indeterminate
}

type orderRef struct {
	Position int64  `json:"position"`
	Revision int    `json:"revision"`
	Step     int    `json:"step"`
	Ask      string `json:"ask,omitempty"`
}

// task is what one ephemeral key may do.
type task struct {
	Task
	KID    string            `json:"kid"`
	Public ed25519.PublicKey `json:"public"`
	// Replies that had calls when it began, in its place; and the tokens that it used.
	Replies int `json:"replies,omitempty"`
	Used    int `json:"used,omitempty"`

	Said     string `json:"said,omitempty"`     // with what it has ended, of a task that was asked for (answered)
	Finished int64  `json:"finished,omitempty"` // position of its step.finish

	plan *plan
}

// final says that nothing can move a plan any more.
func final(s catalog.PlanStatus) bool {
	return s == catalog.PlanComplete || s == catalog.PlanFailed
}

func (p *plan) step(n int) *catalog.StepView {
	for i := range p.View.Steps {
		if p.View.Steps[i].Step == n {
			return &p.View.Steps[i]
		}
	}
	return nil
}

// liveTasks of the plan.
func (p *plan) liveTasks() []*task {
	return slices.DeleteFunc(slices.Clone(p.Tasks), func(t *task) bool { return t.Ended != "" })
}

// inputKeys are the memory keys of the steps that a step reads from, in its order.
func (p *plan) inputKeys(s catalog.PlanStep) []string {
	var keys []string
	for _, n := range s.Reads() {
		if from := p.step(n); from != nil {
			keys = append(keys, from.MemoryKey)
		}
	}
	return keys
}

// effects says, under the rules before intents.RulesAgents, whether a once order of the step's current revision was committed
// and not surely without effect.
func (p *plan) effects(step int) bool {
	return slices.ContainsFunc(p.Facts, func(f *fact) bool {
		return f.Step == step && f.Revision == p.View.Revision && f.Effect == catalog.Once && f.Status != undelivered && f.Status != factHeld
	})
}

// waiting says whether a held order of the step has no outcome yet.
func (p *plan) waiting(step int) bool {
	return slices.ContainsFunc(p.Facts, func(f *fact) bool { return f.Step == step && f.Status == factHeld })
}

// stuck says that the plan waits for people: an order of it is held, and no step can go
// on without its outcome.
func (p *plan) stuck() bool {
	held := false
	for _, f := range p.Facts {
		if f.Status == factHeld && f.Step == 0 {
			return true // an order of its drivers
		}
		held = held || f.Status == factHeld
	}
	beside := p.View.Status == catalog.PlanReplanning || p.goesOn() || len(p.liveTasks()) > 0
	return held && !beside
}

// goesOn says whether a driver could begin something now.
func (p *plan) goesOn() bool {
	if p.Run != nil {
		return len(p.next()) > 0
	}
	return len(p.View.Ready()) > 0
}

// replan counts a trigger: below three it begins a revision, at three the plan is
// exhausted and can only be closed. What fails until then, while other steps end,
// belongs to the same replan.
func (p *plan) replan(s *catalog.StepView, trigger, reason string, at time.Time) {
	v := &p.View
	if v.Agent != "" || v.Run != nil || v.Status == catalog.PlanReplanning { // of an agent's plan or a run failed is failed
		return
	}
	v.Status = catalog.PlanReplanning
	v.History = append(slices.Clone(v.History), catalog.Replan{Attempt: len(v.History) + 1, Trigger: trigger, FailedStep: s.Step, Reason: reason, RevisedAt: at})
	if v.ReplanCount >= catalog.MaxReplans {
		p.Exhausted = true
		return
	}
	v.ReplanCount++
}

func (p *plan) doneSteps() []int {
	out := []int{}
	for _, s := range p.View.Steps {
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
	c.View.Steps, c.View.History = slices.Clone(p.View.Steps), slices.Clone(p.View.History)
	c.Results, c.Settled = maps.Clone(p.Results), maps.Clone(p.Settled)
	return &c
}

// answer is the plan in the result of a move: the plan as it is afterwards, without the
// texts, which every move would record again. plan.claim alone answers with them.
func (p *plan) answer() catalog.PlanView {
	v := p.shown()
	if v.Run != nil { // drivers are told what they can do; 200 nodes would be recorded each time
		v.Steps, v.Run = []catalog.StepView{}, withoutEdges(v.Run)
	}
	v.Task, v.Response, v.Components, v.Route = "", "", nil, v.Route.WithTexts(catalog.Route{})
	for i := range v.Facts {
		v.Facts[i].Args = json.RawMessage(`{}`)
	}
	return v
}

func withoutEdges(r *catalog.RunView) *catalog.RunView {
	if r == nil {
		return nil
	}
	out := *r
	out.Edges = nil
	return &out
}

// shown is the plan as a driver sees it that claims it.
func (p *plan) shown() catalog.PlanView {
	v := p.View
	v.Steps, v.History = slices.Clone(p.View.Steps), slices.Clone(p.View.History)
	v.Facts = nil
	if v.Run != nil { // whose nodes are orders, and need none of them
		return v
	}
	for _, f := range p.Facts {
		if s := p.step(f.Step); f.Step > 0 && (s == nil || s.Status != catalog.StepDone) { // of steps only
			told := f.OrderFact
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
	case p.View.UserID != o.User && o.Signer != intents.RoleOperator:
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
	case drives(o, p) != nil:
		return nil, drives(o, p)
	case final(p.View.Status):
		return nil, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status))
	case p.View.Epoch == 0:
		return nil, illegal("/intent/args/epoch", "the plan has no driver: claim it first")
	case epoch != p.View.Epoch:
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
		s.endTask(t, "plan "+string(status), "", nil, at)
	}
	if !final(p.View.Status) {
		s.openAll--
		if s.open[p.View.TenantID]--; s.open[p.View.TenantID] <= 0 {
			delete(s.open, p.View.TenantID)
		}
	}
	p.end(status, at)
	s.freeSession(p)
	if p.Run != nil {
		p.Nodes = p.nodeRefs()
	}
	p.Run, p.Runs, p.Agents, p.Unsaid = nil, nil, nil, false
	s.leaving.close(p, at)
	p.dropTexts()
	p.Client, p.Trace = "", "" // only its drivers ask for these, and an order that is erased has neither
	clear(p.ByIntent)          // nobody orders from a step of it any more, nor reads its results
	clear(p.Results)
	p.Calls, p.Numbers = nil, nil
	for _, f := range p.Facts {
		f.dropArgs()
	}
}

// end is the effect of its end on a plan: nothing runs any more.
func (p *plan) end(status catalog.PlanStatus, at time.Time) {
	for i := range p.View.Steps {
		if step := &p.View.Steps[i]; step.Status == catalog.StepRunning {
			step.Status = catalog.StepInterrupted
		}
	}
	p.View.Status, p.View.CompletedAt = status, &at
}

// failPlan ends a plan that nobody drives to its end.
func (s *State) failPlan(p *plan, why string, at time.Time) {
	for _, t := range p.liveTasks() {
		s.endTask(t, "plan failed: "+why, "", nil, at)
	}
	s.endPlan(p, catalog.PlanFailed, at)
	p.gaveUp(why)
}

// gaveUp says why a plan that nobody drives to its end has failed.
func (p *plan) gaveUp(why string) {
	p.View.Failure = &catalog.Failure{Reason: why, CompletedSteps: p.doneSteps()}
}

// openPlansOf a user.
func (s *State) openPlansOf(tenant, user string) []*plan {
	var out []*plan
	for _, p := range s.plans {
		if p.View.TenantID == tenant && p.View.UserID == user && !final(p.View.Status) {
			out = append(out, p)
		}
	}
	return out
}

// touchesOf are what changes when a user's open plans end.
func (v *View) touchesOf(tenant, user string) []storage.Subject {
	var out []storage.Subject
	for _, p := range v.s.openPlansOf(tenant, user) {
		out = append(out, p.touchesEnd()...)
	}
	return out
}

func (s *State) failPlansOf(tenant, user, why string, at time.Time) {
	for _, p := range s.openPlansOf(tenant, user) {
		s.failPlan(p, why, at)
	}
}
