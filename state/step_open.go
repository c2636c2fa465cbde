package state

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
)

// MaxTaskLife bounds a task's deadline.
const MaxTaskLife = agents.MaxSeconds * time.Second

// stepOpen opens a task for a step of a plan that waits for no other, with a key of its own.
var stepOpen = newTransition("step",
	func(v *View, o Intent, a catalog.Step) (Effect, error) {
		p, err := v.planOfEpoch(o, a.PlanID, a.Epoch)
		if err != nil {
			return Effect{}, err
		}
		unproved := a
		unproved.PoP = ""
		writes, err := v.newTask(o, a.TaskID, a.JWK, a.PoP, unproved, a.Deadline)
		if err != nil {
			return Effect{}, err
		}
		if err := p.inTime(a, o.Now); err != nil {
			return Effect{}, err
		}
		if err := v.affordable(o, p); err != nil {
			return Effect{}, err
		}
		s, live := p.step(a.Step), catalog.MaxLive
		if p.Run != nil {
			live = catalog.MaxLiveNodes
		}
		switch {
		case p.View.Status != catalog.PlanExecuting:
			return Effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status)+", steps run while it is executing")
		case a.PlanDigest != p.View.PlanDigest:
			return Effect{}, illegal("/intent/args/plan_digest", "not the digest of the plan's current revision")
		case s == nil || s.Status == catalog.StepDone || s.Status == catalog.StepSkipped:
			return Effect{}, illegal("/intent/args/step", "not the next step of the plan")
		case s.Status != catalog.StepPending:
			return Effect{}, illegal("/intent/args/step", "the step is "+string(s.Status)+": one live task per step")
		case p.Run == nil && !slices.ContainsFunc(p.View.Ready(), func(r catalog.StepView) bool { return r.Step == a.Step }):
			return Effect{}, illegal("/intent/args/step", "not the next step of the plan: one that it waits for is not done")
		case len(p.liveTasks()) >= live:
			return Effect{}, illegal("/intent/args/step", fmt.Sprintf("%d tasks of the plan live: no more run at once", live))
		}
		if p.Run != nil {
			if err := v.mayBegin(o, p, s, a.Deadline); err != nil {
				return Effect{}, err
			}
		}
		after := p.clone()
		after.begin(a, o.At)
		result := catalog.StepResult{TaskID: a.TaskID, Plan: after.answer()}
		if keys := p.inputKeys(s.PlanStep); len(keys) == 1 && p.Run == nil {
			result.InputKey = keys[0]
		}
		return Effect{result, append(p.writes(false), writes...)}, nil
	},
	func(s *State, o Intent, a catalog.Step) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		step := p.begin(a, o.At)
		if step == nil || a.PlanDigest != p.View.PlanDigest {
			return fmt.Errorf("step %d of %s", a.Step, a.PlanID)
		}
		p.decidedEdges(a.Step, o.Edges)
		t := &task{plan: p, Task: Task{
			ID: a.TaskID, Tenant: o.Tenant, User: o.User, Plan: a.PlanID,
			Session: p.View.SessionID, Turn: p.View.TurnID, Revision: step.Revision, Step: step.Step, Spec: step.PlanStep,
			Inputs: p.inputKeys(step.PlanStep),
		}}
		if name, r := p.agentAt(a.Step); r != nil {
			t.Agent, t.Types, t.Holds, t.Asks, t.APIKey = name, r.Types, r.Holds, slices.Sorted(maps.Keys(r.Asks)), r.APIKey
			t.Remote = r.Remote
		}
		s.replays(p, &t.Task)
		p.ofNode(&t.Task)
		p.Unheld = false // it has a driver
		return s.openTask(t, a.JWK, a.Deadline)
	})

// openTask adds a task to its plan.
func (s *State) openTask(t *task, jwk intents.JWK, deadline string) error {
	key, err := jwk.ToKey()
	if err != nil {
		return err
	}
	if s.tasks[t.Tenant+"/"+t.ID] != nil || s.taskKID[key.KID] != "" {
		return fmt.Errorf("a second task %s, or with its key", t.ID)
	}
	if t.Deadline, err = time.Parse(time.RFC3339Nano, deadline); err != nil {
		return err
	}
	t.KID, t.Public = key.KID, key.Public
	t.Replies = t.plan.replies(t.Task)
	t.plan.Tasks = append(t.plan.Tasks, t)
	s.addTask(t)
	return nil
}

func (s *State) addTask(t *task) {
	name := t.Tenant + "/" + t.ID
	s.tasks[name], s.taskKID[t.KID] = t, name
}

// begin applies an opened task to its step; nil if there is no such step.
func (p *plan) begin(a catalog.Step, at time.Time) *catalog.StepView {
	s := p.step(a.Step)
	if s != nil {
		s.Status, s.TaskID, s.StartedAt, s.FinishedAt = catalog.StepRunning, a.TaskID, &at, nil
	}
	return s
}

// newTask admits a task that an intent opens, with its key: canonical, of prime order,
// possessed, not a key of the key set, and not for longer than a task lives. Its id and key must
// be unique. After an erasure the proof of possession is gone, like the signature. The subjects
// are those that it writes.
func (v *View) newTask(o Intent, id string, jwk intents.JWK, pop string, unproved any, until string) ([]storage.Subject, error) {
	if err := v.timedID(o, intents.KindTask, id, "/intent/args/task_id"); err != nil {
		return nil, err
	}
	key, err := jwk.ToKey()
	if err != nil {
		return nil, illegal("/intent/args/jwk", err.Error())
	}
	if _, known := v.s.keys[key.KID]; known {
		return nil, illegal("/intent/args/jwk", "the key stands in the key set")
	}
	if err := intents.VerifyPoP(pop, key, unproved); err != nil && !o.Erased {
		return nil, err
	}
	deadline, err := time.Parse(time.RFC3339Nano, until)
	if err != nil || !deadline.After(o.Now) || deadline.After(o.Now.Add(MaxTaskLife+intents.Leeway)) {
		return nil, illegal("/intent/args/deadline", "deadline must lie within the next hour")
	}
	writes := []storage.Subject{SubjectTask(o.Tenant, id), subjectTaskKey(key.KID)}
	for _, subject := range writes {
		v.addRead(subject)
	}
	switch {
	case v.s.tasks[o.Tenant+"/"+id] != nil:
		return nil, illegal("/intent/args/task_id", "a task with this id exists")
	case v.s.taskKID[key.KID] != "":
		return nil, illegal("/intent/args/jwk", "the key was used for another task")
	}
	return writes, nil
}
