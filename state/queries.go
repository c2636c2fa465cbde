package state

import (
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
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
	Types    []string         `json:"types,omitempty"` // of intents that the agent may sign
	Holds    []agents.Hold    `json:"holds,omitempty"` // calls of the agent that are held for approval
	Asks     []string         `json:"asks,omitempty"`  // agents that it may ask

	Node string `json:"node,omitempty"` // of a run; empty: it works on a step

	// Of a node of a replay that is not executed: it retains its recorded result, or its intent
	// is decided and not accepted. Compare is the recorded intent whose result is compared with
	// the new one.
	Kept    bool  `json:"kept,omitempty"`
	DryRun  bool  `json:"dry_run,omitempty"`
	Compare int64 `json:"compare,omitempty"`

	APIKey string       `json:"api_key,omitempty"` // of the client whose calls it makes; empty: the task itself runs
	Remote *intents.Pin `json:"remote,omitempty"`  // pin of the remote agent that it stands for; nil: none
}

// Closed reports whether the task's key may sign nothing new any more.
func (t Task) Closed(now time.Time) bool { return t.Ended != "" || now.After(t.Deadline) }

// MayIntent reports whether the task's agent has a tool that signs intents of a type.
func (t Task) MayIntent(typ string) bool {
	if t.Agent == "" && t.Node == "" { // belongs to a planner's step
		return typ != "action" && !strings.HasPrefix(typ, "schedule.")
	}
	return slices.Contains(t.Types, typ)
}

// MayLoad reports whether all of some skills are those of the task's step.
func (t Task) MayLoad(skills []string) bool { return len(without(skills, t.Spec.Skills)) == 0 }

// Task finds a task by "tenant/task_id".
func (v *View) Task(name string) (Task, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	t, ok := v.s.tasks[name]
	if !ok {
		return Task{}, false
	}
	v.addRead(SubjectTask(t.Tenant, t.ID))
	return t.Task, true
}

// TaskWithTool is a task, and the tool by which it was asked for; empty if unknown.
func (v *View) TaskWithTool(name string) (Task, string) {
	found, ok := v.Task(name)
	if !ok {
		return found, ""
	}
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	return found, v.s.tasks[name].AskTool
}

// Plan is the public part of a plan, which it adds to the decision's reads.
func (v *View) Plan(tenant, id string) (catalog.PlanView, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p, ok := v.wholePlan(tenant, id)
	if !ok {
		return catalog.PlanView{}, false
	}
	return p.shown(), true
}

// PlanCancelled reports whether somebody has cancelled a plan.
func (s *State) PlanCancelled(tenant, id string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.plans[tenant+"/"+id]
	return p != nil && p.View.Failure != nil && strings.HasPrefix(p.View.Failure.Reason, cancelledBy(Intent{}))
}

// PlanInput returns what a policy sees of a plan, and the plan's user. It adds the plan to the
// decision's reads.
func (v *View) PlanInput(tenant, id string) (input *intents.PlanInput, user string, ok bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.addRead(SubjectPlanState(tenant, id))
	p, ok := v.s.plans[tenant+"/"+id]
	if !ok {
		return nil, "", false
	}
	return &intents.PlanInput{
		PlanID: p.View.PlanID, Status: string(p.View.Status), Epoch: p.View.Epoch, Revision: p.View.Revision,
		ReplanCount: p.View.ReplanCount, Steps: len(p.View.Steps), ByAgent: p.ByAgent,
	}, p.View.UserID, true
}

// IntentOf finds an intent of the same place for a member "from", or for a run that of a done
// node, and its step.
func (v *View) IntentOf(tenant string, place intents.Context, intentID string) (position int64, step int, ok bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p, ok := v.s.plans[tenant+"/"+place.PlanID]
	if !ok {
		return 0, 0, false
	}
	ref, ok := p.ByIntent[intentID]
	if n := p.step(ref.Step); p.Run != nil && n != nil && n.Status == catalog.StepDone && (p.nodeIntentID(ref.Step) == intentID || p.kept(ref.Step).ID == intentID) {
		return ref.Position, ref.Step, ok
	}
	return ref.Position, ref.Step, ok && ref.Revision == place.Revision && ref.Step == place.Step && ref.Ask == place.Ask
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

// OpenPlanIDs are the ids of a tenant's open plans and runs, sorted.
func (s *State) OpenPlanIDs(tenant string) (ids []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for p := range s.open {
		if p.View.TenantID == tenant {
			ids = append(ids, p.View.PlanID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Silent is an open plan without a driver.
type Silent struct {
	Plan   catalog.PlanView
	Roles  []string // of the grant that opened it
	Client string   // act.client of that grant
	Trace  string   // trace_id of its plan.open
}

// Silent lists open plans that nobody has driven since a position and that do not wait for a
// hold, oldest first. A plan whose hold has ended is listed again: it needs a driver, unless a
// task of it lives, whose driver continues with the released intent. A plan that was opened for
// a schedule, and a run, are listed until they are claimed. The plan of a client is never
// listed: only its user makes its calls.
func (s *State) Silent(since int64) []Silent {
	return s.silentWhere(func(p *plan) bool {
		unclaimed := (p.Scheduled || p.Run != nil) && p.View.Epoch == 0
		return !p.ofClient() && !p.stuck() && (unclaimed || p.Unheld && len(p.liveTasks()) == 0 || max(p.Opened, p.Claimed) < since)
	})
}

// silentWhere lists open plans, oldest first.
func (s *State) silentWhere(is func(*plan) bool) (out []Silent) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for p := range s.open {
		if is(p) {
			out = append(out, p.silent())
		}
	}
	slices.SortFunc(out, func(a, b Silent) int { return a.Plan.CreatedAt.Compare(b.Plan.CreatedAt) })
	return out
}

func (p *plan) silent() Silent { return Silent{p.shown(), p.Roles, p.Client, p.Trace} }

// PatchedRuns lists open runs that were patched and have live tasks: nodes may have become ready
// without their drivers' knowledge.
func (s *State) PatchedRuns() []Silent {
	return s.silentWhere(func(p *plan) bool {
		return p.Run != nil && p.View.Revision > 1 && len(p.liveTasks()) > 0
	})
}

// OpenPlans counts the open plans of a tenant, and of all tenants.
func (s *State) OpenPlans(tenant string) (one, all int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.opened[tenant], len(s.open)
}

// dropTexts drops the texts of a closed plan and of its tasks: the request, the tasks of its
// steps and the answer. No transition reads them; readers take them from the records
// (PlanWithoutTexts, RestoreTexts). Texts that tickets contain stay: intents of a task may still
// be executed.
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

// RestoreTexts restores the texts of an intent of the plan. The plan's steps must be the
// caller's own copy.
func RestoreTexts(p *catalog.PlanView, o Intent) error {
	if restore := transitions[o.Type].restore; restore != nil {
		return restore(p, o)
	}
	return nil
}

// Stats is the size of the state of plans in memory.
type Stats struct {
	Intents int   `json:"intents"` // of executors, without an outcome
	Open    int   `json:"open"`    // plans
	Closed  int   `json:"closed"`  // plans
	Tasks   int   `json:"tasks"`
	Words   int64 `json:"words"` // bytes of texts: requests, tasks of steps and answers
}

// Stats computes it.
func (s *State) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h := Stats{Intents: len(s.intents), Open: len(s.open), Closed: len(s.plans) - len(s.open), Tasks: len(s.tasks)}
	for _, p := range s.plans {
		h.Words += int64(len(p.View.Task) + len(p.View.Response))
		for _, step := range p.View.Steps {
			h.Words += int64(len(step.Task))
		}
	}
	return h
}
