package state

import (
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/state/agents"
)

// Requesters are a user of a tenant and the person whose key signed, if there is one.
func (d *Directory) Requesters(id string, who intents.Approver, signer string) intents.Requesters {
	out := intents.Requesters{People: []intents.Approver{who}, Owners: make(map[string]string), InPerson: make(map[string]bool)}
	if signer != "" {
		out = out.And(intents.Approver{User: signer})
	}
	if t := d.tenants[id]; t != nil {
		for key, k := range t.Keys {
			if k.MayAssertUser {
				out.Owners[key] = k.UserID
			}
			if k.InPerson {
				out.InPerson[key] = true
			}
		}
	}
	return out
}

// CanMeet reports whether the people of a tenant could satisfy a rule that holds an intent:
// users who may approve, and people whom an API key may name who may approve.
func (d *Directory) CanMeet(tenant string, rule intents.HoldRule, asked intents.Requesters) bool {
	return d.canMeet(tenant, CapabilityApprove, rule, asked)
}

// canMeet is CanMeet of people with a capability.
func (d *Directory) canMeet(tenant, capability string, rule intents.HoldRule, asked intents.Requesters) bool {
	t := d.tenants[tenant]
	if t == nil {
		return false
	}
	var people []intents.Approval
	enough := func(user, key string, roles []string) bool {
		who := intents.Approval{UserID: user, Key: key, Roles: roles}
		if !rule.Accepts(who.Approver(), asked) || !Covers(t.capabilities(roles), capability) {
			return false
		}
		people = append(people, who)
		return rule.Satisfied(people, asked)
	}
	if rule.Needed() == 0 {
		return true
	}
	for _, u := range t.Users {
		if !u.Disabled && enough(u.UserID, "", u.Roles) {
			return true
		}
	}
	for id, k := range t.Keys {
		for _, user := range t.unlisted(k.UserID, k.MayAssertUser, rule) {
			if enough(user, id, k.MaxRoles) {
				return true
			}
		}
	}
	return false
}

// unlisted are people without a user row whom an API key may name and a rule may require.
func (t *tenant) unlisted(owner string, asserts bool, rule intents.HoldRule) (out []string) {
	out = []string{owner}
	if asserts {
		out = append(out, rule.Approvers...)
		for i := range rule.Needed() {
			out = append(out, fmt.Sprintf("anybody %d", i)) // a name that no user_id has
		}
	}
	return slices.DeleteFunc(out, func(user string) bool { _, listed := t.Users[user]; return listed })
}

// rolesThatApprove are the roles of a tenant that let people approve, sorted.
func (t *tenant) rolesThatApprove() (out []string) {
	for role, caps := range t.Roles {
		if Covers(caps, CapabilityApprove) {
			out = append(out, role)
		}
	}
	slices.Sort(out)
	return out
}

// approvable refuses agents with a call that waits for approval by people who do not exist: in
// the tenant of a push, or for system in every tenant.
func (s *State) approvable(tenant string, of agents.Scopes) error {
	tenants := []string{tenant}
	if tenant == systemTenant {
		tenants = nil
		for id := range s.dir.tenants {
			tenants = append(tenants, id)
		}
	}
	for _, a := range of.Agents {
		for _, h := range a.Holds {
			rule := intents.HoldRule{Roles: h.Roles}
			if !slices.ContainsFunc(tenants, func(id string) bool { return s.dir.CanMeet(id, rule, intents.Requesters{}) }) {
				x := intents.Refuse(intents.MalformedArgs, "/intent/args", fmt.Sprintf("agent %s: nobody could approve calls of %s: no user has one of its roles and may approve", a.Name, h.Tool))
				x.Hint = "first give somebody one of its roles, with the capability " + CapabilityApprove + ": writ user put NAME --role ROLE"
				return x
			}
		}
	}
	return nil
}
