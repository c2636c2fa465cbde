package state

import (
	"encoding/json"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Place is where a tenant lives, if it has not always lived in this log. A tenant that has
// left, or has not arrived yet, begins nothing; what is open may end.
type Place struct {
	To   string `json:"to,omitempty"`   // origin of the log that it has left for
	Left int64  `json:"left,omitempty"` // position of the record that says so

	Came    *catalog.Came `json:"came,omitempty"` // where it came from
	At      int64         `json:"at,omitempty"`   // position of the record that says so
	Arrived bool          `json:"arrived,omitempty"`
}

// coming says that the tenant came and has not arrived.
func (p Place) coming() bool { return p.Came != nil && !p.Arrived }

// begins are the orders of the router that begin something for their tenant.
var begins = []string{TypePlanOpen, TypeWorkflowStart, TypeRunReplay, TypeSchedulePut}

// settled refuses an order of the router that begins something for a tenant that has left
// or has not arrived, and one that changes what a tenant has left with.
func (v *View) settled(o Order) error {
	switch {
	case slices.Contains(begins, o.Type):
		return v.lives(o.Tenant, "/actor/tenant")
	case o.Type == TypeRegistryPush || o.Type == TypeSkillApprove || o.Type == TypeAdminPut:
		a, err := argsOf[catalog.AdminPut](o) // all of them name the tenant so
		if err != nil {
			return err
		}
		narrows := a.Moved != nil || a.User != nil && a.User.Disabled || a.APIKey != nil && a.APIKey.Revoked
		id := Named(o.Tenant, a.Tenant)
		if t := v.s.dir.tenants[id]; a.New == nil && !narrows && t != nil && t.Place.To != "" {
			return v.lives(id, "/intent/args/tenant")
		}
	}
	return nil
}

// lives refuses what only a tenant may do that lives in this log.
func (v *View) lives(tenant, pointer string) error {
	v.rely(SubjectTenant(tenant))
	t := v.s.dir.tenants[tenant]
	if t == nil || t.Place.To == "" && !t.Place.coming() {
		return nil
	}
	reason, hint := "the tenant has moved to the log "+t.Place.To, "send it to the cell of that log"
	if t.Place.To == "" {
		reason, hint = "the tenant has not arrived yet from the log "+t.Place.Came.Origin, "send it again when writ cell move-tenant has ended"
	}
	x := intents.Refuse(intents.MalformedArgs, pointer, reason)
	x.Hint = hint
	return x
}

// mayAct refuses, for such a tenant, an order of an executor that belongs to no open plan. What
// changes nothing may be read.
func (v *View) mayAct(tenant, plan, effect string) error {
	if effect == string(catalog.Pure) || v.lives(tenant, "") == nil {
		return nil
	}
	v.rely(SubjectPlanState(tenant, plan))
	if p := v.s.plans[tenant+"/"+plan]; p != nil && !final(p.View.Status) {
		return nil
	}
	return v.lives(tenant, "/actor/tenant")
}

// legalNew says whether a tenant may begin: there is none of its name or, where it came from
// another log, it has left this one before, or has not arrived.
func (s *State) legalNew(a catalog.Tenant) error {
	t := s.dir.tenants[a.ID]
	switch {
	case a.Came != nil && s.rules < intents.RulesMoves:
		return illegal("/intent/args/new_tenant/came", "tenants do not move in this log yet")
	case a.Came != nil && a.Came.Origin == s.origin:
		return illegal("/intent/args/new_tenant/came/origin", "is this log")
	case t != nil && (a.Came == nil || t.Place.To == "" && !t.Place.coming()):
		return illegal("/intent/args/new_tenant/id", "a tenant with this id exists")
	}
	return nil
}

// legalMove says whether a tenant may leave, stay after all, or have arrived.
func (s *State) legalMove(o Order, a catalog.AdminPut, id string) error {
	at := s.dir.tenants[id].Place
	switch m := a.Moved; {
	case m == nil && a.Arrived == nil:
		return nil
	case s.rules < intents.RulesMoves:
		return illegal("/intent/args", "tenants do not move in this log yet")
	case o.Tenant != systemTenant:
		return illegal("/actor/tenant", "an operator of system moves tenants")
	case m == nil && !at.coming():
		return illegal("/intent/args/arrived", "the tenant is not on its way here")
	case m == nil:
		return nil
	case m.Origin == "" && at.To == "":
		return illegal("/intent/args/moved", "the tenant has not left")
	case m.Origin == "":
		return nil
	case id == systemTenant:
		return illegal("/intent/args/tenant", "system is each log's own")
	case m.Origin == s.origin:
		return illegal("/intent/args/moved/origin", "is this log")
	case at.To != "":
		return illegal("/intent/args/moved", "the tenant has left for "+at.To)
	case at.coming():
		return illegal("/intent/args/moved", "the tenant has not arrived yet")
	}
	return nil
}

// came begins a tenant that came from another log, with nothing; whatever stood here of an
// earlier stay is over.
func (s *State) came(o Order, a catalog.Tenant) {
	maps.DeleteFunc(s.apiKeys, func(_ string, row apiKeyRow) bool { return row.Tenant == a.ID })
	t := s.begin(a.ID, nil, o.Position)
	t.Place = Place{Came: a.Came, At: o.Position}
	if len(s.retained[a.ID]) > 0 {
		s.foldRetention(catalog.Data{Key: RetentionKey, Value: json.RawMessage("null")}, a.ID, o.At)
	}
}

// move applies what legalMove has judged.
func (t *tenant) move(a catalog.AdminPut, position int64) {
	switch {
	case a.Arrived != nil:
		t.Place.Arrived = true
	case a.Moved.Origin == "":
		t.Place.To, t.Place.Left = "", 0
	default:
		t.Place.To, t.Place.Left = a.Moved.Origin, position
	}
}

// Work is what of a tenant is open: ids of plans and runs, intent_ids of orders that wait for
// people and of others without an outcome. Schedules, "user/id", open nothing while the tenant
// has left.
type Work struct {
	Plans     []string `json:"plans,omitempty"`
	Runs      []string `json:"runs,omitempty"`
	Holds     []string `json:"holds,omitempty"`
	Orders    []string `json:"orders,omitempty"`
	Schedules []string `json:"schedules,omitempty"`
}

// Drained says that nothing of the tenant is open.
func (w Work) Drained() bool { return len(w.Plans)+len(w.Runs)+len(w.Holds)+len(w.Orders) == 0 }

// Work of a tenant, sorted.
func (s *State) Work(tenant string) (w Work) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.plans {
		switch {
		case p.View.TenantID != tenant || final(p.View.Status):
		case p.Run != nil:
			w.Runs = append(w.Runs, p.View.PlanID)
		default:
			w.Plans = append(w.Plans, p.View.PlanID)
		}
	}
	for _, x := range s.orders {
		_, held := s.holds.byID[x.ID]
		switch {
		case x.Tenant != tenant:
		case held:
			w.Holds = append(w.Holds, x.ID)
		default:
			w.Orders = append(w.Orders, x.ID)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.schedules)) {
		if x := s.schedules[name]; x.Tenant == tenant {
			w.Schedules = append(w.Schedules, x.User+"/"+x.ID)
		}
	}
	for _, list := range [][]string{w.Plans, w.Runs, w.Holds, w.Orders} {
		slices.Sort(list)
	}
	return w
}
