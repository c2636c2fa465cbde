package datadir

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/state/workflows"
)

// UnknownName is a name in a tenant's settings that matches nothing and so has no effect: most
// likely it is misspelt.
type UnknownName struct {
	Tenant      string // empty: of all
	Where, Name string
	Kind        policies.NameKind
}

func (u UnknownName) String() string {
	if u.Tenant == "" {
		return fmt.Sprintf("%s: %q matches no %s", u.Where, u.Name, u.Kind)
	}
	return fmt.Sprintf("%s of tenant %s: %q matches no %s", u.Where, u.Tenant, u.Name, u.Kind)
}

// ofServer reports whether a name, in which * matches any characters, may name a skill of one of
// the servers: a name without a server may name one of any.
func ofServer(name string, servers []string) bool {
	head, _, any := strings.Cut(name, "*")
	return slices.ContainsFunc(servers, func(server string) bool {
		return !strings.Contains(name, ".") || strings.HasPrefix(head, server+".") || any && strings.HasPrefix(server+".", head)
	})
}

// UnmatchedInPolicy finds the names in a policy that nothing in any tenant has, nor the catalog. Types
// are not judged without one, nor are skills that may be of servers that are down.
func UnmatchedInPolicy(e *policies.Engine, d *state.State, types *catalog.Catalog, declared []approval.Version, down ...string) (out []UnknownName) {
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
		if !known && (n.Kind != policies.NameSkill || !ofServer(n.Name, down)) {
			out = append(out, UnknownName{Where: n.Where(), Name: n.Name, Kind: n.Kind})
		}
	}
	return out
}

// nameAgent is the kind of the names of agents.
const nameAgent policies.NameKind = "agent"

// WhereApproved is where the name of an approved skill stands.
func WhereApproved(skill string) string { return "approval of " + skill }

// UnmatchedNames finds the names of skills in the rows of a tenant, its agents and its workflows
// that match no approved and no declared skill, and cannot be of a server that is down; approved
// skills that no server declares, if the declarations are known; and missing agents in its
// schedules. The rows of system apply to all tenants. Unknown names of roles and types are refused
// when they are put.
func UnmatchedNames(d *state.State, tenant string, declared []approval.Version, down ...string) (out []UnknownName) {
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
				slices.ContainsFunc(declared, func(v approval.Version) bool {
					return v.Declared && v.For(rows.Tenant) && like(intents.Pin{Skill: v.Name}, name)
				})
		})
	}
	miss := func(where string, like func(intents.Pin, string) bool, names ...string) {
		for _, name := range names {
			if !named(name, like) && !ofServer(name, down) {
				out = append(out, UnknownName{tenant, where, name, policies.NameSkill})
			}
		}
	}
	for _, p := range rows.Skills {
		declares := func(v approval.Version) bool {
			return v.Declared && v.For(tenant) && (v.Name == p.Skill || v.Digest == p.Digest)
		}
		if len(declared) > 0 && !slices.ContainsFunc(declared, declares) && !ofServer(p.Skill, down) {
			out = append(out, UnknownName{tenant, WhereApproved(p.Skill), p.Skill, policies.NameSkill})
		}
	}
	id := func(p intents.Pin, name string) bool { return intents.Like(name, p.Skill) }
	var approval struct{ Skills []string }
	var allowed []string
	_ = json.Unmarshal(rows.Data["approval"], &approval) // unreadable data is denied elsewhere
	_ = json.Unmarshal(rows.Data["skills_allow"], &allowed)
	miss("data approval", intents.Pin.Matches, approval.Skills...)
	miss("data skills_allow", intents.Pin.Matches, allowed...)
	stopped := d.Stopped(tenant)
	for server := range stopped.Servers {
		miss("data stop", id, server+".*")
	}
	for name := range stopped.Agents {
		if !slices.Contains(d.AgentsOf(tenant), name) {
			out = append(out, UnknownName{tenant, "data stop", name, nameAgent})
		}
	}
	for _, k := range rows.APIKeys {
		if !k.Revoked {
			miss("API key "+k.ID, id, k.Tools...)
			given := func(p intents.Pin, name string) bool { return k.Gives(p.Skill) && id(p, name) }
			miss("API key "+k.ID, given, slices.Sorted(maps.Keys(k.Rename))...)
			miss("API key "+k.ID, given, slices.Sorted(maps.Keys(k.Group))...)
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
				miss("workflow "+g.WorkflowID, intents.Pin.Matches, n.Fn)
			}
		}
	}
	return append(out, unmatchedInSchedules(d, tenant)...)
}

// unmatchedInSchedules finds schedules of agents that are not there, or not any more.
func unmatchedInSchedules(d *state.State, tenant string) (out []UnknownName) {
	there := d.AgentsOf(tenant)
	for _, x := range d.TenantSchedules(tenant) {
		if x.Agent != "" && !slices.Contains(there, x.Agent) {
			out = append(out, UnknownName{tenant, "schedule " + x.ID + " of user " + x.User, x.Agent, nameAgent})
		}
	}
	return out
}
