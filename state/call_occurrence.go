package state

import (
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// pastIntent is an intent that acts once or was held. Its place is a step of one revision and,
// if another agent was asked for it, that ask; equal intents at a place are distinguished by
// their occurrence.
type pastIntent struct {
	catalog.PastIntent
	Ask        string `json:"ask,omitempty"`
	Occurrence int    `json:"occurrence,omitempty"`
	HeldBy     string `json:"held_by,omitempty"` // the task whose intent was held
	Task       string `json:"task,omitempty"`    // "tenant/task_id", from its context
	Skill      string `json:"skill,omitempty"`   // whose pin its decision read
	Erased     bool   `json:"erased,omitempty"`  // what it equals is no longer known
	Digest     string `json:"digest,omitempty"`  // of the arguments of a closed plan's intent, which retains no others
	User       string `json:"user,omitempty"`    // whose it is, if not the plan's
	Held       bool   `json:"held,omitempty"`    // people were asked about it: it cannot be erased
}

// erase removes what an erased intent no longer has.
func (f *pastIntent) erase() { f.Args, f.Digest, f.Erased = json.RawMessage(`{}`), "", true }

func (f *pastIntent) at(c intents.Context) bool {
	return f.Step == c.Step && f.Revision == c.Revision && f.Ask == c.Ask
}

func (f *pastIntent) equals(typ string, args json.RawMessage) bool {
	if f.Effect != catalog.Once || f.Type != typ {
		return false
	}
	if f.Digest != "" {
		return f.Digest == intents.Digest(args)
	}
	return string(f.Args) == string(args)
}

// dropArgs reduces the arguments to what is needed to compare others with them.
func (f *pastIntent) dropArgs() {
	if !f.Erased && f.Digest == "" {
		f.Args, f.Digest = json.RawMessage(`{}`), intents.Digest(f.Args)
	}
}

// CheckRepeat refuses an intent of a plan that may act only once if an equal intent at its
// place, or of a step that a revision has replaced, may have had its effect. To repeat it
// deliberately at one place, the signer gives an occurrence: occurrence n is legal if there are
// n equal intents, so nobody has to guess how one of them ended. Intents of other steps that are
// still in the plan are no repetitions. once: the intent itself acts once; otherwise its skill
// may have, before it was approved again.
func (v *View) CheckRepeat(tenant string, by intents.Role, typ string, args json.RawMessage, c intents.Context, once bool) error {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p, ok := v.s.plans[tenant+"/"+c.PlanID]
	if ok && p.ofClient() {
		return v.numbered(p, c)
	}
	v.addRead(SubjectEffects(tenant, c.PlanID, c.Step))
	if !ok {
		return nil
	}
	if s := p.step(c.Step); p.Run != nil && by == intents.RoleTask && s != nil && s.Type != catalog.NodeAgent {
		return p.checkNodeRepeat(s, c)
	}
	before, unknown := make(map[int]bool), false // occurrences
	for _, f := range p.IntentHistory {
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
		return intents.Refuse(intents.ConflictIdempotency, "/context/occurrence", fmt.Sprintf("%d equal intents of the step come before it, not %d", len(before), c.Occurrence))
	}
	return nil
}

func repeated(intentID string) error {
	return intents.Refuse(intents.ConflictIdempotency, "/intent/args", "an equal intent with an effect was committed before: "+intentID)
}
