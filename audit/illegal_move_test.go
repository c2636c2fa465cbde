package audit_test

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

// elsewhere is the origin of another log.
const elsewhere = "writ/elsewhere"

// leaving begins a log whose tenant has left for another log while its plan runs a step, and
// to which another tenant is on its way.
func (d *dishonest) leaving() {
	d.Helper()
	d.acme()
	d.begun("feed", "feed")
	d.start()
	d.Want(d.Do(d.admin(catalog.AdminPut{Tenant: "default", Moved: &catalog.Moved{Origin: elsewhere}})), intents.OK)
	d.Want(d.Do(d.admin(comes("initech"))), intents.OK)
	d.Want(d.Do(d.admin(catalog.AdminPut{Tenant: "initech", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"plans:*"}}})), intents.OK)
	d.Want(d.task.Call("feed", `{}`), intents.OK)
}

// comes is a tenant that comes from another log.
func comes(id string) catalog.AdminPut {
	return catalog.AdminPut{New: &catalog.Tenant{ID: id, Came: &catalog.Came{Origin: elsewhere, Position: 7, Record: intents.Digest(nil), Receipt: "x"}}}
}

// leavesLegally: what is open ends, what is there is read, rights are taken away; a tenant
// stays after all, or comes again; and one that has arrived begins.
func (d *dishonest) leavesLegally() {
	d.Helper()
	d.accepted(d.task.CallOrder("feed", `{"n":2}`))
	d.accepted(d.task.Order("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "failed", Reason: "nothing there"}))
	d.accepted(routertest.Order{By: d.Gateway, Type: "schedule.list", Args: struct{}{}})
	d.admitted(catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "zoe", Roles: []string{}, Disabled: true}})
	d.admitted(catalog.AdminPut{Tenant: "default", Moved: &catalog.Moved{}})
	d.accepted(d.opens(d.id(intents.KindPlan, 0)))
	d.admitted(catalog.AdminPut{Tenant: "initech", Arrived: &struct{}{}})
	o := d.opens(d.id(intents.KindPlan, 0))
	o.Tenant = "initech"
	d.accepted(o)
	d.admitted(catalog.AdminPut{Tenant: "acme", Moved: &catalog.Moved{Origin: elsewhere}})
	d.admitted(comes("acme"))
	d.admitted(catalog.AdminPut{Tenant: "acme", Arrived: &struct{}{}})
}

func (d *dishonest) admin(a catalog.AdminPut) routertest.Order {
	return routertest.Order{By: d.Operator, Type: "admin.put", Args: a}
}

func (d *dishonest) admitted(a catalog.AdminPut) int64 { return d.accepted(d.admin(a)) }

const (
	beginsNothing = "every order: it begins nothing for a tenant that does not live here"
	leavesAsItIs  = "admin.put: a tenant that has left stays as it is"
	leavesOnce    = "admin.put: a tenant that lives here leaves, for another log, and not system"
	arrivesOnce   = "admin.put: a tenant arrives that came and has not arrived"
)

var moveMisdeeds = []misdeed{
	{"opened-after-leaving", "leaving", beginsNothing, "has moved to the log", func(d *dishonest) int64 {
		return d.accepted(d.opens(d.id(intents.KindPlan, 0)))
	}},
	{"ordered-after-leaving", "leaving", beginsNothing, "has moved to the log", func(d *dishonest) int64 {
		return d.accepted(routertest.Order{By: d.Gateway, Type: "session.create", Args: catalog.SessionCreate{SessionID: "S9"}})
	}},
	{"scheduled-after-leaving", "leaving", beginsNothing, "has moved to the log", func(d *dishonest) int64 {
		return d.puts(catalog.SchedulePut{ID: "hourly", Input: "Sell.", Cron: "0 * * * *"}, time.Hour)
	}},
	{"opened-before-arriving", "leaving", beginsNothing, "has not arrived", func(d *dishonest) int64 {
		o := d.opens(d.id(intents.KindPlan, 0))
		o.Tenant = "initech"
		return d.accepted(o)
	}},
	{"role-after-leaving", "leaving", leavesAsItIs, "has moved to the log", func(d *dishonest) int64 {
		return d.admitted(catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"plans:*"}}})
	}},
	{"skill-after-leaving", "leaving", leavesAsItIs, "has moved to the log", func(d *dishonest) int64 {
		a := catalog.SkillApprove{Tenant: "default", Skill: "crm.feed", Digest: intents.Digest(nil), Effect: catalog.Pure}
		return d.accepted(routertest.Order{By: d.Operator, Type: "skill.approve", Args: a})
	}},
	{"left-twice", "leaving", leavesOnce, "has left for", func(d *dishonest) int64 {
		return d.admitted(catalog.AdminPut{Tenant: "default", Moved: &catalog.Moved{Origin: "writ/third"}})
	}},
	{"left-for-here", "leaving", leavesOnce, "is this log", func(d *dishonest) int64 {
		return d.admitted(catalog.AdminPut{Tenant: "acme", Moved: &catalog.Moved{Origin: d.Origin}})
	}},
	{"system-left", "leaving", leavesOnce, "each log's own", func(d *dishonest) int64 {
		return d.admitted(catalog.AdminPut{Tenant: "system", Moved: &catalog.Moved{Origin: elsewhere}})
	}},
	{"stays-though-here", "leaving", "admin.put: a tenant stays that has left", "has not left", func(d *dishonest) int64 {
		return d.admitted(catalog.AdminPut{Tenant: "acme", Moved: &catalog.Moved{}})
	}},
	{"came-though-here", "leaving", "admin.put: a tenant comes from another log, where none of its id lives", "exists", func(d *dishonest) int64 {
		return d.admitted(comes("acme"))
	}},
	{"arrived-from-nowhere", "leaving", arrivesOnce, "not on its way", func(d *dishonest) int64 {
		return d.admitted(catalog.AdminPut{Tenant: "acme", Arrived: &struct{}{}})
	}},
}
