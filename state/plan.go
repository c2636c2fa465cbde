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

// plan is a plan. View is its public part; the other fields decide which transitions are legal.
// Their names and types are also those of a snapshot.
type plan struct {
	View          catalog.PlanView     `json:"view"`
	Opened        int64                `json:"opened"`             // position of plan.open
	Texts         []int64              `json:"texts"`              // positions of the intents that contain its texts
	Claimed       int64                `json:"claimed"`            // position of the last plan.claim; storage.NoPosition before the first
	Unheld        bool                 `json:"unheld"`             // a hold has ended, or was of plan.open, and no driver knows it yet
	Roles         []string             `json:"roles"`              // of the grant that opened it
	Client        string               `json:"client"`             // act.client of that grant
	Trace         string               `json:"trace"`              // trace_id of plan.open
	Exhausted     bool                 `json:"exhausted"`          // the fourth replan: only plan.close as failed is legal
	Tasks         []*task              `json:"tasks"`              // opened for its steps
	Results       map[int][]string     `json:"results"`            // step to memory keys that its tasks wrote, for the step's revision
	ByIntent      map[string]intentRef `json:"by_intent"`          // dispatched intents, for "from"
	IntentHistory []*pastIntent        `json:"facts"`              // once and held intents, for later drivers; append-only
	Calls         []*agentCall         `json:"calls,omitempty"`    // intents of agents' calls, until it is closed; append-only
	Run           *run                 `json:"run,omitempty"`      // while it is an open run
	Nodes         map[int]nodeRef      `json:"nodes,omitempty"`    // of a run that has ended: the results of its nodes, by step
	Runs          *runs                `json:"runs,omitempty"`     // its agent while it is open; nil: a planner's plan
	Registry      []int64              `json:"registry,omitempty"` // of a planner's plan: the revisions of system and tenant when it was opened
	Agents        map[int]*runs        `json:"agents,omitempty"`   // of its steps that name one, while it is open

	AnswerErased bool                 `json:"unsaid,omitempty"`    // the answer that its end repeats was erased
	Request      string               `json:"request,omitempty"`   // digest of the request that opened it
	Turning      bool                 `json:"turning,omitempty"`   // it is the open turn of its session
	Turn         *catalog.TurnContext `json:"turn,omitempty"`      // while it is open
	Transient    int64                `json:"transient,omitempty"` // while it is open: position of the record with the texts beside plan.open; 0: none
	Used         int                  `json:"used,omitempty"`      // tokens

	Scheduled bool `json:"scheduled,omitempty"` // it was opened for a schedule: nobody drives it at once
	ByAgent   bool `json:"by_agent,omitempty"`  // the schedule was put by an agent

	Numbers map[int]bool `json:"numbers,omitempty"` // of a client's calls, while it is open

	// Routing of the request that opened it; nil if it was not routed. Before is the previous
	// request, about which the user was asked. Routed is the position where its session went to
	// its agent, and SessionEnded marks a session that has ended.
	Routing      *catalog.Routing      `json:"routing,omitempty"`
	Before       *catalog.PriorRequest `json:"before,omitempty"`
	Routed       int64                 `json:"routed,omitempty"`
	SessionEnded bool                  `json:"over,omitempty"`

	// Sources whose content it has read; they only grow.
	Sources []intents.Source `json:"sources,omitempty"`

	pending int // its intents that are open, held or indeterminate
}

type intentRef struct {
	Position int64  `json:"position"`
	Revision int    `json:"revision"`
	Step     int    `json:"step"`
	Ask      string `json:"ask,omitempty"`
}

// task is the scope of one ephemeral key.
type task struct {
	Task
	KID    string            `json:"kid"`
	Public ed25519.PublicKey `json:"public"`
	// Replies with calls at its place when it began, and the tokens that it used.
	Replies int `json:"replies,omitempty"`
	Used    int `json:"used,omitempty"`

	AskTool   string `json:"ask_tool,omitempty"` // of the call that asked for it
	AskStatus string `json:"said,omitempty"`     // status with which a task that was asked for has ended (answered)
	Finished  int64  `json:"finished,omitempty"` // position of its step.finish

	plan *plan
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

// inputKeys are the memory keys of the steps that a step reads, in its order.
func (p *plan) inputKeys(s catalog.PlanStep) []string {
	var keys []string
	for _, n := range s.Reads() {
		if from := p.step(n); from != nil {
			keys = append(keys, from.MemoryKey)
		}
	}
	return keys
}

// waiting reports whether a held intent of the step has no outcome yet.
func (p *plan) waiting(step int) bool {
	return slices.ContainsFunc(p.IntentHistory, func(f *pastIntent) bool { return f.Step == step && f.Status == statusHeld })
}

// stuck reports whether the plan waits for people: one of its intents is held, and no step can
// continue without the outcome.
func (p *plan) stuck() bool {
	held := false
	for _, f := range p.IntentHistory {
		if f.Status == statusHeld && f.Step == 0 {
			return true // an intent of its drivers
		}
		held = held || f.Status == statusHeld
	}
	beside := p.View.Status == catalog.PlanReplanning || p.goesOn() || len(p.liveTasks()) > 0
	return held && !beside
}

// goesOn reports whether a driver could begin something now.
func (p *plan) goesOn() bool {
	if p.Run != nil {
		return len(p.next()) > 0
	}
	return len(p.View.Ready()) > 0
}

// replan counts a trigger: below three it begins a revision, at three the plan is exhausted and
// can only be closed. Further failures until then, while other steps end, belong to the same
// replan.
func (p *plan) replan(s *catalog.StepView, trigger, reason string, at time.Time) {
	v := &p.View
	if v.Agent != "" || v.Run != nil || v.Status == catalog.PlanReplanning { // a failure is final in an agent's plan or a run
		return
	}
	v.Status = catalog.PlanReplanning
	v.History = append(slices.Clone(v.History), catalog.Replan{Attempt: len(v.History) + 1, Trigger: trigger, FailedStep: s.Step, Shape: s.ReturnSpec.Shape, Reason: reason, RevisedAt: at})
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

// clone copies what a transition changes of the plan itself, so that the transition's result can
// be computed before the commit by the code that applies it. Tasks and history are shared.
func (p *plan) clone() *plan {
	c := *p
	c.View.Steps, c.View.History = slices.Clone(p.View.Steps), slices.Clone(p.View.History)
	c.Results = maps.Clone(p.Results)
	return &c
}

// answer is the plan in the result of a transition: the plan afterwards, without the texts,
// which every transition would record again. Only plan.claim returns them.
func (p *plan) answer() catalog.PlanView {
	v := p.shown()
	if v.Run != nil { // drivers get what is next; 200 nodes would be recorded each time
		v.Steps, v.Run = []catalog.StepView{}, withoutEdges(v.Run)
	}
	v.Task, v.Response, v.Components, v.Route = "", "", nil, v.Route.WithTexts(catalog.Route{})
	for i := range v.IntentHistory {
		v.IntentHistory[i].Args = json.RawMessage(`{}`)
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

// shown is the plan for the driver that claims it.
func (p *plan) shown() catalog.PlanView {
	v := p.View
	v.Steps, v.History = slices.Clone(p.View.Steps), slices.Clone(p.View.History)
	v.IntentHistory = nil
	if v.Run != nil { // whose nodes are intents, so none are needed
		return v
	}
	for _, f := range p.IntentHistory {
		if s := p.step(f.Step); f.Step > 0 && (s == nil || s.Status != catalog.StepDone) { // of steps only
			told := f.PastIntent
			if told.Status == undelivered {
				told.Status = string(intents.Failed)
			}
			v.IntentHistory = append(v.IntentHistory, told)
		}
	}
	return v
}

// ownPlan finds a plan of the intent's actor. TASK_SCOPE is the refusal of a missing plan and of
// another user's, which look the same to the actor. An operator may act on any plan of the tenant.
func (v *View) ownPlan(o Intent, id string) (*plan, error) {
	p, ok := v.wholePlan(o.Tenant, id)
	switch {
	case !ok || p.View.UserID != o.User && o.Signer != intents.RoleOperator:
		return nil, intents.Refuse(intents.TaskScope, "/intent/args/plan_id", "no such plan of this user")
	case o.Context.PlanID != "" && o.Context.PlanID != id:
		return nil, intents.Refuse(intents.TaskScope, "/context/plan_id", "context names another plan")
	}
	return p, nil
}

// planOfEpoch finds a plan of the intent's actor that the intent's epoch drives.
func (v *View) planOfEpoch(o Intent, id string, epoch int) (*plan, error) {
	p, err := v.ownPlan(o, id)
	switch {
	case err != nil:
		return nil, err
	case mayAdvance(o, p) != nil:
		return nil, mayAdvance(o, p)
	case p.View.Status.Ended():
		return nil, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status))
	case p.View.Epoch == 0:
		return nil, illegal("/intent/args/epoch", "the plan has no driver: claim it first")
	case epoch != p.View.Epoch:
		return nil, illegal("/intent/args/epoch", "epoch is not the plan's: another driver has claimed it")
	}
	return p, nil
}

// planOf finds the plan of an intent that was judged.
func (s *State) planOf(o Intent, id string) (*plan, error) {
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
	if s.open[p] {
		delete(s.open, p)
		if s.opened[p.View.TenantID]--; s.opened[p.View.TenantID] == 0 {
			delete(s.opened, p.View.TenantID)
		}
	}
	p.end(status, at)
	s.freeSession(p)
	if p.Run != nil {
		p.Nodes = p.nodeRefs()
	}
	p.Run, p.Runs, p.Agents, p.AnswerErased = nil, nil, nil, false
	s.leaving.close(p, at)
	p.dropTexts()
	s.endTransient(p.Transient, at)
	p.Transient = 0
	p.Client, p.Trace = "", "" // only its drivers need these, and an erased intent has neither
	clear(p.ByIntent)          // no intent of it is signed from a step any more, or reads its results
	clear(p.Results)
	p.Calls, p.Numbers = nil, nil
	for _, f := range p.IntentHistory {
		f.dropArgs()
	}
}

// end applies the end of a plan: nothing runs any more.
func (p *plan) end(status catalog.PlanStatus, at time.Time) {
	for i := range p.View.Steps {
		if step := &p.View.Steps[i]; step.Status == catalog.StepRunning {
			step.Status = catalog.StepInterrupted
		}
	}
	p.View.Status, p.View.CompletedAt = status, &at
}

// failPlan ends a plan that nobody completes.
func (s *State) failPlan(p *plan, why string, at time.Time) {
	for _, t := range p.liveTasks() {
		s.endTask(t, "plan failed: "+why, "", nil, at)
	}
	s.endPlan(p, catalog.PlanFailed, at)
	p.gaveUp(why)
}

// gaveUp records why a plan that nobody completes has failed.
func (p *plan) gaveUp(why string) {
	p.View.Failure = &catalog.Failure{Reason: why, CompletedSteps: p.doneSteps()}
}

// openPlansOf a user.
func (s *State) openPlansOf(tenant, user string) []*plan {
	var out []*plan
	for p := range s.open {
		if p.View.TenantID == tenant && p.View.UserID == user {
			out = append(out, p)
		}
	}
	return out
}

// PlansToStop lists the open plans of a tenant: all, or those of agents.
func (s *State) PlansToStop(tenant string, all bool, agents []string) (plans []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for p := range s.open {
		if p.View.TenantID == tenant && (all || slices.Contains(agents, p.View.Agent)) {
			plans = append(plans, p.View.PlanID)
		}
	}
	return plans
}

// writesOfUser lists what changes when a user's open plans end.
func (v *View) writesOfUser(tenant, user string) []storage.Subject {
	var out []storage.Subject
	for _, p := range v.s.openPlansOf(tenant, user) {
		out = append(out, p.writesOfEnd()...)
	}
	return out
}

func (s *State) failPlansOf(tenant, user, why string, at time.Time) {
	for _, p := range s.openPlansOf(tenant, user) {
		s.failPlan(p, why, at)
	}
}
