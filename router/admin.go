package router

import (
	"encoding/json"
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// systemTenant is the tenant whose operators may name another one.
const systemTenant = "system"

// adminTenant is the tenant that an operator's order acts on.
func adminTenant(actor, named string) string {
	if named == "" {
		return actor
	}
	return named
}

// legalAdmin judges a control order on the fold and says its effect.
func (v *View) legalAdmin(e *intents.Envelope, now time.Time) (effect, error) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	accepted := func(s ...storage.Subject) (effect, error) {
		for _, x := range s {
			v.rely(x)
		}
		return effect{catalog.Accepted{Accepted: true}, s}, nil
	}
	if foreignTenant(e) {
		return effect{}, errForeign() // and not a word of whether it is there
	}
	actor := e.Principal().Tenant
	switch e.Type() {
	case "key.put":
		a, err := argsOf[catalog.KeyPut](e)
		if err != nil {
			return effect{}, err
		}
		set, _, err := intents.OpenKeySet(a.KeySet, v.d.root)
		if err != nil {
			return effect{}, illegal("/intent/args/key_set", err.Error())
		}
		if set.Version != v.d.keySet.Version+1 || set.Prev != intents.Digest([]byte(v.d.keySetToken)) {
			return effect{}, illegal("/intent/args/key_set", "not the successor of the key set in force")
		}
		return accepted(subjectKeys)
	case "admin.put":
		a, err := argsOf[catalog.AdminPut](e)
		if err != nil {
			return effect{}, err
		}
		if a.New != nil {
			if v.d.tenants[a.New.ID] != nil {
				return effect{}, illegal("/intent/args/new_tenant/id", "a tenant with this id exists")
			}
			return accepted(subjectTenant(a.New.ID))
		}
		t := adminTenant(actor, a.Tenant)
		if v.d.tenants[t] == nil {
			return effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		if err := v.d.legalAPIKey(a.APIKey, t); err != nil {
			return effect{}, err
		}
		if err := legalRetention(a.Data, t); err != nil {
			return effect{}, err
		}
		if err := v.d.legalPut(a, t); err != nil {
			return effect{}, err
		}
		touches := []storage.Subject{subjectTenant(t)}
		if v.d.endsPlans(a.User) {
			touches = append(touches, v.plansOf(t, a.User.UserID)...)
		}
		return accepted(touches...)
	case "skill.approve":
		a, err := argsOf[catalog.SkillApprove](e)
		if err != nil {
			return effect{}, err
		}
		t := adminTenant(actor, a.Tenant)
		if v.d.tenants[t] == nil {
			return effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		return accepted(subjectTenant(t))
	case typePush:
		if err := v.legalPush(e); err != nil {
			return effect{}, err
		}
		return accepted(subjectPolicy)
	case "grant.revoke":
		a, err := argsOf[catalog.GrantRevoke](e)
		if err != nil {
			return effect{}, err
		}
		// The schema's times are RFC 3339's; the fold's are Go's, which are fewer.
		before, err := time.Parse(time.RFC3339Nano, a.Before)
		if err != nil {
			return effect{}, illegal("/intent/args/before", "not a time of the calendar with upper-case T and Z")
		}
		if before.After(now.Add(intents.Leeway)) { // nothing takes it back: it would lock the user out until then
			return effect{}, illegal("/intent/args/before", "lies in the future: it ends the grants that there are; to keep somebody out disable the user")
		}
		if v.d.rules >= intents.RulesStrict && v.d.tenants[a.Tenant] == nil { // it would end nothing, and say yes
			return effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		return accepted(append(v.plansOf(a.Tenant, a.Sub), subjectGrants(a.Tenant, a.Sub))...)
	case "order.resolve":
		a, err := argsOf[catalog.OrderResolve](e)
		if err != nil {
			return effect{}, err
		}
		x, ok := v.d.unknown[a.IntentID]
		if !ok || (x.tenant != actor && actor != systemTenant) {
			return effect{}, illegal("/intent/args/intent_id", "no indeterminate order of this tenant has this intent_id")
		}
		touches := []storage.Subject{subjectOrder(a.IntentID)}
		if x.plan != nil {
			touches = append(touches, subjectPlan(x.tenant, x.plan.view.PlanID))
		}
		return accepted(touches...)
	case typeErase:
		a, err := argsOf[catalog.RecordErase](e)
		if err != nil {
			return effect{}, err
		}
		if x, open := v.d.unknown[a.IntentID]; open && x.tenant == adminTenant(actor, a.Tenant) {
			return effect{}, illegal("/intent/args/intent_id", "nobody knows how the order ended: resolve it first")
		}
		return accepted(subjectOrder(a.IntentID))
	default:
		return effect{}, fmt.Errorf("no control order %s", e.Type())
	}
}

// legalAPIKey: a key stays with the tenant that put it, and of the keys of a
// tenant that are not revoked only one has an id.
func (d *Directory) legalAPIKey(k *catalog.APIKey, tenant string) error {
	if k == nil {
		return nil
	}
	if row, ok := d.apiKeys[k.Hash]; ok && row.Tenant != tenant {
		return illegal("/intent/args/api_key/hash", "not a key of this tenant")
	}
	if other, ok := d.tenants[tenant].keys[k.ID]; ok && other.Hash != k.Hash {
		return illegal("/intent/args/api_key/id", "another key has this id: revoke it first")
	}
	return nil
}

func errForeign() error {
	return intents.Refuse(intents.RBACForbidden, "/intent/args/tenant", "only operators of system may name another tenant")
}

// foreignTenant is the tenant named by a control order that is not the actor's
// own; only operators of system may name one.
func foreignTenant(e *intents.Envelope) bool {
	actor := e.Principal().Tenant
	if actor == systemTenant {
		return false
	}
	if e.Type() == typePush {
		return true // a policy is every tenant's
	}
	var a struct {
		Tenant string          `json:"tenant"`
		New    json.RawMessage `json:"new_tenant"`
	}
	if json.Unmarshal(e.Args(), &a) != nil {
		return true
	}
	return a.New != nil || (a.Tenant != "" && a.Tenant != actor)
}

// foldAdmin applies a control order.
func (d *Directory) foldAdmin(o decided) error {
	d.rests = append(d.rests, o.position)
	switch o.typ {
	case "key.put":
		var a catalog.KeyPut
		if err := json.Unmarshal(o.args, &a); err != nil {
			return err
		}
		set, keys, err := intents.OpenKeySet(a.KeySet, d.root)
		if err != nil {
			return err
		}
		d.keySet, d.keySetToken, d.keys = set, a.KeySet, keys
	case "admin.put":
		var a catalog.AdminPut
		if err := json.Unmarshal(o.args, &a); err != nil {
			return err
		}
		return d.foldAdminPut(a, adminTenant(o.tenant, a.Tenant), o.at)
	case "skill.approve":
		var a catalog.SkillApprove
		if err := json.Unmarshal(o.args, &a); err != nil {
			return err
		}
		t := d.tenants[adminTenant(o.tenant, a.Tenant)]
		if t == nil {
			return fmt.Errorf("skill.approve for unknown tenant")
		}
		t.pins[a.Skill] = intents.Pin{Skill: a.Skill, Digest: a.Digest, Effect: string(a.Effect), Server: a.Server}
	case typePush:
		return d.foldPush(o.args)
	case "grant.revoke":
		var a catalog.GrantRevoke
		if err := json.Unmarshal(o.args, &a); err != nil {
			return err
		}
		before, err := time.Parse(time.RFC3339Nano, a.Before)
		if err != nil {
			return err
		}
		if before = d.rules.RevokedBefore(before); before.After(d.revoked[a.Tenant+"/"+a.Sub]) {
			d.revoked[a.Tenant+"/"+a.Sub] = before // the latest stands
		}
		d.endPlansOf(a.Tenant, a.Sub, "the user's grants were revoked", o.at)
	case "order.resolve":
		var a catalog.OrderResolve
		if err := json.Unmarshal(o.args, &a); err != nil {
			return err
		}
		x, ok := d.unknown[a.IntentID]
		if !ok {
			return fmt.Errorf("order.resolve of an order that is not indeterminate")
		}
		delete(d.unknown, a.IntentID)
		d.settled[x.position] = a.Status
		if x.fact != nil {
			x.fact.Status, x.fact.Code = string(intents.Done), intents.OK
			if a.Status == string(intents.Failed) {
				x.fact.Status, x.fact.Code = undelivered, intents.Indeterminate
			}
		}
	case typeErase:
		return d.foldErase(o)
	default:
		return fmt.Errorf("no fold for %s", o.typ)
	}
	return nil
}

func (d *Directory) foldAdminPut(a catalog.AdminPut, tenantID string, at time.Time) error {
	if a.New != nil {
		d.addTenant(a.New.ID, DefaultRoles())
		if d.rules >= intents.RulesStrict {
			d.holdOnce(a.New.ID)
		}
		return nil
	}
	t := d.tenants[tenantID]
	if t == nil {
		return fmt.Errorf("admin.put for unknown tenant")
	}
	switch {
	case a.APIKey != nil:
		d.foldAPIKey(*a.APIKey, tenantID)
	case a.User != nil:
		t.users[a.User.UserID] = *a.User
		if d.endsPlans(a.User) {
			d.endPlansOf(tenantID, a.User.UserID, "the user was disabled", at)
		}
	case a.Role != nil:
		t.roles[a.Role.Role] = a.Role.Capabilities
	case a.Data != nil:
		t.data[a.Data.Key] = a.Data.Value
		d.foldRetention(*a.Data, tenantID, at)
	}
	return nil
}

// DefaultRoles are the roles that every new tenant begins with.
func DefaultRoles() []catalog.RoleData {
	return []catalog.RoleData{
		{Role: "user", Capabilities: []string{
			"plans:*", "memory:*", "files:*", "artifacts:*", "python:run", "skills:read", "skills:call", "sessions:*",
			"souls:read", "souls:write:own", "logs:read",
		}},
		{Role: "auditor", Capabilities: []string{"audit:read", "plans:read", "policy:explain"}},
		{Role: roleApprover, Capabilities: []string{"runs:approve"}},
		{Role: "admin", Capabilities: []string{"admin:*", "souls:*", "plans:*", "policy:explain"}},
	}
}
