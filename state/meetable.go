package state

import (
	"fmt"
	"slices"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
)

// CanMeet says whether the people of a tenant could meet a rule that holds an order: users who
// may approve, and those whom an API key may name that may approve.
func (d *Directory) CanMeet(tenant string, rule intents.HoldRule, asked intents.Asked) bool {
	t := d.tenants[tenant]
	if t == nil {
		return false
	}
	var people []intents.Approval
	enough := func(user, key string, roles []string) bool {
		who := intents.Approval{UserID: user, Key: key, Roles: roles}
		if !rule.Accepts(who.Approver(), asked) || !Covered(d.rules, t.capabilities(roles), CapabilityApprove) {
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

// CanMeet says so of the directory in force, which the decision relies on.
func (v *View) CanMeet(tenant string, rule intents.HoldRule, asked intents.Asked) bool {
	return v.directory(tenant).CanMeet(tenant, rule, asked)
}

// unlisted are people without a row whom an API key may name and a rule may want.
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
func (t *tenant) rolesThatApprove(rules intents.Rules) (out []string) {
	for role, caps := range t.Roles {
		if Covered(rules, caps, CapabilityApprove) {
			out = append(out, role)
		}
	}
	slices.Sort(out)
	return out
}

// approvable refuses agents with a call that waits for people whom nobody is one of: in the
// tenant of a push, or for system in every tenant.
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
			if !slices.ContainsFunc(tenants, func(id string) bool { return s.dir.CanMeet(id, rule, intents.Asked{}) }) {
				x := intents.Refuse(intents.MalformedArgs, "/intent/args", fmt.Sprintf("agent %s: nobody could approve calls of %s: no user has one of its roles and may approve", a.Name, h.Tool))
				x.Hint = "first give somebody one of its roles, with the capability " + CapabilityApprove + ": writ user put NAME --role ROLE"
				return x
			}
		}
	}
	return nil
}
