package state

// Logout are the arguments of logout.
type Logout struct {
	Reason string `json:"reason,omitempty"`
}

// logout ends every grant issued to its user so far.
var logout = newTransition("x.acme.logout",
	func(v *View, o Intent, _ Logout) (Effect, error) {
		grants := subjectGrants(o.Tenant, o.User)
		v.addRead(grants)
		if !v.s.revoked[o.Tenant+"/"+o.User].Before(o.Now) {
			return Effect{}, illegal("/intent/type", "the user has logged out already")
		}
		return accepted(grants), nil
	},
	func(s *State, o Intent, _ Logout) error {
		s.revoked[o.Tenant+"/"+o.User] = o.Now
		return nil
	})
