package router

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// View reads the directory for one decision and remembers what it relied on.
type View struct {
	d       *Directory
	asserts map[storage.Subject]int64
}

// View begins a decision.
func (d *Directory) View() *View { return &View{d: d, asserts: make(map[storage.Subject]int64, 6)} }

// rely remembers the position of a subject. The lock must be held.
func (v *View) rely(s storage.Subject) {
	if _, ok := v.asserts[s]; ok {
		return // what was read first is what the decision rests on
	}
	at, ok := v.d.touched[s]
	if !ok {
		at = storage.Nobody
	}
	v.asserts[s] = at
}

// Asserts are what the decision relied on, for its commit.
func (v *View) Asserts() []storage.Assert {
	out := make([]storage.Assert, 0, len(v.asserts))
	for _, s := range slices.Sorted(maps.Keys(v.asserts)) {
		out = append(out, storage.Assert{Subject: s, At: v.asserts[s]})
	}
	return out
}

// Position is the last folded position.
func (v *View) Position() int64 {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	return v.d.next - 1
}

// Rules by which the router's own code judges. A start puts the current ones in
// force before any order is judged, so new orders are always judged by these; the
// fold and auditors meet earlier ones.
func (v *View) Rules() intents.Rules {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	return v.d.rules
}

// Key implements intents.Keys: the key set in force, and task keys. That a task
// has ended is asked in stage 5, since its orders' duplicates are still answered.
func (v *View) Key(kid string) (intents.Key, error) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectKeys)
	if k, ok := v.d.keys[kid]; ok {
		if k.Revoked {
			return intents.Key{}, intents.Refuse(intents.KeyRevoked, "/sig", "key is revoked")
		}
		return k, nil
	}
	if name, ok := v.d.taskKID[kid]; ok {
		t := v.d.tasks[name]
		return intents.Key{KID: kid, Role: intents.RoleTask, Public: t.public, Task: name}, nil
	}
	return intents.Key{}, intents.Refuse(intents.KeyUnknown, "/sig", "no key with this kid is in force")
}

// Revoked says since when grants of a user are dead; zero: they are not.
func (v *View) Revoked(tenant, sub string) time.Time {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectGrants(tenant, sub))
	return v.d.revoked[tenant+"/"+sub]
}

// Capabilities of roles in a tenant; known is false for a tenant that is not there.
func (v *View) Capabilities(tenant string, roles []string) (caps []string, known bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectTenant(tenant))
	t, ok := v.d.tenants[tenant]
	if !ok {
		return nil, false
	}
	for _, r := range roles {
		caps = append(caps, t.roles[r]...)
	}
	return caps, true
}

// UserRoles of a user with a row; found is false without one.
func (v *View) UserRoles(tenant, user string) (roles []string, found, disabled bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectTenant(tenant))
	t, ok := v.d.tenants[tenant]
	if !ok {
		return nil, false, false
	}
	u, ok := t.users[user]
	return u.Roles, ok, u.Disabled
}

// Pin of a skill in a tenant.
func (v *View) Pin(tenant, skill string) (intents.Pin, bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectTenant(tenant))
	t, ok := v.d.tenants[tenant]
	if !ok {
		return intents.Pin{}, false
	}
	p, ok := t.pins[skill]
	return p, ok
}

// Pins of a tenant, by name.
func (v *View) Pins(tenant string) []intents.Pin {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectTenant(tenant))
	t, ok := v.d.tenants[tenant]
	if !ok {
		return nil
	}
	out := make([]intents.Pin, 0, len(t.pins))
	for _, name := range slices.Sorted(maps.Keys(t.pins)) {
		out = append(out, t.pins[name])
	}
	return out
}

// TenantData is what policies see of a tenant as data.
func (v *View) TenantData(tenant string) map[string]json.RawMessage {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectTenant(tenant))
	t, ok := v.d.tenants[tenant]
	if !ok {
		return nil
	}
	return maps.Clone(t.data)
}

// relyPolicy makes a decision rest on all that its policy answers from: the tree
// in force and the tenant's data. A decision calls it before it takes an engine,
// so that an engine older than what it relies on is never committed on.
func (v *View) relyPolicy(tenant string) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectPolicy)
	v.rely(subjectTenant(tenant))
}

// PolicyDigest in force by the record.
func (v *View) PolicyDigest() string {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectPolicy)
	return v.d.policyDigest
}
