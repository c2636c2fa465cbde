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

// asking lists the agents that another agent may ask, as they were when the plan was opened, and
// the limits on asking.
type asking struct {
	Asks   map[string]*runs `json:"asks,omitempty"`
	Skills []string         `json:"skills,omitempty"`  // that an asked agent may call
	AskFor int              `json:"ask_for,omitempty"` // seconds that an asked task may take
	FanOut int              `json:"fan_out,omitempty"` // asked tasks that may be live at once
}

// lacks reports whether an agent that may be asked is missing.
func (r *runs) lacks() bool {
	return r != nil && slices.Contains(slices.Collect(maps.Values(r.Asks)), nil)
}

// askable returns the agents of a set that one of them may ask: those it names, or any local
// agent, but never itself.
func (s *State) askable(tenant string, a agents.Scope, set agents.Scopes) (x asking, err error) {
	x = asking{Asks: make(map[string]*runs), AskFor: a.Limits.AskSeconds, FanOut: a.Limits.FanOut}
	for _, b := range set.Agents {
		if b.Name == a.Name || !b.Runnable() || (!a.AskAny || b.Remote) && !slices.Contains(a.SubAgents, b.Name) {
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

// others describes those agents for the agent that may ask them.
func (x asking) others() (out []catalog.OtherAgent) {
	for _, name := range slices.Sorted(maps.Keys(x.Asks)) {
		r := x.Asks[name]
		var a *agents.Agent
		other := catalog.OtherAgent{Agent: name, File: r.File, TimeLimitSec: min(x.AskFor, r.Seconds)}
		switch {
		case r.File != "": // the reader of the file adds the rest
			out = append(out, other)
			continue
		case r.Text == "":
			a = agents.Builtin(name)
		default:
			a, _ = agents.Parse([]byte(r.Text)) // validated when it was pushed
		}
		if a != nil {
			other.DisplayName, other.Description = a.DisplayName, a.Description
			out = append(out, other)
		}
	}
	return out
}

// agentAsk opens a task of another agent for a call of the task of an agent's plan. The call
// identifies the asked task: its intents name it (context.ask), and whatever ends the asking
// task ends the asked one too. There is one hop: an asked task asks nobody.
//
// Crash: after the commit the task lives although nobody may have its key. The asking task
// reports that it is unavailable, or is itself ended by the next plan.claim; the next task then
// asks again under the same call.
var agentAsk = newTransition(intents.TypeAgentAsk,
	func(v *View, o Intent, a catalog.AgentAsk) (Effect, error) {
		v.addRead(SubjectTask(o.Tenant, a.Parent))
		t, ok := v.s.tasks[o.Tenant+"/"+a.Parent]
		switch {
		case !ok || t.User != o.User || t.Plan != a.PlanID:
			return Effect{}, illegal("/intent/args/parent", "no such task of this user and plan")
		case a.Parent != o.Context.TaskID:
			return Effect{}, intents.Refuse(intents.TaskScope, "/intent/args/parent", "not the key's own task")
		case !slices.Contains(t.Asks, a.Agent):
			return Effect{}, ErrMayNotAsk(t.Task, a.Agent)
		case t.Closed(o.Now):
			return Effect{}, intents.Refuse(intents.KeyRevoked, "/intent/args/parent", "the task has ended")
		}
		if err := v.affordable(o, t.plan); err != nil { // whatever changes the plan's sum writes the task, planstate or asks
			return Effect{}, err
		}
		unproved := a
		unproved.PoP = ""
		writes, err := v.newTask(o, a.TaskID, a.JWK, a.PoP, unproved, a.Deadline)
		if err != nil {
			return Effect{}, err
		}
		asks := SubjectAsks(o.Tenant, t.Plan, t.Step)
		v.addRead(SubjectPlanState(o.Tenant, t.Plan))
		v.addRead(asks)
		result := catalog.AgentAskResult{TaskID: a.TaskID, Skills: t.plan.Runs.Asks[a.Agent].Skills}
		return Effect{result, append(writes, asks)}, t.plan.mayAsk(t, o, a)
	},
	func(s *State, o Intent, a catalog.AgentAsk) error {
		t := s.tasks[o.Tenant+"/"+a.Parent]
		if t == nil || t.plan.Runs == nil || t.plan.Runs.Asks[a.Agent] == nil {
			return fmt.Errorf("no task %s that may ask %s", a.Parent, a.Agent)
		}
		r := t.plan.Runs.Asks[a.Agent]
		child := &task{plan: t.plan, Task: t.Task}
		child.ID, child.Parent, child.Ask, child.AskTool, child.Ended = a.TaskID, t.ID, o.Context.Call, o.Context.Tool, ""
		child.Agent, child.Types, child.Holds, child.Asks, child.Spec.Task, child.Spec.Skills, child.Remote = a.Agent, r.Types, r.Holds, nil, a.Agent, r.Skills, r.Remote
		t.plan.note(o, statusOpen)
		return s.openTask(child, a.JWK, a.Deadline)
	}).retainsAllBut("input", "context/locale", "context/location", "context/prior_context")

// definition is an asked agent as its task receives it; nil if the task has to fetch the text
// itself.
func (x asking) definition(name string) *catalog.AgentGetResult {
	r := x.Asks[name]
	if r == nil || r.File != "" {
		return nil
	}
	return &catalog.AgentGetResult{Agent: name, Text: r.Text, TimeLimitSec: r.Seconds}
}

// ErrMayNotAsk refuses an ask that the task's agent does not allow.
func ErrMayNotAsk(t Task, agent string) error {
	return intents.Refuse(intents.TaskScope, "/intent/args/agent", catalog.Like("not one of the agents that "+t.Agent+" may ask", agent, t.Asks))
}

// mayAsk judges an ask together with the other asks of its step.
func (p *plan) mayAsk(t *task, o Intent, a catalog.AgentAsk) error {
	live, calls := 0, make(map[string]bool)
	for _, c := range p.Tasks {
		if c.Ask == "" || c.Step != t.Step || c.Revision != t.Revision {
			continue
		}
		calls[c.Ask] = true
		if !c.Closed(o.Now) {
			live++
		}
	}
	deadline, err := time.Parse(time.RFC3339Nano, a.Deadline)
	limit := min(p.Runs.AskFor, p.Runs.Asks[a.Agent].Seconds)
	switch last := p.lastAsk(t.Task, o.Context.Call); {
	case a.Epoch != p.View.Epoch:
		return illegal("/intent/args/epoch", "epoch is not the plan's: another driver has claimed it")
	case o.Context.Call == "":
		return illegal("/context/call", "an ask says which call it is")
	case last != nil && (last.Ended == "" || last.AskStatus != "" && last.AskStatus != "held"): // otherwise it ended before it could answer, or waits for approval
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

// lastAsk is the last task that a call of a step asked for; nil if there is none.
func (p *plan) lastAsk(at Task, call string) *task {
	for _, c := range slices.Backward(p.Tasks) {
		if c.Ask == call && call != "" && c.Step == at.Step && c.Revision == at.Revision {
			return c
		}
	}
	return nil
}

// endTask ends a task and those that it asked for. said and reported are the task's own if it
// ended itself; an asked task that something else ends after its deadline has no answer.
func (s *State) endTask(t *task, why, said string, reported []catalog.Usage, at time.Time) {
	if t.Ended != "" {
		return
	}
	t.Ended = why
	if t.Ask != "" {
		t.AskStatus = said
		if said == "" && at.After(t.Deadline) {
			t.AskStatus = catalog.AskUnavailable
		}
	}
	s.spendOf(t, reported, at)
	for _, c := range t.plan.Tasks {
		if c.Parent == t.ID {
			s.endTask(c, "the task that asked has ended", "", nil, at)
		}
	}
}

// writesOfTask lists what the end of a task changes apart from its plan.
func (p *plan) writesOfTask(t *task) []storage.Subject {
	out := []storage.Subject{SubjectTask(t.Tenant, t.ID), SubjectAsks(t.Tenant, t.Plan, t.Step)}
	for _, c := range p.liveTasks() {
		if c.Parent == t.ID {
			out = append(out, SubjectTask(c.Tenant, c.ID))
		}
	}
	return out
}

// callSummary summarizes a call at a given time. For an ask, the status is that of the last task
// that it asked for, and finished is the position of that task's step.finish, or 0.
func (p *plan) callSummary(c *agentCall, now time.Time) (out catalog.CallSummary, finished int64) {
	out = c.CallSummary
	t := p.lastAsk(Task{Step: c.Step, Revision: c.Revision}, c.Call)
	if c.Type != intents.TypeAgentAsk || t == nil || c.Status != statusOpen && c.Status != string(intents.Done) {
		return out, 0 // an ask that is pending approval or had no effect
	}
	switch {
	case t.AskStatus != "":
		out.Status = t.AskStatus
	case t.Ended != "":
		out.Status = catalog.AskInterrupted
	case t.Closed(now):
		out.Status = catalog.AskUnavailable
	default:
		out.Status = statusOpen
	}
	return out, t.Finished
}
