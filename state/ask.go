package state

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// asking is which agents another may ask, as they were when the plan was opened, and its
// limits for that.
type asking struct {
	Asks   map[string]*runs `json:"asks,omitempty"`
	Skills []string         `json:"skills,omitempty"`  // that an asked agent may call
	AskFor int              `json:"ask_for,omitempty"` // seconds that an asked task may take
	FanOut int              `json:"fan_out,omitempty"` // asked tasks that live at once
}

// lacks says that an agent which may be asked is not there.
func (r *runs) lacks() bool {
	return r != nil && slices.Contains(slices.Collect(maps.Values(r.Asks)), nil)
}

// askedBy are the agents of a set that one of them may ask: those that it names, or any
// local one, and not itself.
func (s *State) askedBy(tenant string, a agents.Scope, set agents.Scopes) (x asking, err error) {
	x = asking{Asks: make(map[string]*runs), AskFor: a.Limits.AskSeconds, FanOut: a.Limits.FanOut}
	for _, b := range set.Agents {
		if s.rules < intents.RulesAsks || b.Name == a.Name || !b.Runnable() || (!a.AskAny || b.Remote) && !slices.Contains(a.SubAgents, b.Name) {
			continue
		}
		asked, skills, err := s.scoped(tenant, b)
		if err != nil {
			return x, err
		}
		asked.Types = slices.DeleteFunc(slices.Clone(asked.Types), func(typ string) bool { return typ == intents.TypeAgentAsk })
		asked.Skills = skills
		x.Asks[b.Name] = asked
	}
	return x, nil
}

// others are those agents as the one that may ask them knows them.
func (x asking) others() (out []catalog.OtherAgent) {
	for _, name := range slices.Sorted(maps.Keys(x.Asks)) {
		r := x.Asks[name]
		var a *agents.Agent
		other := catalog.OtherAgent{Agent: name, File: r.File, TimeLimitSec: min(x.AskFor, r.Seconds)}
		switch {
		case r.File != "": // who reads the file says the rest
			out = append(out, other)
			continue
		case r.Text == "":
			a = agents.Builtin(name)
		default:
			a, _ = agents.Parse([]byte(r.Text)) // it was sound when it was pushed
		}
		if a != nil {
			other.DisplayName, other.Description = a.DisplayName, a.Description
			out = append(out, other)
		}
	}
	return out
}

// agentAsk opens a task of another agent for a call of the task of an agent's plan. That call is the place of the
// asked task: its orders say it (context.ask), and whatever ends the one that asked ends it too. One hop: an asked
// task asks nobody.
//
// Crash: behind the commit the task lives although nobody may have its key. Whoever asked says that it is
// unavailable, or is itself ended by the next plan.claim; then the next task asks anew under the same call.
var agentAsk = move(intents.TypeAgentAsk,
	func(v *View, o Order, a catalog.AgentAsk) (Effect, error) {
		v.rely(SubjectTask(o.Tenant, a.Parent))
		t, ok := v.s.tasks[o.Tenant+"/"+a.Parent]
		switch {
		case !ok || t.User != o.User || t.Plan != a.PlanID:
			return Effect{}, illegal("/intent/args/parent", "no such task of this user and plan")
		case a.Parent != o.Context.TaskID:
			return Effect{}, intents.Refuse(intents.TaskScope, "/intent/args/parent", "not the key's own task")
		case !slices.Contains(t.Asks, a.Agent):
			return Effect{}, ErrMayNotAsk(t.Task, a.Agent)
		case t.Over(o.Now):
			return Effect{}, intents.Refuse(intents.KeyRevoked, "/intent/args/parent", "the task has ended")
		}
		if err := v.affordable(o, t.plan); err != nil { // what changes the plan's sum touches the task, planstate or asks
			return Effect{}, err
		}
		unproved := a
		unproved.PoP = ""
		touches, err := v.newTask(o, a.TaskID, a.JWK, a.PoP, unproved, a.Deadline)
		if err != nil {
			return Effect{}, err
		}
		asks := SubjectAsks(o.Tenant, t.Plan, t.Step)
		v.rely(SubjectPlanState(o.Tenant, t.Plan))
		v.rely(asks)
		result := catalog.AgentAskResult{TaskID: a.TaskID, Skills: t.plan.Runs.Asks[a.Agent].Skills}
		return Effect{result, append(touches, asks)}, t.plan.mayAsk(t, o, a)
	},
	func(s *State, o Order, a catalog.AgentAsk) error {
		t := s.tasks[o.Tenant+"/"+a.Parent]
		if t == nil || t.plan.Runs == nil || t.plan.Runs.Asks[a.Agent] == nil {
			return fmt.Errorf("no task %s that may ask %s", a.Parent, a.Agent)
		}
		r := t.plan.Runs.Asks[a.Agent]
		child := &task{plan: t.plan, Task: t.Task}
		child.ID, child.Parent, child.Ask, child.Ended = a.TaskID, t.ID, o.Context.Call, ""
		child.Agent, child.Types, child.Holds, child.Asks, child.Spec.Task, child.Spec.Skills, child.Remote = a.Agent, r.Types, r.Holds, nil, a.Agent, r.Skills, r.Remote
		t.plan.note(o, factOpen)
		return s.openTask(child, a.JWK, a.Deadline)
	}).keepsAllBut("input", "context/locale", "context/location", "context/prior_context")

// told is an agent that was asked as its task would get it; nil: its text is for the task to
// ask for.
func (x asking) told(name string) *catalog.AgentGetResult {
	r := x.Asks[name]
	if r == nil || r.File != "" {
		return nil
	}
	return &catalog.AgentGetResult{Agent: name, Text: r.Text, TimeLimitSec: r.Seconds}
}

// ErrMayNotAsk is the refusal of an ask that the agent of a task does not allow.
func ErrMayNotAsk(t Task, agent string) error {
	return intents.Refuse(intents.TaskScope, "/intent/args/agent", catalog.Like("not one of the agents that "+t.Agent+" may ask", agent, t.Asks))
}

// mayAsk judges an ask beside the others of its step.
func (p *plan) mayAsk(t *task, o Order, a catalog.AgentAsk) error {
	live, calls := 0, make(map[string]bool)
	for _, c := range p.Tasks {
		if c.Ask == "" || c.Step != t.Step || c.Revision != t.Revision {
			continue
		}
		calls[c.Ask] = true
		if !c.Over(o.Now) {
			live++
		}
	}
	deadline, err := time.Parse(time.RFC3339Nano, a.Deadline)
	limit := min(p.Runs.AskFor, p.Runs.Asks[a.Agent].Seconds)
	switch last := p.asked(t.Task, o.Context.Call); {
	case a.Epoch != p.View.Epoch:
		return illegal("/intent/args/epoch", "epoch is not the plan's: another driver has claimed it")
	case o.Context.Call == "":
		return illegal("/context/call", "an ask says which call it is")
	case last != nil && (last.Ended == "" || last.Said != "" && last.Said != "held"): // else it was ended before it could answer, or waits for people
		return illegal("/context/call", "an agent was asked by this call: it lives, or has ended")
	case err != nil || deadline.After(t.Deadline):
		return illegal("/intent/args/deadline", "the task that asks ends before")
	case deadline.After(o.Now.Add(time.Duration(limit)*time.Second + intents.Leeway)):
		return illegal("/intent/args/deadline", fmt.Sprintf("an asked agent may take %d s here", limit))
	case live >= p.Runs.FanOut:
		return illegal("/intent/args/agent", fmt.Sprintf("%d asked agents live: no more at once", live))
	case last == nil && len(calls) >= p.Runs.Requests:
		return illegal("/intent/args/agent", fmt.Sprintf("the step has asked %d times: no more", len(calls)))
	}
	return nil
}

// asked is the last task that a call of a step has asked for; nil: none.
func (p *plan) asked(at Task, call string) *task {
	for _, c := range slices.Backward(p.Tasks) {
		if c.Ask == call && call != "" && c.Step == at.Step && c.Revision == at.Revision {
			return c
		}
	}
	return nil
}

// endTask ends a task, and those that it has asked for. said and reported are its own, if it
// has ended itself; an asked task that something else ends after its deadline has no answer.
func (s *State) endTask(t *task, why, said string, reported []catalog.Usage, at time.Time) {
	if t.Ended != "" {
		return
	}
	t.Ended = why
	if t.Ask != "" {
		t.Said = said
		if said == "" && at.After(t.Deadline) {
			t.Said = catalog.AskUnavailable
		}
	}
	s.spendOf(t, reported, at)
	for _, c := range t.plan.Tasks {
		if c.Parent == t.ID {
			s.endTask(c, "the task that asked has ended", "", nil, at)
		}
	}
}

// touchesTask are what the end of a task changes beside its plan.
func (p *plan) touchesTask(t *task) []storage.Subject {
	out := []storage.Subject{SubjectTask(t.Tenant, t.ID), SubjectAsks(t.Tenant, t.Plan, t.Step)}
	for _, c := range p.liveTasks() {
		if c.Parent == t.ID {
			out = append(out, SubjectTask(c.Tenant, c.ID))
		}
	}
	return out
}

// told is a call as it is told at a time. Of an ask the status is that of the last task that it asked for, and
// finished the position of that one's step.finish, or 0.
func (p *plan) told(c *called, now time.Time) (out catalog.ToldCall, finished int64) {
	out = c.ToldCall
	t := p.asked(Task{Step: c.Step, Revision: c.Revision}, c.Call)
	if c.Type != intents.TypeAgentAsk || t == nil || c.Status != factOpen && c.Status != string(intents.Done) {
		return out, 0 // an ask that is held, or came to nothing
	}
	switch {
	case t.Said != "":
		out.Status = t.Said
	case t.Ended != "":
		out.Status = catalog.AskInterrupted
	case t.Over(now):
		out.Status = catalog.AskUnavailable
	default:
		out.Status = factOpen
	}
	return out, t.Finished
}
