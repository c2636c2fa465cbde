package state

import (
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// adminPut changes one row of the directory, or begins a tenant.
var adminPut = operators(TypeAdminPut,
	func(v *View, o Order, a catalog.AdminPut) (Effect, error) {
		if a.New != nil {
			if err := v.s.legalNew(*a.New); err != nil {
				return Effect{}, err
			}
			return v.relyOn(accepted(SubjectTenant(a.New.ID)))
		}
		id := Named(o.Tenant, a.Tenant)
		t := v.s.dir.tenants[id]
		if t == nil {
			return Effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		if err := v.s.legalMove(o, a, id); err != nil {
			return Effect{}, err
		}
		if err := v.s.legalAPIKey(a.APIKey, id); err != nil {
			return Effect{}, err
		}
		if err := legalRetention(a.Data, id); err != nil {
			return Effect{}, err
		}
		if err := v.s.legalRow(a, t, v.types); err != nil {
			return Effect{}, err
		}
		e := accepted(SubjectTenant(id))
		if v.s.endsPlans(a.User) {
			e.Touches = append(e.Touches, v.touchesOf(id, a.User.UserID)...)
		}
		return v.relyOn(e)
	},
	func(s *State, o Order, a catalog.AdminPut) error {
		if a.New != nil && a.New.Came != nil {
			s.came(o, *a.New)
			return nil
		}
		if a.New != nil {
			t := s.begin(a.New.ID, s.roles, o.Position)
			if s.rules >= intents.RulesStrict {
				x := HoldOnce(a.New.ID)
				t.Data[x.Key] = x.Value
			}
			return nil
		}
		id := Named(o.Tenant, a.Tenant)
		if s.dir.tenants[id] == nil {
			return fmt.Errorf("admin.put for a tenant that is not there")
		}
		t := s.change(id, o.Position)
		switch {
		case a.APIKey != nil:
			s.putAPIKey(*a.APIKey, id, t, o.At)
		case a.User != nil:
			t.Users[a.User.UserID] = *a.User
			if s.endsPlans(a.User) {
				s.failPlansOf(id, a.User.UserID, "the user was disabled", o.At)
			}
		case a.Role != nil:
			t.Roles[a.Role.Role] = a.Role.Capabilities
		case a.Moved != nil || a.Arrived != nil:
			t.move(a, o.Position)
		case a.Data != nil:
			t.Data[a.Data.Key] = a.Data.Value
			s.foldRetention(*a.Data, id, o.At)
		}
		return nil
	})

// endsPlans says whether an admin.put of a user ends the user's open plans, as
// grant.revoke does: nobody may act for a disabled user, so nobody could end them.
func (s *State) endsPlans(u *catalog.User) bool {
	return u != nil && u.Disabled && s.rules >= intents.RulesStrict
}

// legalAPIKey: a key stays with the tenant that put it, and of the keys of a
// tenant that are not revoked only one has an id.
func (s *State) legalAPIKey(k *catalog.APIKey, tenant string) error {
	if k == nil {
		return nil
	}
	if row, ok := s.apiKeys[k.Hash]; ok && row.Tenant != tenant {
		return illegal("/intent/args/api_key/hash", "not a key of this tenant")
	}
	if other, ok := s.dir.tenants[tenant].Keys[k.ID]; ok && other.Hash != k.Hash {
		return illegal("/intent/args/api_key/id", "another key has this id: revoke it first")
	}
	return nil
}

// putAPIKey puts an API key of a tenant, in the place of what was known under its hash.
func (s *State) putAPIKey(k catalog.APIKey, id string, t *tenant, at time.Time) {
	if before, ok := s.apiKeys[k.Hash]; ok && before.Tenant == id && t.Keys[before.ID].Hash == k.Hash {
		delete(t.Keys, before.ID)
	}
	s.apiKeys[k.Hash], s.keyed = apiKeyRow{k, id, at}, true
	if !k.Revoked {
		t.Keys[k.ID] = k
	}
}

// userEnded is whose open plans an order of an operator ends; empty: nobody's.
func (s *State) userEnded(o Order) (tenant, user string) {
	switch o.Type {
	case TypeGrantRevoke:
		a, _ := argsOf[catalog.GrantRevoke](o) // they matched their schema
		return a.Tenant, a.Sub
	case TypeAdminPut:
		if a, err := argsOf[catalog.AdminPut](o); err == nil && s.endsPlans(a.User) {
			return Named(o.Tenant, a.Tenant), a.User.UserID
		}
	}
	return "", ""
}

// EndedWith lists the plans that an accepted order of the router ends beside any
// that it names: those of a user whose grants it revokes, or whom it disables. It is
// asked before the order is observed.
func (s *State) EndedWith(o Order) (tenant string, plans []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tenant, user := s.userEnded(o)
	if o.Decision.Verdict != intents.Allow || user == "" {
		return "", nil
	}
	for _, p := range s.openPlansOf(tenant, user) {
		plans = append(plans, p.View.PlanID)
	}
	return tenant, plans
}

// parseBefore reads the time of a grant.revoke. Its schema's times are RFC 3339's;
// those of state are Go's, which are fewer.
func parseBefore(a catalog.GrantRevoke) (time.Time, error) {
	return time.Parse(time.RFC3339Nano, a.Before)
}
