package state

import "aob.dev/writ/intents"

// Permits checks the RBAC stage on this directory: the actor's roles must give the type's
// capability and all that the order declares, and what it declares limits it. roles are
// those that it was judged with. released: people have approved it.
func (d *Directory) Permits(rules intents.Rules, e *intents.Envelope, capability string, released bool) (roles []string, err error) {
	pr := e.Principal()
	if roles, err = d.RolesFor(rules, e, released); err != nil {
		return roles, err
	}
	caps, known := d.Capabilities(pr.Tenant, roles)
	if !known {
		return roles, forbidden("/actor/tenant", "no such tenant")
	}
	if err := d.CheckTool(rules, e); err != nil {
		return roles, err
	}
	needed := allNeeded(rules, e.Type(), capability, e.Args(), pr.UserID)
	for _, c := range needed {
		if !Covered(rules, caps, c) {
			return roles, forbidden("/actor", "no role of the actor gives "+c)
		}
	}
	declared := e.Constraints().Capabilities
	for _, c := range declared {
		if !Covered(rules, caps, c) {
			return roles, forbidden("/constraints/capabilities", "a declared capability is given by no role of the actor")
		}
	}
	for _, c := range needed {
		if len(declared) > 0 && !Covered(rules, declared, c) {
			return roles, forbidden("/constraints/capabilities", "the order needs "+c+", which it does not declare")
		}
	}
	return roles, nil
}

// RolesFor are the roles that an order is judged with. An operator's come from the
// directory, everybody else's are those of the grant that API key and user row still
// give; by the first rules, those of the grant.
func (d *Directory) RolesFor(rules intents.Rules, e *intents.Envelope, released bool) ([]string, error) {
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
	if _, known := d.tenants[pr.Tenant]; !known || g == nil || !released && rules < intents.RulesStrict {
		return pr.Roles, nil
	}
	roles, disabled := d.RolesNow(g.Tenant, g.Subject, intents.KeyOfClient(g.Act.Client), g.Roles)
	if disabled {
		return pr.Roles, ErrDisabled()
	}
	return roles, nil
}

// ErrDisabled is the refusal of an order for a user who may not act any more.
func ErrDisabled() error {
	return forbidden("/actor/user_id", "the user or the API key is not there any more")
}

func forbidden(pointer, reason string) error {
	return intents.Refuse(intents.RBACForbidden, pointer, reason)
}

// Permits is stage 6 on the directory in force, which the decision relies on.
func (v *View) Permits(e *intents.Envelope, capability string, released bool) ([]string, error) {
	return v.directory(e.Principal().Tenant).Permits(v.Rules(), e, capability, released)
}
