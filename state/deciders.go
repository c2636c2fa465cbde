package state

import (
	"slices"

	"aob.dev/writ/intents"
)

// Deciders are those who may approve a held intent now: users with a row, and roles that its rules
// accept or that these users have. Both are sorted.
func (d *Directory) Deciders(h Hold) (users, roles []string) {
	t := d.tenants[h.Tenant]
	if t == nil {
		return nil, nil
	}
	accepts := func(a intents.Approver) bool {
		return Covers(t.capabilities(a.Roles), CapabilityApprove) &&
			slices.ContainsFunc(h.Terms.Rules, func(r intents.HoldRule) bool { return r.Accepts(a, h.Requesters) })
	}
	for _, u := range t.Users {
		if !u.Disabled && accepts(intents.Approver{User: u.UserID, Roles: u.Roles}) {
			users, roles = append(users, u.UserID), append(roles, u.Roles...)
		}
	}
	for role := range t.Roles {
		if accepts(intents.Approver{Roles: []string{role}}) {
			roles = append(roles, role)
		}
	}
	slices.Sort(users)
	slices.Sort(roles)
	return users, slices.Compact(roles)
}
