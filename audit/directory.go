package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage/ledger"
)

// directory is the directory data in force from a position on. It is never
// changed: what changes it makes another.
type directory struct {
	at      int64 // position of the record that made it
	tenants map[string]*tenantData
}

type tenantData struct {
	roles map[string][]string
	users map[string]catalog.User
	pins  map[string]intents.FactSkill
	data  map[string]json.RawMessage
	keys  map[string]catalog.APIKey // by id, without revoked ones
}

// with is the directory after a change of one tenant, who may be new.
func (d *directory) with(at int64, tenant string, change func(*tenantData)) *directory {
	next := &directory{at: at, tenants: maps.Clone(d.tenants)}
	t := &tenantData{roles: map[string][]string{}, users: map[string]catalog.User{}, pins: map[string]intents.FactSkill{}, data: map[string]json.RawMessage{}, keys: map[string]catalog.APIKey{}}
	if old := d.tenants[tenant]; old != nil {
		t = &tenantData{maps.Clone(old.roles), maps.Clone(old.users), maps.Clone(old.pins), maps.Clone(old.data), maps.Clone(old.keys)}
	}
	change(t)
	next.tenants[tenant] = t
	return next
}

// capabilities of roles in a tenant; known is false for one that is not there.
func (d *directory) capabilities(tenant string, roles []string) (caps []string, known bool) {
	t, ok := d.tenants[tenant]
	if !ok {
		return nil, false
	}
	for _, r := range roles {
		caps = append(caps, t.roles[r]...)
	}
	return caps, true
}

// policyData is the directory as policies see it.
func (d *directory) policyData() policies.Data {
	out := policies.Data{
		Tenants: map[string]map[string]json.RawMessage{}, Roles: map[string][]string{},
		Pins: map[string]map[string]intents.FactSkill{}, Approvers: map[string][]string{},
	}
	for id, t := range d.tenants {
		out.Tenants[id], out.Pins[id] = t.data, t.pins
		for _, u := range t.users {
			if slices.Contains(u.Roles, "approver") && !u.Disabled {
				out.Approvers[id] = append(out.Approvers[id], u.UserID)
			}
		}
	}
	return out
}

// begin gives a new tenant what it has by the rules in force.
func (f *fold) begin(t *tenantData) {
	t.setRoles(f.roles)
	if f.rules >= intents.RulesStrict {
		t.data["approval"] = json.RawMessage(`{"once":true}`)
	}
}

// adminPut is the directory after an admin.put; a new tenant begins as begin says.
func (d *directory) adminPut(at int64, args json.RawMessage, actor string, begin func(*tenantData)) (*directory, error) {
	var a catalog.AdminPut
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	if a.New != nil {
		if d.tenants[a.New.ID] != nil {
			return nil, errors.New("a tenant with this id exists")
		}
		return (&directory{tenants: without(d.tenants, a.New.ID)}).with(at, a.New.ID, begin), nil
	}
	tenant := named(actor, a.Tenant)
	if d.tenants[tenant] == nil {
		return nil, fmt.Errorf("admin.put for a tenant that is not there")
	}
	return d.with(at, tenant, func(t *tenantData) {
		switch {
		case a.APIKey != nil:
			t.putKey(*a.APIKey)
		case a.User != nil:
			t.users[a.User.UserID] = *a.User
		case a.Role != nil:
			t.roles[a.Role.Role] = a.Role.Capabilities
		case a.Data != nil:
			t.data[a.Data.Key] = a.Data.Value
		}
	}), nil
}

// putKey puts an API key in the place of what was known under its hash.
func (t *tenantData) putKey(k catalog.APIKey) {
	maps.DeleteFunc(t.keys, func(_ string, other catalog.APIKey) bool { return other.Hash == k.Hash })
	if !k.Revoked {
		t.keys[k.ID] = k
	}
}

// rolesNow cuts the roles of a grant to what its API key and the row of its user
// give; false: the key or the user is not there any more.
func (d *directory) rolesNow(g *intents.Grant) ([]string, bool) {
	t := d.tenants[g.Tenant]
	if t == nil {
		return nil, false
	}
	roles := slices.Clone(g.Roles)
	if id := intents.KeyOfClient(g.Act.Client); id != "" {
		k, there := t.keys[id]
		if !there || k.UserID != g.Subject && !k.MayAssertUser {
			return nil, false
		}
		roles = slices.DeleteFunc(roles, func(r string) bool { return !slices.Contains(k.MaxRoles, r) })
	}
	if u, there := t.users[g.Subject]; there {
		if u.Disabled {
			return nil, false
		}
		roles = slices.DeleteFunc(roles, func(r string) bool { return !slices.Contains(u.Roles, r) })
	}
	return roles, true
}

func (t *tenantData) setRoles(roles []catalog.RoleData) {
	for _, r := range roles {
		t.roles[r.Role] = r.Capabilities
	}
}

func without(m map[string]*tenantData, id string) map[string]*tenantData {
	out := maps.Clone(m)
	delete(out, id)
	return out
}

// approve is the directory after a skill.approve.
func (d *directory) approve(at int64, args json.RawMessage, actor string) (*directory, error) {
	var a catalog.SkillApprove
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	tenant := named(actor, a.Tenant)
	if d.tenants[tenant] == nil {
		return nil, fmt.Errorf("skill.approve for a tenant that is not there")
	}
	return d.with(at, tenant, func(t *tenantData) {
		t.pins[a.Skill] = intents.FactSkill{Name: a.Skill, Digest: a.Digest, Effect: string(a.Effect)}
	}), nil
}

// named is the tenant that an operator's order acts on.
func named(actor, tenant string) string {
	if tenant == "" {
		return actor
	}
	return tenant
}

// foreign says that a control order names another tenant than its actor's,
// which only operators of system may.
func foreign(actor, typ string, args json.RawMessage) bool {
	if actor == ledger.SystemTenant {
		return false
	}
	if typ == "policy.push" {
		return true // a policy is every tenant's
	}
	var a struct {
		Tenant string          `json:"tenant"`
		New    json.RawMessage `json:"new_tenant"`
	}
	return json.Unmarshal(args, &a) != nil || a.New != nil || (a.Tenant != "" && a.Tenant != actor)
}

// capabilityTenantMemory is a capability of its own from intents.RulesStrict on:
// before, it was a part of memory:write.
const capabilityTenantMemory = "memory:write:tenant"

// given is covered by the rules of a position.
func given(rules intents.Rules, have []string, need string) bool {
	if need == capabilityTenantMemory && rules >= intents.RulesStrict {
		have = slices.DeleteFunc(slices.Clone(have), func(c string) bool { return strings.Count(c, ":") < 2 })
	}
	return covered(have, need)
}

// covered: area:verb[:resource], where * stands for all of a part and a
// capability without resource covers every resource.
func covered(have []string, need string) bool {
	n := strings.SplitN(need, ":", 3)
	return len(n) >= 2 && slices.ContainsFunc(have, func(c string) bool {
		h := strings.SplitN(c, ":", 3)
		if len(h) < 2 || (h[0] != "*" && h[0] != n[0]) || (h[1] != "*" && h[1] != n[1]) {
			return false
		}
		return len(h) == 2 || h[2] == "*" || (len(n) == 3 && h[2] == n[2])
	})
}
