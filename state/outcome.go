package state

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// typeWriteMemory is the type whose outcome makes a result of a step, or ends it.
const typeWriteMemory = "write_memory"

// openIntent is an intent that waits for its outcome, or whose outcome is indeterminate. Its
// plan stays in the state until the intent has ended.
type openIntent struct {
	ID           string `json:"id"` // intent_id
	Position     int64  `json:"position"`
	Tenant       string `json:"tenant"`
	User         string `json:"user"`
	Plan         string `json:"plan"` // "tenant/plan_id"; empty: no plan
	Step         int    `json:"step"`
	Revision     int    `json:"rev"`
	Task         string `json:"task"` // "tenant/task_id"
	Type         string `json:"type"`
	HistoryIndex int    `json:"fact"`             // index in the plan's history; notInHistory: later drivers do not see the intent
	Call         int    `json:"call,omitempty"`   // its index in the plan's calls, from 1; 0: none
	Number       int    `json:"number,omitempty"` // number of a client's call
	Lost         int    `json:"lost"`             // unclean ends of routers while it was open

	Closes string `json:"closes,omitempty"` // the session that it closes; "tenant/user/session"
}

const notInHistory = -1

// Statuses of an intent in the plan's history in addition to those of outcomes.
const (
	statusOpen = "open"
	statusHeld = "held"
	// undelivered is a failed intent that certainly had no effect: no executor received it, or
	// its executor reported it as retryable. Drivers see it as failed.
	undelivered = "undelivered"
)

// dispatched records an intent that an executor carries out, until its outcome.
func (s *State) dispatched(o Intent) {
	x, p := s.openIntent(o)
	if p != nil && o.Decision.Effect == string(catalog.Once) {
		p.addToHistory(x, o, statusOpen)
	}
}

// held records an intent pending approval.
func (s *State) held(o Intent) error {
	if err := s.addHold(o); err != nil {
		return err
	}
	x, p := s.openIntent(o)
	if p != nil {
		p.addToHistory(x, o, statusHeld)
	}
	return nil
}

// openIntent records an intent until its outcome. p is its plan; nil if it has none.
func (s *State) openIntent(o Intent) (x *openIntent, p *plan) {
	x = &openIntent{ID: o.Decision.IntentID, Position: o.Position, Tenant: o.Tenant, User: o.User, Type: o.Type, HistoryIndex: notInHistory}
	if o.Type == typeSessionClose {
		x.Closes = o.Tenant + "/" + o.User + "/" + o.Context.SessionID
	}
	s.intents[o.Position] = x
	name, c := o.Tenant+"/"+o.Context.PlanID, o.Context
	if p = s.plans[name]; p == nil {
		return x, nil
	}
	x.Plan, x.Step, x.Revision, x.Task = name, c.Step, c.Revision, o.Tenant+"/"+c.TaskID
	p.pending++
	p.ByIntent[x.ID] = intentRef{o.Position, c.Revision, c.Step, c.Ask}
	p.keepNodeIntent(o)
	p.addCall(x, o)
	p.addNumber(x, o)
	return x, p
}

func (p *plan) addToHistory(x *openIntent, o Intent, status string) {
	f := &pastIntent{Ask: o.Context.Ask, Occurrence: o.Context.Occurrence, Task: x.Task, Skill: o.Skill, Erased: o.Erased, PastIntent: catalog.PastIntent{
		Step: x.Step, Revision: x.Revision, IntentID: x.ID, Type: o.Type,
		Effect: catalog.Effect(o.Decision.Effect), Args: o.shownArgs(), Status: status,
	}}
	if f.Held = status == statusHeld; f.Held && o.Signer == intents.RoleTask {
		f.HeldBy = o.Context.TaskID
	}
	if o.User != p.View.UserID {
		f.User = o.User
	}
	if p.View.Status.Ended() {
		f.dropArgs()
	}
	x.HistoryIndex = len(p.IntentHistory)
	p.IntentHistory = append(p.IntentHistory, f)
}

// OutcomeOf reads an outcome record; of is the position of its intent. An intent of the router
// stands right before its outcome.
func OutcomeOf(r storage.Record) (out intents.Outcome, of int64, err error) {
	if out, err = r.Outcome(); err != nil {
		return out, 0, err
	}
	if out.Target < 0 {
		out.Target = r.Position - 1
	}
	return out, out.Target, nil
}

// EntryOf is a record as Observe takes it, for states that follow a journal which
// they do not write.
func EntryOf(r storage.Record) storage.Entry {
	e := storage.Entry{Record: r, Target: storage.NoPosition}
	if r.Kind != storage.KindIntent {
		f, _ := storage.Follow(r)
		e.Target = f.Target
	}
	return e
}

func (s *State) applyOutcome(e storage.Entry) error {
	if _, open := s.intents[e.Target]; !open {
		return nil
	}
	out, err := storage.ReadOutcome(e.Record.Parts)
	if err != nil {
		return err
	}
	return s.ended(e.Target, out, e.Record.At)
}

// ended closes an open intent: memory keys become results of the step, a contract violation
// fails it.
func (s *State) ended(of int64, out intents.Outcome, at time.Time) error {
	x, open := s.intents[of]
	if !open {
		return nil
	}
	p := s.plans[x.Plan]
	delete(s.intents, of)
	h := s.dropHold(of)
	dispatched := h == nil
	if h != nil {
		s.endTransient(transientOf(h.Intent), at)
	}
	delete(s.holds.released, of)
	if out.Status == intents.StatusIndetermined {
		if before := s.unknown[x.ID]; before != nil {
			s.intentEnded(s.plans[before.Plan])
		}
		s.unknown[x.ID] = x
	} else {
		s.intentEnded(p)
	}
	if closed := s.routed[x.Closes]; closed != nil && out.Status == intents.Done {
		closed.SessionEnded = true
	}
	if p == nil {
		return nil
	}
	s.addSources(p, out.Sources, at)
	s.keepArtifact(p, x, out, at)
	p.callEnded(x, out.Status)
	p.nodeEnded(x, out, dispatched)
	if statusInHistory(out) == undelivered {
		delete(p.Numbers, x.Number)
	}
	if x.HistoryIndex != notInHistory {
		p.intentEnded(x, out, dispatched)
	}
	if x.Type != typeWriteMemory {
		return nil
	}
	switch {
	case out.Status == intents.Done:
		return p.addResult(x, out)
	case out.Code == intents.ContractViolation:
		s.violated(x, p, out, at)
	}
	return nil
}

// intentEnded writes the outcome of an intent into the plan's history.
func (p *plan) intentEnded(x *openIntent, out intents.Outcome, dispatched bool) {
	past := p.IntentHistory[x.HistoryIndex]
	held := past.Status == statusHeld
	step := p.step(x.Step)
	stands := x.Step == 0 || step != nil && step.Status == catalog.StepPendingApproval // otherwise its driver continues by itself
	p.Unheld = p.Unheld || held && stands
	past.Status, past.Code = statusInHistory(out), out.Code
	if !dispatched && out.Code != intents.ApprovalRejected { // a rejected intent is not signed again
		past.Status = undelivered
	}
	if step != nil && held && step.Status == catalog.StepPendingApproval && !p.View.Status.Ended() && !p.waiting(x.Step) {
		step.Status = catalog.StepPending // the next driver is informed
	}
}

func statusInHistory(out intents.Outcome) string {
	if out.Status == intents.Failed && (out.Code == intents.DispatchUnavailable || out.Retryable) {
		return undelivered
	}
	return string(out.Status)
}

// addResult makes the key of a memory a result of its step.
func (p *plan) addResult(x *openIntent, out intents.Outcome) error {
	if out.Result == nil {
		return nil // erased, like those of a plan that has ended
	}
	// Only the key: Go reads fewer numbers as integers than the result's schema.
	var res struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(out.Result, &res); err != nil {
		return err
	}
	if step := p.step(x.Step); step != nil && step.Revision == x.Revision && !p.View.Status.Ended() { // a replaced step has no results, nor has an ended plan
		p.Results[x.Step] = append(p.Results[x.Step], res.Key)
	}
	return nil
}

// violated fails the step of a write_memory that broke the step's contract.
func (s *State) violated(x *openIntent, p *plan, out intents.Outcome, at time.Time) {
	t, live := s.tasks[x.Task]
	step := p.step(x.Step)
	if !live || t.Ended != "" || step == nil || step.Status != catalog.StepRunning {
		return
	}
	s.endTask(t, "contract violation", "failed", nil, at)
	if t.Ask != "" {
		return // the asking task continues
	}
	if p.Run != nil {
		p.nodeFailed(step, out.Reason, at, at)
		p.resetAttempt(step)
		return
	}
	step.Status, step.FailureReason, step.FinishedAt = catalog.StepFailed, out.Reason, &at
	p.replan(step, "contract_violation", out.Reason, at)
}

// Takeover is the part of a takeover record: another attempt at an open intent.
type Takeover struct {
	Target  int64 `json:"of"`
	Crashed bool  `json:"crashed,omitempty"` // the previous router did not shut down cleanly
}

// applyTakeover counts the unclean ends during which an intent was open.
func (s *State) applyTakeover(e storage.Entry) error {
	t, err := readPart[Takeover](e.Record, storage.PartTakeover)
	if err != nil {
		return err
	}
	if o, open := s.intents[e.Target]; open && t.Crashed {
		o.Lost++
	}
	return nil
}

// UncleanEnds is the number of unclean ends during which an open intent was open, before this
// start's.
func (v *View) UncleanEnds(position int64) int {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	if o, open := v.s.intents[position]; open {
		return o.Lost
	}
	return 0
}
