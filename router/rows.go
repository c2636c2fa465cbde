package router

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TenantRows are the directory data of one tenant, as operators put them, sorted.
type TenantRows struct {
	Tenant  string                     `json:"tenant"`
	Roles   []catalog.RoleData         `json:"roles"`
	Users   []catalog.User             `json:"users"`
	APIKeys []catalog.APIKey           `json:"api_keys"` // revoked ones too
	Skills  []intents.Pin              `json:"skills"`
	Data    map[string]json.RawMessage `json:"data"`
}

// Rows of a tenant; false: there is no such tenant.
func (d *Directory) Rows(id string) (TenantRows, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t, ok := d.tenants[id]
	if !ok {
		return TenantRows{}, false
	}
	out := TenantRows{Tenant: id, Roles: []catalog.RoleData{}, Users: []catalog.User{}, APIKeys: []catalog.APIKey{}, Skills: []intents.Pin{}, Data: maps.Clone(t.data)}
	for _, name := range slices.Sorted(maps.Keys(t.roles)) {
		out.Roles = append(out.Roles, catalog.RoleData{Role: name, Capabilities: slices.Clone(t.roles[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(t.users)) {
		out.Users = append(out.Users, t.users[name])
	}
	for _, name := range slices.Sorted(maps.Keys(t.pins)) {
		out.Skills = append(out.Skills, t.pins[name])
	}
	for _, k := range d.apiKeys {
		if k.Tenant == id {
			out.APIKeys = append(out.APIKeys, k.APIKey)
		}
	}
	slices.SortFunc(out.APIKeys, func(a, b catalog.APIKey) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Hash, b.Hash)) })
	return out, true
}
