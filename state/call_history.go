package state

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// agentCall is an intent that a call of an agent made, as it is reported to later tasks at its
// place.
type agentCall struct {
	catalog.CallSummary
	Revision int    `json:"revision"`
	Ask      string `json:"ask,omitempty"`
	Position int64  `json:"position"`
}

// addCall records an intent of an agent for later tasks at its place.
func (p *plan) addCall(x *openIntent, o Intent) {
	if o.Context.Call == "" || p.View.Status.Ended() {
		return
	}
	status := statusOpen
	if o.Decision.Verdict == intents.Hold {
		status = statusHeld
	}
	x.Call = p.note(o, status)
}

// note records the intent of a call and returns its index, from 1. An ask that replaces another
// is the same call.
func (p *plan) note(o Intent, status string) int {
	c := o.Context
	call := &agentCall{Position: o.Recorded, Revision: c.Revision, Ask: c.Ask, CallSummary: catalog.CallSummary{
		Step: c.Step, IntentID: o.Decision.IntentID, Occurrence: c.Occurrence, Call: c.Call, Type: o.Type, Status: status,
	}}
	for i, x := range p.Calls {
		if o.Type == intents.TypeAgentAsk && x.Type == o.Type && x.Call == c.Call && x.Step == c.Step && x.Revision == c.Revision {
			p.Calls[i] = call
			return i + 1
		}
	}
	p.Calls = append(p.Calls, call)
	return len(p.Calls)
}

// callEnded records how an intent ended. Closed plans have no calls.
func (p *plan) callEnded(x *openIntent, status intents.Status) {
	if 0 < x.Call && x.Call <= len(p.Calls) {
		p.Calls[x.Call-1].Status = string(status)
	}
}

// maxCallSummaries bounds the calls of a step that are reported to a task: the latest ones.
const maxCallSummaries = 500

// PlanDetails returns what a reader of an open plan gets beyond a transition's result, and what
// is not recorded: the calls of its unfinished steps, or of one step, in order, and the intents
// with effects, with their arguments. ask limits it to those that an ask of the step was for.
func (s *State) PlanDetails(tenant, id string, step int, ask string) catalog.PlanDetails {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.plans[tenant+"/"+id]
	if p == nil || p.View.Status.Ended() {
		return catalog.PlanDetails{}
	}
	out := catalog.PlanDetails{IntentHistory: p.shown().IntentHistory}
	if p.Run != nil {
		out.Next = p.next()
		if s := p.step(step); s != nil && s.Status == catalog.StepRunning {
			if out.Kept = p.retainedNode(s); out.Kept == nil {
				out.Intent, _ = p.intent(s) // step has checked that there is one
				out.DryRun = p.taskOf(s).DryRun
			}
		}
	}
	for _, t := range p.Tasks {
		if ask != "" && t.Ask == ask && t.Step == step && p.Runs != nil {
			out.Agent = p.Runs.definition(t.Agent)
		}
		if s := p.step(t.Step); step == t.Step && t.Ask == ask && s != nil && s.Revision == t.Revision {
			out.Tokens += t.Used
		}
	}
	for _, at := range p.View.Steps {
		if at.Status == catalog.StepDone || step != 0 && at.Step != step {
			continue
		}
		var calls []catalog.CallSummary
		for _, c := range p.Calls {
			if c.Step == at.Step && c.Revision == at.Revision && c.Ask == ask {
				told, _ := p.callSummary(c, s.last)
				calls = append(calls, told)
			}
		}
		out.Calls = append(out.Calls, calls[max(0, len(calls)-maxCallSummaries):]...)
	}
	return out
}

// CallOf finds an intent that a call at a place made. finished is the position of the
// step.finish that answers an ask, or 0.
func (v *View) CallOf(tenant string, place intents.Context, intentID string, now time.Time) (c catalog.CallSummary, position, finished int64, ok bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p := v.s.plans[tenant+"/"+place.PlanID]
	if p == nil {
		return c, 0, 0, false
	}
	for _, x := range p.Calls {
		if x.IntentID == intentID && x.Step == place.Step && x.Revision == place.Revision && x.Ask == place.Ask {
			c, finished = p.callSummary(x, now)
			return c, x.Position, finished, true
		}
	}
	return c, 0, 0, false
}
