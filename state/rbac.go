package state

import "aob.dev/writ/intents"

// Permits checks the RBAC stage on this directory: the actor's roles must include the type's
// capability and everything that the intent declares, and the declaration limits the intent.
// roles are those that it was judged with.
func (d *Directory) Permits(e *intents.Envelope, capability string) (roles []string, err error) {
	pr := e.Principal()
	if roles, err = d.RolesFor(e); err != nil {
		return roles, err
	}
	caps, known := d.Capabilities(pr.Tenant, roles)
	if !known {
		return roles, forbidden("/actor/tenant", "no such tenant")
	}
	if err := d.CheckTool(e); err != nil {
		return roles, err
	}
	needed := allNeeded(e.Type(), capability, e.Args(), pr.UserID)
	for _, c := range needed {
		if !Covers(caps, c) {
			return roles, forbidden("/actor", "no role of the actor gives "+c)
		}
	}
	declared := e.Constraints().Capabilities
	for _, c := range declared {
		if !Covers(caps, c) {
			return roles, forbidden("/constraints/capabilities", "a declared capability is given by no role of the actor")
		}
	}
	for _, c := range needed {
		if len(declared) > 0 && !Covers(declared, c) {
			return roles, forbidden("/constraints/capabilities", "the intent needs "+c+", which it does not declare")
		}
	}
	return roles, nil
}

// RolesFor are the roles that an intent is judged with. An operator's come from the directory;
// all others' are those of the grant that API key and user row still allow.
func (d *Directory) RolesFor(e *intents.Envelope) ([]string, error) {
	pr := e.Principal()
	if e.Signer().Role == intents.RoleOperator {
		roles, found, disabled := d.UserRoles(pr.Tenant, pr.UserID)
		switch {
		case !found || disabled:
			return roles, forbidden("/actor/user_id", "the operator has no role in its tenant")
		case len(without(e.Claimed(), roles)) > 0:
			return roles, forbidden("/actor/roles", "actor claims roles that the operator does not have")
		case ForeignTenant(pr.Tenant, e.Type(), e.Args()):
			return roles, ErrForeign()
		}
		return roles, nil
	}
	g := e.Grant()
	if _, known := d.tenants[pr.Tenant]; !known || g == nil {
		return pr.Roles, nil
	}
	roles, disabled := d.RolesNow(g.Tenant, g.Subject, intents.KeyOfClient(g.Act.Client), g.Roles)
	if disabled {
		return pr.Roles, ErrDisabled()
	}
	return roles, nil
}

// ErrDisabled refuses an intent for a user who may not act any more.
func ErrDisabled() error {
	return forbidden("/actor/user_id", "the user or the API key is not there any more")
}

func forbidden(pointer, reason string) error {
	return intents.Refuse(intents.RBACForbidden, pointer, reason)
}

// Permits is stage 6 on the directory in force, which it adds to the decision's reads.
func (v *View) Permits(e *intents.Envelope, capability string) ([]string, error) {
	return v.directory(e.Principal().Tenant).Permits(e, capability)
}
