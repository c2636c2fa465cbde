package state

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// edit is the edited form of a held intent: the next intent of its place that names the held one
// as its cause is approved by the editor, if it has exactly these arguments and is held before
// the deadline. It applies to one intent: the next equal one needs approval again.
type edit struct {
	Tenant   string     `json:"tenant"`
	Plan     string     `json:"plan"`
	Step     int        `json:"step"`
	Ask      string     `json:"ask,omitempty"`
	Type     string     `json:"type"`
	Digest   string     `json:"digest"` // of the arguments
	Deadline time.Time  `json:"deadline"`
	By       string     `json:"by"`      // the hitl.approve
	Editors  []approval `json:"editors"` // of the intent and of those it was made from; the last one is By's
}

// editable refuses an edit that no next task could sign. Masked arguments cannot be edited: who
// sees only the rest would replace what is hidden.
func (v *View) editable(h Hold, editor intents.Approver, args json.RawMessage) error {
	refuse := func(reason string) error { return illegal("/intent/args/decision", reason) }
	switch {
	case h.Signer != intents.RoleTask || h.Context.PlanID == "":
		return refuse("only the intent of a task can be edited, since its next task signs what is left of it: reject it, or request changes")
	case v.s.ofNode(h):
		return refuse("the intent of a node is what the graph of its run says: patch the run, reject the intent, or request changes")
	case h.Type == intents.TypeAgentAsk:
		return refuse("an intent that opens a task cannot be edited: reject it, or request changes")
	case h.Terms.Masks():
		return refuse("arguments of the intent are masked, so it cannot be edited: reject it, or request changes")
	case bytes.Equal(args, h.Args):
		return illegal("/intent/args/args", "these are the arguments of the held intent: approve it")
	}
	var was, is catalog.SkillCall // other intents have no skill
	if json.Unmarshal(h.Args, &was) == nil && json.Unmarshal(args, &is) == nil && was.Skill != is.Skill {
		return illegal("/intent/args/args/skill", "an edit keeps the skill: request changes")
	}
	for _, rule := range h.Terms.Rules {
		if !v.s.dir.CanMeet(h.Tenant, rule, h.Requesters.And(editor)) {
			return refuse("whoever edits an intent cannot approve it under four eyes, and nobody else could meet " + rule.ID + ": request changes")
		}
	}
	return v.misfit(h.Type, args)
}

// ofNode reports whether a held intent is that of a node of a run, whose arguments only the
// graph determines.
func (s *State) ofNode(h Hold) bool {
	t := s.tasks[h.Tenant+"/"+h.Context.TaskID]
	return t != nil && t.Node != "" && t.Agent == ""
}

// misfit validates edited arguments against the schema of their type.
func (v *View) misfit(typ string, args json.RawMessage) error {
	wrong := []schemas.Violation{{Reason: "the catalog does not have the type of the held intent any more"}}
	if row, ok := v.types.Lookup(typ); ok {
		schema, err := row.ArgsSchema()
		if err != nil {
			return err
		}
		if wrong = schema.ValidateBytes(args); len(wrong) == 0 {
			return nil
		}
	}
	x := intents.Invalid("/intent/args/args", wrong)
	x.Code = intents.MalformedArgs // the arguments of hitl.approve itself match their schema
	return x
}

// addEdit records an edit until an intent uses it, or its deadline passes.
func (s *State) addEdit(h *Hold, o Intent, args json.RawMessage) {
	for id, e := range s.holds.edits {
		if e.Deadline.Before(o.At) {
			delete(s.holds.edits, id)
		}
	}
	s.holds.edits[h.Decision.IntentID] = &edit{
		Tenant: h.Tenant, Plan: h.Context.PlanID, Step: h.Context.Step, Ask: h.Context.Ask, Type: h.Type,
		Digest: intents.Digest(args), Deadline: h.Deadline, By: o.Decision.IntentID, Editors: append(slices.Clone(h.Editors), approvalOf(o)),
	}
}

// takeEdit turns a held intent into the one that results from an edit. Any other intent at the
// place of the edited one uses the edit up.
func (s *State) takeEdit(h *Hold) {
	e := s.editOf(&h.Intent)
	if e == nil {
		return
	}
	delete(s.holds.edits, h.Context.Cause)
	if e.made(&h.Intent) {
		h.Editors, h.Edit, h.Approvals = e.Editors, e.By, e.Editors[len(e.Editors)-1:]
	}
}

// editOf is the edit that an intent may result from.
func (s *State) editOf(o *Intent) *edit {
	c, e := o.Context, s.holds.edits[o.Context.Cause]
	if e == nil || e.Tenant != o.Tenant || e.Plan != c.PlanID || e.Step != c.Step || e.Ask != c.Ask || e.Type != o.Type {
		return nil
	}
	return e
}

// made reports whether an intent is exactly the result of the edit.
func (e *edit) made(o *Intent) bool {
	return e.Digest == intents.Digest(o.Args) && o.Now.Before(e.Deadline)
}

// Requesters are those who requested an intent that is being decided or is held, and those who
// edited an earlier one into it. An editor never counts for four eyes.
func (v *View) Requesters(o *Intent) intents.Requesters {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	return v.s.requesters(o, v.editors(o))
}

func (v *View) editors(o *Intent) []approval {
	if h := v.s.holds.waiting[v.s.holds.position(o.Decision.IntentID)]; h != nil {
		return h.Editors
	}
	if o.Context.Cause == "" {
		return nil
	}
	v.addRead(SubjectIntent(o.Context.Cause))
	if e := v.s.editOf(o); e != nil && e.made(o) {
		return e.Editors
	}
	return nil
}

// EditedHolds lists the held intents that only their editor has approved, oldest first: some of
// them wait for nobody else.
func (v *View) EditedHolds() []Hold {
	return v.holdsWhere(func(h *Hold) bool { return h.Edit != "" && len(h.Approvals) == 1 })
}
