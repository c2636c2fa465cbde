package state

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Task is a task as decisions see it.
type Task struct {
	ID       string           `json:"id"`
	Tenant   string           `json:"tenant"`
	User     string           `json:"user"`
	Plan     string           `json:"plan"`
	Session  string           `json:"session"`
	Turn     string           `json:"turn"`
	Revision int              `json:"revision"`
	Step     int              `json:"step"`
	Ask      string           `json:"ask,omitempty"`    // path of the call that asked for it; empty: the step's own task
	Parent   string           `json:"parent,omitempty"` // the task that asked for it
	Spec     catalog.PlanStep `json:"spec"`
	Inputs   []string         `json:"inputs"` // memory keys that it may read
	Deadline time.Time        `json:"deadline"`
	Ended    string           `json:"ended"`           // why; empty while it lives
	Agent    string           `json:"agent,omitempty"` // that it runs; empty: the executor of a planner's step
	Types    []string         `json:"types,omitempty"` // of orders that the agent may seal
	Holds    []agents.Hold    `json:"holds,omitempty"` // calls of the agent that wait for people
	Asks     []string         `json:"asks,omitempty"`  // agents that it may ask

	Node string `json:"node,omitempty"` // of a run; empty: it works on a step

	// Of a node of a replay that is not carried out: it keeps what came of it, or its order is decided and not
	// accepted. Compare is the recorded order whose result that of its own is compared with.
	Kept    bool  `json:"kept,omitempty"`
	DryRun  bool  `json:"dry_run,omitempty"`
	Compare int64 `json:"compare,omitempty"`

	APIKey string       `json:"api_key,omitempty"` // of the client whose calls it makes; empty: it works itself
	Remote *intents.Pin `json:"remote,omitempty"`  // of the remote agent that it stands for; nil: of none
}

// Over says whether the task's key may sign nothing new any more.
func (t Task) Over(now time.Time) bool { return t.Ended != "" || now.After(t.Deadline) }

// MayOrder says whether the task's agent has a tool that makes orders of a type.
func (t Task) MayOrder(typ string) bool {
	if t.Agent == "" && t.Node == "" { // of a planner's step
		return typ != "action" && !strings.HasPrefix(typ, "schedule.")
	}
	return slices.Contains(t.Types, typ)
}

// MayLoad says whether all of some skills are those of the task's step.
func (t Task) MayLoad(skills []string) bool { return len(without(skills, t.Spec.Skills)) == 0 }

// Task finds a task by "tenant/task_id".
func (v *View) Task(name string) (Task, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	t, ok := v.s.tasks[name]
	if !ok {
		return Task{}, false
	}
	v.rely(SubjectTask(t.Tenant, t.ID))
	return t.Task, true
}

// Plan as others see it. The decision relies on it.
func (v *View) Plan(tenant, id string) (catalog.PlanView, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p, ok := v.wholePlan(tenant, id)
	if !ok {
		return catalog.PlanView{}, false
	}
	return p.shown(), true
}

// PlanFacts are what a policy sees of a plan, and whose plan it is. The decision
// relies on it.
func (v *View) PlanFacts(tenant, id string) (facts *intents.FactPlan, user string, ok bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.rely(SubjectPlanState(tenant, id))
	p, ok := v.s.plans[tenant+"/"+id]
	if !ok {
		return nil, "", false
	}
	return &intents.FactPlan{
		PlanID: p.View.PlanID, Status: string(p.View.Status), Epoch: p.View.Epoch, Revision: p.View.Revision,
		ReplanCount: p.View.ReplanCount, Steps: len(p.View.Steps), ByAgent: p.ByAgent,
	}, p.View.UserID, true
}

// OrderOf finds an order of the same place for a member "from", or of a run that of a done node, and its step.
func (v *View) OrderOf(tenant string, place intents.Context, intentID string) (position int64, step int, ok bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p, ok := v.s.plans[tenant+"/"+place.PlanID]
	if !ok {
		return 0, 0, false
	}
	ref, ok := p.ByIntent[intentID]
	if n := p.step(ref.Step); p.Run != nil && n != nil && n.Status == catalog.StepDone && (p.nodeOrderID(ref.Step) == intentID || p.kept(ref.Step).ID == intentID) {
		return ref.Position, ref.Step, ok
	}
	return ref.Position, ref.Step, ok && ref.Revision == place.Revision && ref.Step == place.Step && ref.Ask == place.Ask
}

// Repeats finds, under the rules before intents.RulesAgents, a once order of the plan that is equal in type and arguments, may
// have had its effect, and whose step did not end as done: what planned it may plan
// it again. A step that is done had what it asked for; another step may ask for the
// same anew.
//
// The decision relies on the once orders of its own step. Those of an earlier task in
// another step cannot become a repetition any more: that task has ended. A signer that is
// no task may name any step: its decision relies on the whole plan.
func (v *View) Repeats(tenant, plan string, step int, by intents.Role, typ string, args json.RawMessage) (intentID string, indeterminate bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.rely(SubjectEffects(tenant, plan, step))
	if by != intents.RoleTask {
		v.wholePlan(tenant, plan)
	}
	p, ok := v.s.plans[tenant+"/"+plan]
	if !ok {
		return "", false
	}
	for _, f := range p.Facts {
		if !f.equals(typ, args) || f.Status == undelivered || p.Settled[f.IntentID] {
			continue
		}
		if f.Status == string(intents.StatusIndetermined) {
			return f.IntentID, true
		}
		intentID = f.IntentID
	}
	return intentID, false
}

// KeysOfPlan are the memory keys that a plan's steps have written.
func (v *View) KeysOfPlan(tenant, plan string) []string {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p, ok := v.s.plans[tenant+"/"+plan]
	if !ok {
		return nil
	}
	return slices.Concat(slices.Collect(maps.Values(p.Results))...)
}

// Silent is an open plan that nobody drives.
type Silent struct {
	Plan   catalog.PlanView
	Roles  []string // of the grant that opened it
	Client string   // act.client of that grant
	Trace  string   // trace_id of its plan.open
}

// Silent lists open plans that nobody has driven since a position and that do not
// wait for a hold, oldest first. A plan whose hold has ended is listed again: it needs a
// driver, unless a task of it lives, whose driver goes on with what was held. So does one
// that was opened for a schedule, and a run, until it is claimed. The plan of a client is never listed:
// its calls are its user's, or nobody's.
func (s *State) Silent(since int64) []Silent {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Silent
	for _, p := range s.plans {
		unclaimed := (p.Scheduled || p.Run != nil) && p.View.Epoch == 0
		if final(p.View.Status) || p.ofClient() || p.stuck() || !unclaimed && ((!p.Unheld || len(p.liveTasks()) > 0) && max(p.Opened, p.Claimed) >= since) {
			continue
		}
		out = append(out, Silent{p.shown(), p.Roles, p.Client, p.Trace})
	}
	slices.SortFunc(out, func(a, b Silent) int { return a.Plan.CreatedAt.Compare(b.Plan.CreatedAt) })
	return out
}

// Patched lists open runs that were patched and of which tasks live: nodes may have become ready
// of which their drivers do not know.
func (s *State) Patched() (out []Silent) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.plans {
		if p.Run != nil && p.View.Revision > 1 && !final(p.View.Status) && len(p.liveTasks()) > 0 {
			out = append(out, Silent{p.shown(), p.Roles, p.Client, p.Trace})
		}
	}
	return out
}

// OpenPlans of a tenant, and of all.
func (s *State) OpenPlans(tenant string) (one, all int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.open[tenant], s.openAll
}

// dropTexts drops the texts of a closed plan and of its tasks: the request, the tasks of
// its steps and the answer. No move is judged by them, and who needs them reads them
// from the records (PlanWithoutTexts, RestoreTexts). Texts that tickets hold stay: orders
// of a task may still be carried out.
func (p *plan) dropTexts() {
	p.View.Task, p.View.Response, p.View.Components, p.Turn = "", "", nil, nil
	p.View.Route = p.View.Route.WithTexts(catalog.Route{})
	for i := range p.View.Steps {
		p.View.Steps[i].Task = ""
	}
	for _, t := range p.Tasks {
		t.Spec.Task = ""
	}
}

// RestoreTexts puts the texts of an order of the plan back into it. Its steps must be the
// caller's own.
func RestoreTexts(p *catalog.PlanView, o Order) error {
	if restore := moves[o.Type].restore; restore != nil {
		return restore(p, o)
	}
	return nil
}

// Held is what the state of plans holds in memory.
type Held struct {
	Orders int   `json:"orders"` // of executors, without an outcome
	Open   int   `json:"open"`   // plans
	Closed int   `json:"closed"` // plans
	Tasks  int   `json:"tasks"`
	Words  int64 `json:"words"` // bytes of texts: requests, tasks of steps and answers
}

// Held counts it.
func (s *State) Held() Held {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h := Held{Orders: len(s.orders), Open: s.openAll, Closed: len(s.plans) - s.openAll, Tasks: len(s.tasks)}
	for _, p := range s.plans {
		h.Words += int64(len(p.View.Task) + len(p.View.Response))
		for _, step := range p.View.Steps {
			h.Words += int64(len(step.Task))
		}
	}
	return h
}
