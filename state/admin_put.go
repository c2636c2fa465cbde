package state

import (
	"bytes"
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// adminPut changes one row of the directory, or begins a tenant.
var adminPut = operators(TypeAdminPut,
	func(v *View, o Intent, a catalog.AdminPut) (Effect, error) {
		if a.New != nil {
			if v.s.dir.tenants[a.New.ID] != nil {
				return Effect{}, illegal("/intent/args/new_tenant/id", "a tenant with this id exists")
			}
			return v.addWritesToReads(accepted(SubjectTenant(a.New.ID)))
		}
		id := TargetTenant(o.Tenant, a.Tenant)
		t := v.s.dir.tenants[id]
		if t == nil {
			return Effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		if err := v.s.legalAPIKey(a.APIKey, id); err != nil {
			return Effect{}, err
		}
		if err := legalRetention(a.Data, id); err != nil {
			return Effect{}, err
		}
		if err := t.legalData(a.Data); err != nil {
			return Effect{}, err
		}
		if err := v.s.legalRow(a, t, v.types); err != nil {
			return Effect{}, err
		}
		e := accepted(SubjectTenant(id))
		if v.s.endsPlans(a.User) {
			e.Writes = append(e.Writes, v.writesOfUser(id, a.User.UserID)...)
		}
		return v.addWritesToReads(e)
	},
	func(s *State, o Intent, a catalog.AdminPut) error {
		if a.New != nil {
			t := s.begin(a.New.ID, s.roles, o.Position)
			x := HoldOnce(a.New.ID)
			t.Data[x.Key] = x.Value
			return nil
		}
		id := TargetTenant(o.Tenant, a.Tenant)
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
		case a.Data != nil:
			t.Data[a.Data.Key] = a.Data.Value
			s.applyRetention(*a.Data, id, o.At)
		}
		t.endAlone()
		return nil
	})

// endsPlans reports whether an admin.put of a user ends the user's open plans, as grant.revoke
// does: nobody may act for a disabled user, so nobody could end them.
func (s *State) endsPlans(u *catalog.User) bool {
	return u != nil && u.Disabled
}

// legalAPIKey checks that a key stays with the tenant that put it, and that an id names only one
// unrevoked key of a tenant.
func (s *State) legalAPIKey(k *catalog.APIKey, tenant string) error {
	if k == nil {
		return nil
	}
	if err := legalInPerson(*k); err != nil {
		return err
	}
	if row, ok := s.apiKeys[k.Hash]; ok && row.Tenant != tenant {
		return illegal("/intent/args/api_key/hash", "not a key of this tenant")
	}
	if other, ok := s.dir.tenants[tenant].Keys[k.ID]; ok && other.Hash != k.Hash {
		return illegal("/intent/args/api_key/id", "another key has this id: revoke it first")
	}
	return nil
}

// legalData refuses data that no operator puts. An auditor judges this whatever the catalog: unlike a
// mistake in a row, it is at /intent/args/data as a whole.
func (t *tenant) legalData(data *catalog.Data) error {
	refuse := func(reason, hint string) error {
		x := intents.Refuse(intents.MalformedArgs, "/intent/args/data", reason)
		x.Hint = hint
		return x
	}
	switch {
	case data == nil:
	case data.Key == catalog.KeyStop:
		return refuse("stop is no data that anybody puts: admin.stop changes it", "use writ stop and writ resume")
	case data.Key == DataAlone && !null(data.Value) && (t.alone() == "" || string(data.Value) != string(t.Data[DataAlone])):
		return refuse("who is alone is decided at the first start, and ends for good", "to end it: writ tenant data alone null; to have others approve: writ user put NAME --role approver")
	}
	return nil
}

// putAPIKey puts an API key of a tenant and replaces any key with the same hash.
func (s *State) putAPIKey(k catalog.APIKey, id string, t *tenant, at time.Time) {
	if before, ok := s.apiKeys[k.Hash]; ok && before.Tenant == id && t.Keys[before.ID].Hash == k.Hash {
		delete(t.Keys, before.ID)
	}
	s.apiKeys[k.Hash], s.keyed = apiKeyRow{k, id, at}, true
	if !k.Revoked {
		t.Keys[k.ID] = k
	}
}

// userEnded returns the user whose open plans an operator's intent ends; empty if none.
func (s *State) userEnded(o Intent) (tenant, user string) {
	switch o.Type {
	case TypeGrantRevoke:
		a, _ := ArgsOf[catalog.GrantRevoke](o) // their schema was checked
		return a.Tenant, a.Sub
	case TypeAdminPut:
		if !bytes.Contains(o.Args, []byte(`"user"`)) {
			return "", "" // the usual case: avoids reading large data
		}
		if a, err := ArgsOf[catalog.AdminPut](o); err == nil && s.endsPlans(a.User) {
			return TargetTenant(o.Tenant, a.Tenant), a.User.UserID
		}
	}
	return "", ""
}

// EndedWith lists the plans that an accepted intent of the router ends in addition to any that
// it names: those of a user whose grants it revokes or whom it disables. Call it before the
// intent is observed.
func (s *State) EndedWith(o Intent) (tenant string, plans []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if o.Decision.Verdict != intents.Allow {
		return "", nil
	}
	tenant, user := s.userEnded(o)
	if user == "" {
		return "", nil
	}
	for _, p := range s.openPlansOf(tenant, user) {
		plans = append(plans, p.View.PlanID)
	}
	return tenant, plans
}

// parseBefore parses the time of a grant.revoke. The schema allows RFC 3339 times; state uses
// Go's, a subset.
func parseBefore(a catalog.GrantRevoke) (time.Time, error) {
	return time.Parse(time.RFC3339Nano, a.Before)
}
