package state

import "aob.dev/writ/intents"

// operators makes the Transition of an administrative intent. The intent may not name a tenant
// that its operator may not act on, not even to learn whether that tenant exists. People of a tenant
// may have the gateway sign some of them (catalog). A user of system may not: that could be for any tenant.
func operators[A any](typ string, judge func(v *View, o Intent, a A) (Effect, error), apply func(s *State, o Intent, a A) error) Transition {
	m := newTransition(typ,
		func(v *View, o Intent, a A) (Effect, error) {
			if ForeignTenant(o.Tenant, o.Type, o.Args) {
				return Effect{}, ErrForeign()
			}
			if o.Signer == intents.RoleGateway && o.Tenant == systemTenant {
				return Effect{}, illegal("/actor/tenant", "an operator of system administers with the key of an operator")
			}
			return judge(v, o, a)
		},
		apply)
	m.administers = true
	return m
}

// addWritesToReads adds everything that an effect writes to the decision's reads.
func (v *View) addWritesToReads(e Effect) (Effect, error) {
	for _, subject := range e.Writes {
		v.addRead(subject)
	}
	return e, nil
}
