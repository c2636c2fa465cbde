package state

import (
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// MaxTaskLife bounds a task's deadline.
const MaxTaskLife = time.Hour

// stepOpen opens a task for a step of a plan that waits for no other, with a key of its
// own.
var stepOpen = move("step",
	func(v *View, o Order, a catalog.Step) (Effect, error) {
		p, err := v.drivenPlan(o, a.PlanID, a.Epoch)
		if err != nil {
			return Effect{}, err
		}
		if err := v.timedID(o, intents.KindTask, a.TaskID, "/intent/args/task_id"); err != nil {
			return Effect{}, err
		}
		key, err := v.taskKey(o, a)
		if err != nil {
			return Effect{}, err
		}
		if err := p.inTime(a, o.Now); err != nil {
			return Effect{}, err
		}
		if err := v.affordable(o, p); err != nil {
			return Effect{}, err
		}
		s := p.step(a.Step)
		v.rely(SubjectTask(o.Tenant, a.TaskID))
		v.rely(subjectTaskKey(key.KID))
		switch {
		case p.View.Status != catalog.PlanExecuting:
			return Effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status)+", steps run while it is executing")
		case a.PlanDigest != p.View.PlanDigest:
			return Effect{}, illegal("/intent/args/plan_digest", "not the digest of the plan's current revision")
		case s == nil || s.Status == catalog.StepDone:
			return Effect{}, illegal("/intent/args/step", "not the next step of the plan")
		case s.Status != catalog.StepPending:
			return Effect{}, illegal("/intent/args/step", "the step is "+string(s.Status)+": one live task per step")
		case !slices.ContainsFunc(p.View.Ready(), func(r catalog.StepView) bool { return r.Step == a.Step }):
			return Effect{}, illegal("/intent/args/step", "not the next step of the plan: one that it waits for is not done")
		case len(p.liveTasks()) >= catalog.MaxLive:
			return Effect{}, illegal("/intent/args/step", fmt.Sprintf("%d tasks of the plan live: no more run at once", catalog.MaxLive))
		case v.s.tasks[o.Tenant+"/"+a.TaskID] != nil:
			return Effect{}, illegal("/intent/args/task_id", "a task with this id exists")
		case v.s.taskKID[key.KID] != "":
			return Effect{}, illegal("/intent/args/jwk", "the key was used for another task")
		}
		after := p.clone()
		after.begin(a, o.At)
		result := catalog.StepResult{TaskID: a.TaskID, Plan: after.answer()}
		if keys := p.inputKeys(s.PlanStep); len(keys) == 1 {
			result.InputKey = keys[0]
		}
		return Effect{
			result,
			append(p.touches(false), SubjectTask(o.Tenant, a.TaskID), subjectTaskKey(key.KID)),
		}, nil
	},
	func(s *State, o Order, a catalog.Step) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		step := p.begin(a, o.At)
		key, err := a.JWK.ToKey()
		switch {
		case step == nil || err != nil || a.PlanDigest != p.View.PlanDigest:
			return fmt.Errorf("step %d of %s: %v", a.Step, a.PlanID, err)
		case s.tasks[o.Tenant+"/"+a.TaskID] != nil || s.taskKID[key.KID] != "":
			return fmt.Errorf("a second task %s, or with its key", a.TaskID)
		}
		deadline, err := time.Parse(time.RFC3339Nano, a.Deadline)
		if err != nil {
			return err
		}
		t := &task{KID: key.KID, Public: key.Public, plan: p, Task: Task{
			ID: a.TaskID, Tenant: o.Tenant, User: o.User, Plan: a.PlanID,
			Session: p.View.SessionID, Turn: p.View.TurnID, Revision: step.Revision, Step: step.Step, Spec: step.PlanStep,
			Inputs: p.inputKeys(step.PlanStep), Deadline: deadline,
		}}
		if r := p.Runs; r != nil {
			t.Agent, t.Types = p.View.Agent, r.Types
		}
		t.Replies = p.replies(t.Task)
		p.Tasks = append(p.Tasks, t)
		p.Unheld = p.Unheld && s.rules < intents.RulesAgents // it is driven
		s.addTask(t)
		return nil
	})

func (s *State) addTask(t *task) {
	name := t.Tenant + "/" + t.ID
	s.tasks[name], s.taskKID[t.KID] = t, name
}

// begin is the effect of an opened task on its step; nil: there is no such step.
func (p *plan) begin(a catalog.Step, at time.Time) *catalog.StepView {
	s := p.step(a.Step)
	if s != nil {
		s.Status, s.TaskID, s.StartedAt, s.FinishedAt = catalog.StepRunning, a.TaskID, &at, nil
	}
	return s
}

// taskKey admits the key that a step introduces: canonical, of prime order,
// possessed, not a key of the key set, and not for longer than a task lives.
func (v *View) taskKey(o Order, a catalog.Step) (intents.Key, error) {
	key, err := a.JWK.ToKey()
	if err != nil {
		return intents.Key{}, illegal("/intent/args/jwk", err.Error())
	}
	if _, known := v.s.keys[key.KID]; known {
		return intents.Key{}, illegal("/intent/args/jwk", "the key stands in the key set")
	}
	unproved := a
	unproved.PoP = ""
	if err := intents.VerifyPoP(a.PoP, key, unproved); err != nil {
		return intents.Key{}, err
	}
	deadline, err := time.Parse(time.RFC3339Nano, a.Deadline)
	if err != nil || !deadline.After(o.Now) || deadline.After(o.Now.Add(MaxTaskLife+intents.Leeway)) {
		return intents.Key{}, illegal("/intent/args/deadline", "deadline must lie within the next hour")
	}
	return key, nil
}
