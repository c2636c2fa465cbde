package state

// Logout are the arguments of logout.
type Logout struct {
	Reason string `json:"reason,omitempty"`
}

// logout ends every grant that its user was given so far.
var logout = move("x.acme.logout",
	func(v *View, o Order, _ Logout) (Effect, error) {
		grants := subjectGrants(o.Tenant, o.User)
		v.rely(grants)
		if !v.s.revoked[o.Tenant+"/"+o.User].Before(o.Now) {
			return Effect{}, illegal("/intent/type", "the user has logged out already")
		}
		return accepted(grants), nil
	},
	func(s *State, o Order, _ Logout) error {
		s.revoked[o.Tenant+"/"+o.User] = o.Now
		return nil
	})
