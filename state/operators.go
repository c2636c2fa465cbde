package state

// operators makes the Move of an order of administration. None may name a tenant that its
// operator may not act on, not even to learn whether there is one.
func operators[A any](typ string, judge func(v *View, o Order, a A) (Effect, error), apply func(s *State, o Order, a A) error) Move {
	m := move(typ,
		func(v *View, o Order, a A) (Effect, error) {
			if ForeignTenant(o.Tenant, o.Type, o.Args) {
				return Effect{}, ErrForeign()
			}
			return judge(v, o, a)
		},
		apply)
	m.administers = true
	return m
}

// relyOn makes the decision rely on all that an effect changes.
func (v *View) relyOn(e Effect) (Effect, error) {
	for _, subject := range e.Touches {
		v.rely(subject)
	}
	return e, nil
}
