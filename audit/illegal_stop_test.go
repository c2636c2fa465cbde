package audit_test

import (
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

const ruleSecond = "admin.stop: whoever stopped something lets nothing go on while somebody else could"

var stopMisdeeds = []misdeed{
	{"resumed-alone", "stopped", ruleSecond, "second person", func(d *dishonest) int64 {
		return d.accepted(d.stops("olga", catalog.AdminStop{Resume: true}))
	}},
	{"resumed-through-own-key", "stopped", ruleSecond, "second person", func(d *dishonest) int64 {
		return d.accepted(d.stops("ben", catalog.AdminStop{Resume: true}))
	}},
	{"stopped-as-data", "stopped", "admin.put: its data is not stop", "admin.stop changes it", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: catalog.KeyStop, Value: json.RawMessage("null")}}})
	}},
	{"stopped-nowhere", "stopped", "admin.stop: the tenant is there", "no such tenant", func(d *dishonest) int64 {
		return d.accepted(d.stops("local", catalog.AdminStop{Tenant: "globex", All: true}))
	}},
	{"stopped-by-gateway-of-system", "stopped", "admin.stop: a gateway signs it for no user of system", "key of an operator", func(d *dishonest) int64 {
		o := d.stops("ben", catalog.AdminStop{Tenant: "acme", All: true})
		o.User, o.Tenant, o.Grant = "local", "system", nil
		return d.accepted(o)
	}},
	{"stopped-without-capability", "stopped", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		o := d.stops("ben", catalog.AdminStop{All: true})
		o.Roles = []string{"user"}
		return d.accepted(o)
	}},
	{"stopped-too-many", "stopped", "admin.stop: at most 256 agents and 256 servers are stopped by name", "more than 256", func(d *dishonest) int64 {
		var names []string
		for i := range catalog.MaxStopped {
			names = append(names, fmt.Sprint("s", i))
		}
		d.accepted(d.stops("olga", catalog.AdminStop{Servers: names}))
		return d.accepted(d.stops("olga", catalog.AdminStop{Servers: []string{"one"}}))
	}},
}

// stopped is a tenant whose operator olga has stopped an agent, and has a key under which others stop.
func (d *dishonest) stopped() {
	d.Helper()
	d.acme()
	d.operator = d.AddOperator("default", "olga", "admin")
	d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
		ID: "desk", Hash: intents.Digest([]byte("desk")), UserID: "olga", MaxRoles: []string{"admin"}, MayAssertUser: true,
	}}), intents.OK)
	d.Want(d.Do(d.stops("olga", catalog.AdminStop{Agents: []string{"scout"}, Reason: "It writes to strangers."})), intents.OK)
}

// stops is an admin.stop by local of system, by olga of the tenant, or by a person under her API key.
func (d *dishonest) stops(who string, a catalog.AdminStop) routertest.Intent {
	switch who {
	case "local":
		if a.Tenant == "" {
			a.Tenant = "default"
		}
		return routertest.Intent{By: d.Operator, Type: catalog.TypeAdminStop, Args: a}
	case "olga":
		return routertest.Intent{By: d.operator, User: "olga", Tenant: "default", Roles: []string{"admin"}, Type: catalog.TypeAdminStop, Args: a}
	default:
		return routertest.Intent{By: d.Gateway, User: who, Roles: []string{"admin"}, Type: catalog.TypeAdminStop, Args: a, Ctx: intents.Context{TurnID: "turn_stop"}, Grant: through("desk")}
	}
}

// stopsLegally has a second person let things go on, and one who is alone.
func (d *dishonest) stopsLegally() {
	d.Helper()
	resume := catalog.AdminStop{Resume: true}
	for _, x := range []struct {
		who string
		a   catalog.AdminStop
	}{
		{"local", resume},
		{"olga", resume}, // nothing is stopped
		{"local", catalog.AdminStop{All: true}},
		{"olga", catalog.AdminStop{All: true}}, // he has stopped it
		{"ben", resume},
		{"ben", catalog.AdminStop{Servers: []string{"crm"}}},
		{"local", catalog.AdminStop{Agents: []string{"scout"}}},
		{"olga", resume}, // all have stopped something
	} {
		d.accepted(d.stops(x.who, x.a))
	}
}
