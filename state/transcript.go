package state

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// called is an order that a call of an agent made, as later tasks of its place are told.
type called struct {
	catalog.ToldCall
	Revision int    `json:"revision"`
	Ask      string `json:"ask,omitempty"`
	Position int64  `json:"position"`
}

// addCall remembers an order of an agent for later tasks of its place.
func (p *plan) addCall(x *openOrder, o Order) {
	if o.Context.Call == "" || final(p.View.Status) {
		return
	}
	status := factOpen
	if o.Decision.Verdict == intents.Hold {
		status = factHeld
	}
	x.Call = p.note(o, status)
}

// note remembers the order of a call and gives its place, from 1. An ask that takes the
// place of another is the same call.
func (p *plan) note(o Order, status string) int {
	c := o.Context
	call := &called{Position: o.Recorded, Revision: c.Revision, Ask: c.Ask, ToldCall: catalog.ToldCall{
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

// callEnded notes how an order ended. Closed plans have no calls any more.
func (p *plan) callEnded(x *openOrder, status intents.Status) {
	if 0 < x.Call && x.Call <= len(p.Calls) {
		p.Calls[x.Call-1].Status = string(status)
	}
}

// maxTold bounds the calls of a step that a task is told: the latest.
const maxTold = 500

// Told is what is told of an open plan beside the answer of a move, and not recorded: the
// calls of its steps that are not done, or of one step, in order, and the orders with
// effects, with their arguments. ask: of those that an ask of the step was for.
func (s *State) Told(tenant, id string, step int, ask string) catalog.Told {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.plans[tenant+"/"+id]
	if p == nil || final(p.View.Status) {
		return catalog.Told{}
	}
	out := catalog.Told{Facts: p.shown().Facts}
	if p.Run != nil {
		out.Next = p.next()
		if s := p.step(step); s != nil && s.Status == catalog.StepRunning {
			if out.Kept = p.keeps(s); out.Kept == nil {
				out.Order, _ = p.order(s) // step has judged that there is one
				out.DryRun = p.taskOf(s).DryRun
			}
		}
	}
	for _, t := range p.Tasks {
		if ask != "" && t.Ask == ask && t.Step == step && p.Runs != nil {
			out.Agent = p.Runs.told(t.Agent)
		}
		if s := p.step(t.Step); step == t.Step && t.Ask == ask && s != nil && s.Revision == t.Revision {
			out.Tokens += t.Used
		}
	}
	for _, at := range p.View.Steps {
		if at.Status == catalog.StepDone || step != 0 && at.Step != step {
			continue
		}
		var calls []catalog.ToldCall
		for _, c := range p.Calls {
			if c.Step == at.Step && c.Revision == at.Revision && c.Ask == ask {
				told, _ := p.told(c, s.last)
				calls = append(calls, told)
			}
		}
		out.Calls = append(out.Calls, calls[max(0, len(calls)-maxTold):]...)
	}
	return out
}

// CallOf finds an order that a call of a place made. finished is the position of the step.finish that answers an ask,
// or 0.
func (v *View) CallOf(tenant string, place intents.Context, intentID string, now time.Time) (c catalog.ToldCall, position, finished int64, ok bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p := v.s.plans[tenant+"/"+place.PlanID]
	if p == nil {
		return c, 0, 0, false
	}
	for _, x := range p.Calls {
		if x.IntentID == intentID && x.Step == place.Step && x.Revision == place.Revision && x.Ask == place.Ask {
			c, finished = p.told(x, now)
			return c, x.Position, finished, true
		}
	}
	return c, 0, 0, false
}
