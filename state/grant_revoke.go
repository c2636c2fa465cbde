package state

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// grantRevoke ends the grants of a user that were issued before a time, and the
// user's open plans with them.
var grantRevoke = operators(TypeGrantRevoke,
	func(v *View, o Intent, a catalog.GrantRevoke) (Effect, error) {
		before, err := parseBefore(a)
		if err != nil {
			return Effect{}, illegal("/intent/args/before", "not a time of the calendar with upper-case T and Z")
		}
		if before.After(o.Now.Add(intents.Leeway)) { // irreversible: the user would be locked out until then
			return Effect{}, illegal("/intent/args/before", "lies in the future: it ends the grants that there are; to keep somebody out disable the user")
		}
		if v.s.dir.tenants[a.Tenant] == nil { // it would be accepted without effect
			return Effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		return v.addWritesToReads(accepted(append(v.writesOfUser(a.Tenant, a.Sub), subjectGrants(a.Tenant, a.Sub))...))
	},
	func(s *State, o Intent, a catalog.GrantRevoke) error {
		before, err := parseBefore(a)
		if err != nil {
			return err
		}
		// The issuing gateway's clock may be ahead by the leeway, and iat is whole seconds.
		if before = before.Add(intents.Leeway + time.Nanosecond); before.After(s.revoked[a.Tenant+"/"+a.Sub]) {
			s.revoked[a.Tenant+"/"+a.Sub] = before // the latest time applies
		}
		s.failPlansOf(a.Tenant, a.Sub, "the user's grants were revoked", o.At)
		return nil
	})
