package state

import (
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// fact is an order that acts once or was held. Its place is a step of one revision and,
// where another agent was asked for it, that ask; equal orders of a place are told apart
// by their occurrence.
type fact struct {
	catalog.OrderFact
	Ask        string `json:"ask,omitempty"`
	Occurrence int    `json:"occurrence,omitempty"`
	HeldBy     string `json:"held_by,omitempty"` // the task whose order was held
	Task       string `json:"task,omitempty"`    // "tenant/task_id", as its context says
	Skill      string `json:"skill,omitempty"`   // whose pin its decision saw
	Erased     bool   `json:"erased,omitempty"`  // nobody knows any more what it is equal to
	Digest     string `json:"digest,omitempty"`  // of the arguments of a closed plan's, which keeps no others
}

func (f *fact) at(c intents.Context) bool {
	return f.Step == c.Step && f.Revision == c.Revision && f.Ask == c.Ask
}

func (f *fact) equals(typ string, args json.RawMessage) bool {
	if f.Effect != catalog.Once || f.Type != typ {
		return false
	}
	if f.Digest != "" {
		return f.Digest == intents.Digest(args)
	}
	return string(f.Args) == string(args)
}

// dropArgs leaves of the arguments what tells whether others are equal to them.
func (f *fact) dropArgs() {
	if !f.Erased && f.Digest == "" {
		f.Args, f.Digest = json.RawMessage(`{}`), intents.Digest(f.Args)
	}
}

// Again refuses an order of a plan that may act only once where an equal one of its place,
// or of a step that a revision has replaced, may have had its effect. Whoever means the
// same once more in one place says so: occurrence n is legal where n equal orders are
// there, and nobody has to guess how one of them ended. Orders of other steps that stand
// are no repetitions. once: the order itself acts once; if not, its skill may have, before
// it was approved anew.
func (v *View) Again(tenant string, by intents.Role, typ string, args json.RawMessage, c intents.Context, once bool) error {
	if v.Rules() < intents.RulesAgents {
		return v.againInPlan(tenant, by, typ, args, c)
	}
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p, ok := v.s.plans[tenant+"/"+c.PlanID]
	if ok && p.ofClient() {
		return v.numbered(p, c)
	}
	v.rely(SubjectEffects(tenant, c.PlanID, c.Step))
	if !ok {
		return nil
	}
	if s := p.step(c.Step); p.Run != nil && by == intents.RoleTask && s != nil && s.Type != catalog.NodeAgent {
		return p.nodeAgain(s, c)
	}
	before, unknown := make(map[int]bool), false // occurrences
	for _, f := range p.Facts {
		unknown = unknown || f.Erased && f.at(c)
		if !f.equals(typ, args) {
			continue
		}
		if at := p.step(f.Step); f.Step > 0 && (at == nil || at.Revision != f.Revision) && f.Status != undelivered {
			return repeated(f.IntentID)
		}
		if !f.at(c) {
			continue
		}
		unsure := f.Status == string(intents.StatusIndetermined)
		if unsure || f.Occurrence == c.Occurrence && f.Status != undelivered {
			return repeated(f.IntentID)
		}
		if f.Occurrence < c.Occurrence {
			before[f.Occurrence] = true
		}
	}
	if once && len(before) != c.Occurrence && !unknown {
		return intents.Refuse(intents.ConflictIdempotency, "/context/occurrence", fmt.Sprintf("%d equal orders of the step come before it, not %d", len(before), c.Occurrence))
	}
	return nil
}

// againInPlan is what Again was under earlier rules: an equal order of any step repeats
// another, unless an occurrence says that it is meant.
func (v *View) againInPlan(tenant string, by intents.Role, typ string, args json.RawMessage, c intents.Context) error {
	id, open := v.Repeats(tenant, c.PlanID, c.Step, by, typ, args)
	if id == "" || !open && c.Occurrence != 0 {
		return nil
	}
	return repeated(id)
}

func repeated(intentID string) error {
	return intents.Refuse(intents.ConflictIdempotency, "/intent/args", "an equal order with an effect was committed before: "+intentID)
}
