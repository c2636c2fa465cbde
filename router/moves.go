package router

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
)

// MaxTaskLife bounds a task's deadline.
const MaxTaskLife = time.Hour

// effect is what an order of the router will do when it is committed: what its
// signer is told, and which subjects the fold changes.
type effect struct {
	result  any
	touches []storage.Subject
}

// legalMove judges a plan order on the fold (stage 5) and says its effect. The
// commit asserts the plan's subject, so what is judged is what is folded.
func (v *View) legalMove(e *intents.Envelope, now time.Time) (effect, error) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	m := mover{v: v, e: e, now: now}
	switch e.Type() {
	case "plan.open":
		return m.open()
	case "plan.claim":
		return m.claim()
	case "plan":
		return m.plan()
	case "step":
		return m.step()
	case "step.finish":
		return m.finish()
	case "plan.close":
		return m.close()
	case "cancel":
		return m.cancel()
	default:
		return effect{}, fmt.Errorf("no move for %s", e.Type())
	}
}

// argsOf decodes arguments that stage 3 has held to their schema.
func argsOf[T any](e *intents.Envelope) (args T, err error) {
	err = json.Unmarshal(e.Args(), &args)
	return args, err
}

// mover judges one move. The directory's lock is held.
type mover struct {
	v   *View
	e   *intents.Envelope
	now time.Time
}

func illegal(pointer, reason string) error {
	return intents.Refuse(intents.MalformedArgs, pointer, reason)
}

// own finds a plan of the order's actor; another user's is TASK_SCOPE. An
// operator may act on any plan of the tenant.
func (m mover) own(id string) (*plan, error) {
	pr := m.e.Principal()
	m.v.rely(subjectPlan(pr.Tenant, id))
	p, ok := m.v.d.plans[pr.Tenant+"/"+id]
	if !ok {
		return nil, illegal("/intent/args/plan_id", "no such plan")
	}
	if p.view.UserID != pr.UserID && m.e.Signer().Role != intents.RoleOperator {
		return nil, intents.Refuse(intents.TaskScope, "/intent/args/plan_id", "the plan belongs to another user")
	}
	if c := m.e.Context(); c.PlanID != "" && c.PlanID != id {
		return nil, intents.Refuse(intents.TaskScope, "/context/plan_id", "context names another plan")
	}
	return p, nil
}

func (m mover) touching(p *plan, tasks bool) []storage.Subject {
	out := []storage.Subject{subjectPlan(p.view.TenantID, p.view.PlanID)}
	if tasks {
		for _, t := range p.liveTasks() {
			out = append(out, subjectTask(t.tenant, t.id))
		}
	}
	return out
}

func (m mover) open() (effect, error) {
	a, err := argsOf[catalog.PlanOpen](m.e)
	if err != nil {
		return effect{}, err
	}
	if c := m.e.Context(); c.PlanID != "" && c.PlanID != a.PlanID {
		return effect{}, intents.Refuse(intents.TaskScope, "/context/plan_id", "context names another plan")
	}
	s := subjectPlan(m.e.Principal().Tenant, a.PlanID)
	m.v.rely(s)
	if _, ok := m.v.d.plans[m.e.Principal().Tenant+"/"+a.PlanID]; ok {
		return effect{}, illegal("/intent/args/plan_id", "a plan with this id exists")
	}
	return effect{catalog.Accepted{Accepted: true}, []storage.Subject{s}}, nil
}

func (m mover) claim() (effect, error) {
	a, err := argsOf[catalog.PlanClaim](m.e)
	if err != nil {
		return effect{}, err
	}
	p, err := m.own(a.PlanID)
	if err != nil {
		return effect{}, err
	}
	switch {
	case final(p.view.Status):
		return effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.view.Status))
	case a.Epoch != p.view.Epoch+1:
		return effect{}, illegal("/intent/args/epoch", "epoch must be the plan's epoch plus one: another driver has claimed it")
	}
	after := clonePlan(p)
	claim(after, a.Epoch, m.now)
	return effect{after.viewWithFacts(), m.touching(p, true)}, nil
}

// driven refuses moves of a driver that is not the plan's last.
func driven(p *plan, epoch int) error {
	switch {
	case final(p.view.Status):
		return illegal("/intent/args/plan_id", "the plan is "+string(p.view.Status))
	case p.view.Epoch == 0:
		return illegal("/intent/args/epoch", "the plan has no driver: claim it first")
	case epoch != p.view.Epoch:
		return illegal("/intent/args/epoch", "epoch is not the plan's: another driver has claimed it")
	}
	return nil
}

func (m mover) plan() (effect, error) {
	a, err := argsOf[catalog.Plan](m.e)
	if err != nil {
		return effect{}, err
	}
	p, err := m.own(a.PlanID)
	if err != nil {
		return effect{}, err
	}
	if err := driven(p, a.Epoch); err != nil {
		return effect{}, err
	}
	switch {
	case p.exhausted:
		return effect{}, illegal("/intent/args/revision", "max replan attempts reached: the plan can only be closed as failed")
	case p.view.Status != catalog.PlanPlanning && p.view.Status != catalog.PlanReplanning:
		return effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.view.Status)+", a revision is legal while planning or replanning")
	case a.Revision != p.view.Revision+1:
		return effect{}, illegal("/intent/args/revision", "revision must be the plan's revision plus one")
	}
	if err := legalSteps(a.Steps, p.lastDone()); err != nil {
		return effect{}, err
	}
	return effect{catalog.Accepted{Accepted: true}, m.touching(p, false)}, nil
}

// legalSteps: numbers run on from the last done step, at most ten in all, input
// only from earlier steps, shapes that compile.
func legalSteps(steps []catalog.PlanStep, done int) error {
	if done+len(steps) > catalog.MaxSteps {
		return illegal("/intent/args/steps", fmt.Sprintf("a plan has at most %d steps: say infeasible instead", catalog.MaxSteps))
	}
	for i, s := range steps {
		at := fmt.Sprintf("/intent/args/steps/%d", i)
		if s.Step != done+i+1 {
			return illegal(at+"/step", "step numbers run on from the last done step")
		}
		if s.InputFromStep < 0 || s.InputFromStep >= s.Step {
			return illegal(at+"/input_from_step", "input can only come from an earlier step")
		}
		if _, err := schemas.CompileShape(s.ReturnSpec.Shape); err != nil {
			return illegal(at+"/return_spec/shape", "shape: "+err.Error())
		}
	}
	return nil
}

func (m mover) step() (effect, error) {
	a, err := argsOf[catalog.Step](m.e)
	if err != nil {
		return effect{}, err
	}
	p, err := m.own(a.PlanID)
	if err != nil {
		return effect{}, err
	}
	if err := driven(p, a.Epoch); err != nil {
		return effect{}, err
	}
	key, err := m.taskKey(a)
	if err != nil {
		return effect{}, err
	}
	s := p.step(a.Step)
	task := m.e.Principal().Tenant + "/" + a.TaskID
	m.v.rely(subjectTask(m.e.Principal().Tenant, a.TaskID))
	m.v.rely(subjectTaskKey(key.KID))
	switch {
	case p.view.Status != catalog.PlanExecuting:
		return effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.view.Status)+", steps run while it is executing")
	case a.PlanDigest != p.view.PlanDigest:
		return effect{}, illegal("/intent/args/plan_digest", "not the digest of the plan's current revision")
	case s == nil || a.Step != p.lastDone()+1:
		return effect{}, illegal("/intent/args/step", "not the next step of the plan")
	case s.Status != catalog.StepPending:
		return effect{}, illegal("/intent/args/step", "the step is "+string(s.Status)+": one live task per step")
	case m.v.d.tasks[task] != nil:
		return effect{}, illegal("/intent/args/task_id", "a task with this id exists")
	case m.v.d.taskKID[key.KID] != "":
		return effect{}, illegal("/intent/args/jwk", "the key was used for another task")
	}
	return effect{
		catalog.StepResult{TaskID: a.TaskID, InputKey: p.inputKey(s.PlanStep)},
		append(m.touching(p, false), subjectTask(m.e.Principal().Tenant, a.TaskID), subjectTaskKey(key.KID)),
	}, nil
}

// taskKey admits the key that a step introduces: canonical, of prime order,
// possessed, not a key of the key set, and not for longer than a task lives.
func (m mover) taskKey(a catalog.Step) (intents.Key, error) {
	key, err := a.JWK.ToKey()
	if err != nil {
		return intents.Key{}, illegal("/intent/args/jwk", err.Error())
	}
	if _, known := m.v.d.keys[key.KID]; known {
		return intents.Key{}, illegal("/intent/args/jwk", "the key stands in the key set")
	}
	unproved := a
	unproved.PoP = ""
	if err := intents.VerifyPoP(a.PoP, key, unproved); err != nil {
		return intents.Key{}, err
	}
	deadline, err := time.Parse(time.RFC3339Nano, a.Deadline)
	if err != nil || !deadline.After(m.now) || deadline.After(m.now.Add(MaxTaskLife+intents.Leeway)) {
		return intents.Key{}, illegal("/intent/args/deadline", "deadline must lie within the next hour")
	}
	return key, nil
}

func (m mover) finish() (effect, error) {
	a, err := argsOf[catalog.StepFinish](m.e)
	if err != nil {
		return effect{}, err
	}
	tenant := m.e.Principal().Tenant
	m.v.rely(subjectTask(tenant, a.TaskID))
	t, ok := m.v.d.tasks[tenant+"/"+a.TaskID]
	if !ok || t.user != m.e.Principal().UserID {
		return effect{}, intents.Refuse(intents.TaskScope, "/intent/args/task_id", "no such task of this user")
	}
	m.v.rely(subjectPlan(tenant, t.planID))
	if t.ended != "" {
		return effect{}, intents.Refuse(intents.KeyRevoked, "/intent/args/task_id", "the task has ended")
	}
	byManager := m.e.Signer().Role == intents.RoleManager
	switch {
	case byManager && a.Status != "failed":
		return effect{}, illegal("/intent/args/status", "a manager may only say failed")
	case a.Status == "done" && !slices.Contains(t.plan.results[t.step], a.MemoryKey):
		return effect{}, illegal("/intent/args/memory_key", "done must name the result of a write_memory of this step")
	}
	return effect{catalog.Accepted{Accepted: true}, append(m.touching(t.plan, false), subjectTask(tenant, t.id))}, nil
}

func (m mover) close() (effect, error) {
	a, err := argsOf[catalog.PlanClose](m.e)
	if err != nil {
		return effect{}, err
	}
	p, err := m.own(a.PlanID)
	if err != nil {
		return effect{}, err
	}
	if err := driven(p, a.Epoch); err != nil {
		return effect{}, err
	}
	if a.Status == string(catalog.PlanComplete) {
		if p.view.Status != catalog.PlanExecuting || len(p.view.Steps) == 0 || p.lastDone() != p.view.Steps[len(p.view.Steps)-1].Step {
			return effect{}, illegal("/intent/args/status", "a plan is complete when all its steps are done")
		}
	}
	return effect{catalog.Accepted{Accepted: true}, m.touching(p, true)}, nil
}

func (m mover) cancel() (effect, error) {
	a, err := argsOf[catalog.Cancel](m.e)
	if err != nil {
		return effect{}, err
	}
	p, err := m.own(a.PlanID)
	if err != nil {
		return effect{}, err
	}
	if final(p.view.Status) {
		return effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.view.Status))
	}
	return effect{catalog.Accepted{Accepted: true}, m.touching(p, true)}, nil
}

// Task is a task as decisions see it.
type Task struct {
	ID, Plan, User, Tenant string
	Session, Turn          string
	Revision, Step         int
	Spec                   catalog.PlanStep
	InputKey               string
	Deadline               time.Time
	Ended                  string
}

// over says whether the task's key may sign nothing new any more.
func (t Task) over(now time.Time) bool { return t.Ended != "" || now.After(t.Deadline) }

// Task finds a task by "tenant/task_id".
func (v *View) Task(name string) (Task, bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	t, ok := v.d.tasks[name]
	if !ok {
		return Task{}, false
	}
	v.rely(subjectTask(t.tenant, t.id))
	return Task{
		ID: t.id, Plan: t.planID, User: t.user, Tenant: t.tenant, Session: t.session, Turn: t.turn, Revision: t.revision,
		Step: t.step, Spec: t.spec, InputKey: t.inputKey, Deadline: t.deadline, Ended: t.ended,
	}, true
}

// Plan as others are told it. What is decided after seeing it rests on it.
func (v *View) Plan(tenant, id string) (catalog.PlanView, bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectPlan(tenant, id))
	p, ok := v.d.plans[tenant+"/"+id]
	if !ok {
		return catalog.PlanView{}, false
	}
	return p.viewWithFacts(), true
}

// OrderOf finds an order of the same plan step for a member "from".
func (v *View) OrderOf(tenant, plan string, revision, step int, intentID string) (int64, bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	p, ok := v.d.plans[tenant+"/"+plan]
	if !ok {
		return 0, false
	}
	ref, ok := p.byIntent[intentID]
	return ref.position, ok && ref.revision == revision && ref.step == step
}

// repeats finds a once order of the plan that is equal in type and arguments,
// may have had its effect, and whose step did not end as done: what planned it
// may plan it again after a crash. A step that is done had what it asked
// for; another step may ask for the same anew.
func (v *View) repeats(e *intents.Envelope) (id string, indeterminate bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	tenant, plan := e.Principal().Tenant, e.Context().PlanID
	v.rely(subjectPlan(tenant, plan)) // every once order touches it
	p, ok := v.d.plans[tenant+"/"+plan]
	if !ok {
		return "", false
	}
	for _, f := range p.facts {
		if f.Effect != catalog.Once || f.Type != e.Type() || f.Status == undelivered || p.settled[f.IntentID] || string(f.Args) != string(e.Args()) {
			continue
		}
		if f.Status == string(intents.StatusIndetermined) {
			return f.IntentID, true
		}
		id = f.IntentID
	}
	return id, false
}

// keysOfPlan are the memory keys that a plan's steps have written.
func (v *View) keysOfPlan(tenant, plan string) []string {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	p, ok := v.d.plans[tenant+"/"+plan]
	if !ok {
		return nil
	}
	var out []string
	for _, keys := range p.results {
		out = append(out, keys...)
	}
	return out
}

// Silent lists open plans that nobody has driven since a position and that do
// not wait for a hold, oldest first. A plan whose hold has
// ended is silent again: it waits for a driver to be handed out.
func (d *Directory) Silent(since int64) []bus.SilentPlan {
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := []bus.SilentPlan{}
	for _, p := range d.plans {
		if final(p.view.Status) || p.held() || (!p.unheld && max(p.opened, p.claimed) >= since) {
			continue
		}
		out = append(out, bus.SilentPlan{
			Tenant: p.view.TenantID, UserID: p.view.UserID, PlanID: p.view.PlanID, SessionID: p.view.SessionID,
			TurnID: p.view.TurnID, Task: p.view.Task, Epoch: p.view.Epoch, Roles: p.roles, Client: p.client, OpenedAt: p.view.CreatedAt, TraceID: p.trace,
		})
	}
	slices.SortFunc(out, func(a, b bus.SilentPlan) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return out
}

func (p *plan) held() bool {
	return slices.ContainsFunc(p.facts, func(f *catalog.OrderFact) bool { return f.Status == "held" })
}
