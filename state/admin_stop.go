package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// adminStop stops a tenant, or agents and skill servers of it, and lets everything go on. It changes
// the tenant's data, by which the policies deny.
var adminStop = operators(catalog.TypeAdminStop,
	func(v *View, o Intent, a catalog.AdminStop) (Effect, error) {
		id := TargetTenant(o.Tenant, a.Tenant)
		t := v.s.dir.tenants[id]
		if t == nil {
			return Effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		now := t.stopped()
		if a.Resume {
			if err := v.mayResume(o, id, now); err != nil {
				return Effect{}, err
			}
		} else if then := now.Add(a, catalog.Stop{}); max(len(then.Agents), len(then.Servers)) > catalog.MaxStopped {
			x := intents.Refuse(intents.MalformedArgs, "/intent/args", fmt.Sprintf("more than %d agents or servers are stopped by name", catalog.MaxStopped))
			x.Hint = "stop everything"
			return Effect{}, x
		}
		return v.addWritesToReads(accepted(SubjectTenant(id)))
	},
	func(s *State, o Intent, a catalog.AdminStop) error {
		id := TargetTenant(o.Tenant, a.Tenant)
		if s.dir.tenants[id] == nil {
			return fmt.Errorf("admin.stop for a tenant that is not there")
		}
		t := s.change(id, o.Position)
		if a.Resume {
			delete(t.Data, catalog.KeyStop)
			return nil
		}
		by := catalog.Stop{User: o.User, Tenant: o.Tenant, Key: o.Grant.Caller(), Since: intents.FormatTime(o.Now), Reason: a.Reason}
		raw, err := json.Marshal(t.stopped().Add(a, by))
		t.Data[catalog.KeyStop] = raw
		return err
	})

func (t *tenant) stopped() (s catalog.Stopped) {
	_ = json.Unmarshal(t.Data[catalog.KeyStop], &s) // admin.stop has written it
	return s
}

// mayResume requires a second person: whoever has stopped something lets nothing go on, while
// somebody who has stopped nothing could.
func (v *View) mayResume(o Intent, id string, now catalog.Stopped) error {
	by := v.s.dir.Requesters(id, intents.Approver{}, "")
	by.People = nil
	for _, s := range now.Stops() {
		by.People = append(by.People, intents.Approver{User: s.User, Key: s.Key})
	}
	v.addRead(SubjectTenant(systemTenant))
	v.addRead(SubjectKeys)
	if !by.Include(intents.Approver{User: o.User, Key: o.Grant.Caller()}) || !v.s.mayOthersStop(id, by) {
		return nil
	}
	x := intents.Refuse(intents.MalformedArgs, "/intent/args/resume", "you have stopped it, and somebody else may let it go on: a second person must")
	x.Hint = "have another operator run writ resume, or use the console"
	return x
}

// mayOthersStop reports whether somebody but these people may stop and resume a tenant: a person of
// it, or of system with an operator's key.
func (s *State) mayOthersStop(id string, these intents.Requesters) bool {
	t, system := s.dir.tenants[id], s.dir.tenants[systemTenant]
	rule := intents.HoldRule{Roles: slices.Collect(maps.Keys(t.Roles)), FourEyes: true}
	if s.dir.canMeet(id, catalog.CapabilityStop, rule, these) {
		return true
	}
	for _, u := range system.Users {
		if !u.Disabled && Covers(system.capabilities(u.Roles), catalog.CapabilityStop) && !these.Include(intents.Approver{User: u.UserID}) && s.hasOperator(systemTenant, u.UserID) {
			return true
		}
	}
	return false
}

// Stopped is what has been stopped in a tenant.
func (s *State) Stopped(tenant string) catalog.Stopped {
	if t := s.Directory().tenants[tenant]; t != nil {
		return t.stopped()
	}
	return catalog.Stopped{}
}
