package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// MaxStanding bounds the standing approvals of a tenant.
const MaxStanding = 256

// standing is a standing approval: a yes to a held call that also counts for later calls of the same
// skill in the same session. It is named by the intent_id of the call that was held.
type standing struct {
	Tenant  string    `json:"tenant"`
	User    string    `json:"user"` // who asks
	Session string    `json:"session"`
	Skill   string    `json:"skill"`
	Digest  string    `json:"digest"` // of the skill's pin
	Rules   []string  `json:"rules"`  // that held the call: no other is satisfied
	Free    []string  `json:"free"`   // members of the input that may differ
	Rest    string    `json:"rest"`   // digest of the input without them
	Left    int       `json:"left"`   // how many calls
	Until   time.Time `json:"until"`
	Yes     approval  `json:"yes"`
}

// subjectStanding are all standing approvals of a tenant.
func subjectStanding(tenant string) storage.Subject { return storage.Subject("standing/" + tenant) }

// mayStand refuses a standing approval of what people must see each time.
func (v *View) mayStand(h Hold, also catalog.Also, now time.Time) error {
	refuse := func(at, reason string) error { return illegal("/intent/args/also"+at, reason) }
	var call catalog.SkillCall
	if h.Type != TypeSkillCall || json.Unmarshal(h.Args, &call) != nil || call.From != "" || h.Context.SessionID == "" {
		return refuse("", "only a call of a skill in a session, with its input in the arguments, can be approved for later calls, too")
	}
	pin, ok := v.s.dir.Pin(h.Tenant, h.Skill)
	if !ok || pin.Kind != "" || pin.Input().Destroys() {
		return refuse("", "a call that may destroy something is approved each time: writ skill approve "+h.Skill+" --destructive no, if it does not")
	}
	if pin.Digest != h.Pin {
		return refuse("", "the skill's pin is not the one that people were asked about")
	}
	if untrusted(pin.Input().Source()) {
		return refuse("", "its own answers are untrusted, so that the next call would wait again: writ skill approve "+h.Skill+" --trusted, if they can be trusted")
	}
	if slices.ContainsFunc(h.Sources, untrusted) {
		return refuse("", "the task has read untrusted content: such calls are approved each time")
	}
	for _, rule := range h.Terms.Rules {
		if !rule.MayStand() {
			return refuse("", "the rule "+rule.ID+" wants approvals of each call")
		}
	}
	for i, name := range also.Free {
		if _, there := inputOf(call)[name]; !there {
			return refuse(fmt.Sprintf("/free/%d", i), "the input of the call has no member "+name)
		}
	}
	v.addRead(subjectStanding(h.Tenant))
	n := 0
	for _, x := range v.s.holds.standing {
		if x.Tenant == h.Tenant && now.Before(x.Until) {
			n++
		}
	}
	if n >= MaxStanding {
		return refuse("", "the tenant has too many standing approvals: withdraw some")
	}
	return nil
}

func untrusted(s intents.Source) bool { return !s.Trusted }

func inputOf(call catalog.SkillCall) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage)
	_ = json.Unmarshal(call.Input, &out) // the schema wants an object, or none
	return out
}

// rest is the digest of an input without some members; empty if it has none.
func rest(call catalog.SkillCall, free []string) string {
	in := inputOf(call)
	for _, name := range free {
		delete(in, name)
	}
	raw, err := json.Marshal(in)
	if err == nil {
		raw, err = intents.Canonical(raw)
	}
	if err != nil {
		return ""
	}
	return intents.Digest(raw)
}

// standingRests is how long standing approvals remain after their end: intents that were decided before it
// may be recorded after it.
const standingRests = time.Hour

// addStanding records a standing approval, and drops those that have ended.
func (s *State) addStanding(h *Hold, o Intent, also catalog.Also) {
	maps.DeleteFunc(s.holds.standing, func(_ string, x *standing) bool { return o.At.After(x.Until.Add(standingRests)) })
	var call catalog.SkillCall
	_ = json.Unmarshal(h.Args, &call) // it was read when the approval was judged
	var rules []string
	for _, rule := range h.Terms.Rules {
		rules = append(rules, rule.ID)
	}
	s.holds.standing[h.Decision.IntentID] = &standing{
		Tenant: h.Tenant, User: h.User, Session: h.Context.SessionID, Skill: h.Skill, Digest: h.Pin, Rules: rules,
		Free: also.Free, Rest: rest(call, also.Free), Left: also.Uses, Until: o.Now.Add(time.Duration(also.WithinSec) * time.Second), Yes: approvalOf(o),
	}
}

// Standing finds the standing approval that counts for an intent, which it adds to the decision's
// reads, and returns its yes with the roles of now. name is the intent_id of the call that it was
// given for, empty if there is none, and seen are the rules that held that call. only is the one to look
// at; empty: all. by are the rules that hold the intent, as far as known.
func (v *View) Standing(o *Intent, only string, by []string) (yes intents.Approval, name string, seen []string) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	var call catalog.SkillCall
	if o.Type != TypeSkillCall || len(v.s.holds.standing) == 0 || json.Unmarshal(o.Args, &call) != nil || call.From != "" || slices.ContainsFunc(o.Sources, untrusted) {
		return yes, "", nil
	}
	pin, ok := v.s.dir.Pin(o.Tenant, o.Skill)
	if !ok || pin.Input().Destroys() {
		return yes, "", nil
	}
	for _, name := range slices.Sorted(maps.Keys(v.s.holds.standing)) {
		x := v.s.holds.standing[name]
		if only != "" && name != only || x.Tenant != o.Tenant || x.User != o.User || x.Session != o.Context.SessionID || x.Skill != o.Skill || x.Digest != pin.Digest || !o.Now.Before(x.Until) || x.Rest == "" || x.Rest != rest(call, x.Free) || len(without(by, x.Rules)) > 0 {
			continue
		}
		roles, err := v.s.rolesToday(o.Tenant, x.Yes)
		if err != nil || !v.s.mayApprove(o.Tenant, roles) {
			continue
		}
		for _, subject := range []storage.Subject{SubjectIntent(name), SubjectTenant(o.Tenant), SubjectKeys, subjectGrants(o.Tenant, x.Yes.User)} {
			v.addRead(subject)
		}
		return intents.Approval{UserID: x.Yes.User, At: intents.FormatTime(x.Yes.At), Key: x.Yes.Grant.Caller(), Roles: roles}, name, x.Rules
	}
	return yes, "", nil
}

// mayUseStanding reports whether a standing approval may have let a call through: its record says.
func (s *State) mayUseStanding(o Intent) bool {
	for _, x := range s.holds.standing {
		if o.Type == TypeSkillCall && x.Tenant == o.Tenant && x.Session == o.Context.SessionID {
			return true
		}
	}
	return false
}

// useStanding counts a call that a standing approval has let through.
func (s *State) useStanding(o Intent) {
	x := s.holds.standing[o.Standing]
	if x == nil {
		return
	}
	if x.Left--; x.Left <= 0 {
		delete(s.holds.standing, o.Standing)
	}
}

// withdraw ends a standing approval: whoever may approve may.
func (v *View) withdraw(tenant string, a catalog.Approve) (Effect, error) {
	v.addRead(SubjectIntent(a.IntentID))
	if x := v.s.holds.standing[a.IntentID]; x == nil || x.Tenant != tenant {
		return Effect{}, illegal("/intent/args/intent_id", "no standing approval of this tenant was given for this intent")
	}
	return Effect{&catalog.ApproveResult{IntentID: a.IntentID, State: catalog.ApprovalEnded, Approved: []string{}}, []storage.Subject{SubjectIntent(a.IntentID)}}, nil
}

// StandingApprovals lists the standing approvals of a tenant that have not ended, the newest first.
func (s *State) StandingApprovals(tenant string, now time.Time) (out []StandingApproval) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, x := range s.holds.standing {
		if x.Tenant == tenant && now.Before(x.Until) {
			out = append(out, StandingApproval{
				IntentID: name, UserID: x.User, SessionID: x.Session, Skill: x.Skill, Free: x.Free, Left: x.Left,
				Until: intents.FormatTime(x.Until), By: x.Yes.User, At: intents.FormatTime(x.Yes.At),
			})
		}
	}
	slices.SortFunc(out, func(a, b StandingApproval) int {
		return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.IntentID, b.IntentID))
	})
	return out
}

// StandingApproval is a standing approval, as people see it: a yes that also counts for later calls of a session.
type StandingApproval struct {
	IntentID  string // of the call that it was given for
	UserID    string // who asks
	SessionID string
	Skill     string
	Free      []string
	Left      int    // how many calls
	Until     string // RFC 3339
	By        string // who has approved
	At        string // RFC 3339
}
