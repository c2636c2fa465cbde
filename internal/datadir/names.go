package datadir

import (
	"encoding/json"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// Unmatched is a name in what operators have put down for a tenant that names nothing, so that
// it has no effect: most likely it is misspelt.
type Unmatched struct {
	Tenant      string // empty: of all
	Where, Name string
	Kind        policies.NameKind
}

func (u Unmatched) String() string {
	if u.Tenant == "" {
		return fmt.Sprintf("%s: %q matches no %s", u.Where, u.Name, u.Kind)
	}
	return fmt.Sprintf("%s of tenant %s: %q matches no %s", u.Where, u.Tenant, u.Name, u.Kind)
}

// UnmatchedInPolicy finds the names in a policy that nothing in any tenant has, nor the catalog.
func UnmatchedInPolicy(e *policies.Engine, d *state.State, types *catalog.Catalog, declared []SkillVersion) (out []Unmatched) {
	if types == nil {
		types = catalog.Builtin()
	}
	there := map[policies.NameKind]map[string]bool{policies.NameSkill: {}, policies.NameRole: {}, policies.NameTenant: {}}
	for _, v := range declared {
		there[policies.NameSkill][v.Name] = v.Declared
	}
	for _, tenant := range d.Tenants() {
		there[policies.NameTenant][tenant] = true
		rows, _ := d.Rows(tenant)
		for _, pin := range rows.Skills {
			there[policies.NameSkill][pin.Skill] = true
		}
		for _, role := range rows.Roles {
			there[policies.NameRole][role.Role] = true
		}
	}
	for _, n := range e.Names() {
		known := there[n.Kind][n.Name]
		if n.Kind == policies.NameType {
			_, known = types.Lookup(n.Name)
		}
		if !known {
			out = append(out, Unmatched{Where: n.Where(), Name: n.Name, Kind: n.Kind})
		}
	}
	return out
}

// UnmatchedNames finds the names of skills in the rows of a tenant that match no approved skill and
// none that a server declares. Names of roles and types that are not there are refused when they are put.
func UnmatchedNames(rows state.TenantRows, declared []SkillVersion) (out []Unmatched) {
	miss := func(where string, names []string, known func(string) bool) {
		for _, name := range names {
			if !known(name) {
				out = append(out, Unmatched{rows.Tenant, where, name, policies.NameSkill})
			}
		}
	}
	skill := func(like func(intents.Pin, string) bool) func(string) bool {
		return func(name string) bool {
			return slices.ContainsFunc(rows.Skills, func(p intents.Pin) bool { return like(p, name) }) ||
				slices.ContainsFunc(declared, func(v SkillVersion) bool {
					return v.Declared && v.For(rows.Tenant) && like(intents.Pin{Skill: v.Name}, name)
				})
		}
	}
	id := func(p intents.Pin, name string) bool { return intents.Like(name, p.Skill) }
	var approval struct{ Skills []string }
	var allowed []string
	_ = json.Unmarshal(rows.Data["approval"], &approval) // what cannot be read is denied elsewhere
	_ = json.Unmarshal(rows.Data["skills_allow"], &allowed)
	miss("data approval", approval.Skills, skill(intents.Pin.Named))
	miss("data skills_allow", allowed, skill(intents.Pin.Named))
	for _, k := range rows.APIKeys {
		if !k.Revoked {
			miss("API key "+k.ID, k.Tools, skill(id))
		}
	}
	return out
}
