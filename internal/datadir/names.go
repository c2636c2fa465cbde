package datadir

import (
	"encoding/json"
	"fmt"
	"slices"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/workflows"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
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

// UnmatchedInPolicy finds the names in a policy that nothing in any tenant has, nor the catalog. Types
// are not judged without one.
func UnmatchedInPolicy(e *policies.Engine, d *state.State, types *catalog.Catalog, declared []SkillVersion) (out []Unmatched) {
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
			known = types == nil
			if !known {
				_, known = types.Lookup(n.Name)
			}
		}
		if !known {
			out = append(out, Unmatched{Where: n.Where(), Name: n.Name, Kind: n.Kind})
		}
	}
	return out
}

// nameAgent is the kind of the names of agents.
const nameAgent policies.NameKind = "agent"

// UnmatchedNames finds the names of skills in the rows of a tenant, its agents and its workflows that
// match no approved skill and none that a server declares, and those of agents in its schedules. What system
// has is for all tenants. Names of roles and types that are not there are refused when they are put.
func UnmatchedNames(d *state.State, tenant string, declared []SkillVersion) (out []Unmatched) {
	rows, _ := d.Rows(tenant)
	in := []state.TenantRows{rows}
	if tenant == keydir.LocalTenant {
		for _, other := range d.Tenants() {
			of, _ := d.Rows(other)
			in = append(in, of)
		}
	}
	named := func(name string, like func(intents.Pin, string) bool) bool {
		return slices.ContainsFunc(in, func(rows state.TenantRows) bool {
			return slices.ContainsFunc(rows.Skills, func(p intents.Pin) bool { return like(p, name) }) ||
				slices.ContainsFunc(declared, func(v SkillVersion) bool {
					return v.Declared && v.For(rows.Tenant) && like(intents.Pin{Skill: v.Name}, name)
				})
		})
	}
	miss := func(where string, like func(intents.Pin, string) bool, names ...string) {
		for _, name := range names {
			if !named(name, like) {
				out = append(out, Unmatched{tenant, where, name, policies.NameSkill})
			}
		}
	}
	id := func(p intents.Pin, name string) bool { return intents.Like(name, p.Skill) }
	var approval struct{ Skills []string }
	var allowed []string
	_ = json.Unmarshal(rows.Data["approval"], &approval) // what cannot be read is denied elsewhere
	_ = json.Unmarshal(rows.Data["skills_allow"], &allowed)
	miss("data approval", intents.Pin.Named, approval.Skills...)
	miss("data skills_allow", intents.Pin.Named, allowed...)
	for _, k := range rows.APIKeys {
		if !k.Revoked {
			miss("API key "+k.ID, id, k.Tools...)
		}
	}
	for _, a := range d.ScopesOf(tenant).Agents {
		if a.Remote {
			continue
		}
		miss("agent "+a.Name, id, a.Skills...)
		for _, server := range a.Servers {
			if server != agents.AllServers {
				miss("agent "+a.Name, id, server+".*")
			}
		}
	}
	for _, g := range d.ScopesOf(tenant).Workflows {
		for _, n := range g.Nodes {
			if n.Type == workflows.Function {
				miss("workflow "+g.WorkflowID, intents.Pin.Named, n.Fn)
			}
		}
	}
	return append(out, unmatchedInSchedules(d, tenant)...)
}

// unmatchedInSchedules finds schedules of agents that are not there, or not any more.
func unmatchedInSchedules(d *state.State, tenant string) (out []Unmatched) {
	there := d.AgentsOf(tenant)
	for _, x := range d.TenantSchedules(tenant) {
		if x.Agent != "" && !slices.Contains(there, x.Agent) {
			out = append(out, Unmatched{tenant, "schedule " + x.ID + " of user " + x.User, x.Agent, nameAgent})
		}
	}
	return out
}
