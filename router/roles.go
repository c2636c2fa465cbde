package router

import (
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// RolesNow are the roles of a grant that API key and user row still give: a grant
// says what they gave when it was minted. disabled: the key or the user is not there
// any more, or the key speaks for the user no more. The decision rests on the tenant's directory data.
func (v *View) RolesNow(g *intents.Grant) (roles []string, disabled bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectTenant(g.Tenant))
	return v.d.rolesNow(g.Tenant, g.Subject, intents.KeyOfClient(g.Act.Client), g.Roles)
}

// rolesOf cuts roles to what the API key and the user's row allow now; a user
// without a row keeps what the key allows.
func (d *Directory) rolesOf(tenantID, user, keyID string, roles []string) (kept []string, disabled bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.rolesNow(tenantID, user, keyID, roles)
}

// rolesNow is rolesOf with the lock held.
func (d *Directory) rolesNow(tenantID, user, keyID string, roles []string) (kept []string, disabled bool) {
	t, ok := d.tenants[tenantID]
	if !ok {
		return nil, true
	}
	if keyID != "" {
		key, ok := t.keys[keyID]
		if !ok || key.UserID != user && !key.MayAssertUser {
			return nil, true
		}
		roles = intersect(roles, key.MaxRoles)
	}
	if u, ok := t.users[user]; ok {
		if u.Disabled {
			return nil, true
		}
		roles = intersect(roles, u.Roles)
	}
	return roles, false
}

func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return !slices.Contains(b, x) })
}

// foldAPIKey puts an API key of a tenant, in the place of what was known under its hash.
func (d *Directory) foldAPIKey(k catalog.APIKey, tenantID string) {
	keys := d.tenants[tenantID].keys
	if before, ok := d.apiKeys[k.Hash]; ok && before.Tenant == tenantID && keys[before.ID].Hash == k.Hash {
		delete(keys, before.ID)
	}
	d.apiKeys[k.Hash] = apiKeyRow{k, tenantID}
	if !k.Revoked {
		keys[k.ID] = k
	}
}
