package router

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// endsPlans says whether an admin.put of a user ends the user's open plans, as
// grant.revoke does: nobody may act for who is disabled, so nothing would end them.
func (d *Directory) endsPlans(u *catalog.User) bool {
	return u != nil && u.Disabled && d.rules >= intents.RulesStrict
}

// openPlansOf a user. The lock is held.
func (d *Directory) openPlansOf(tenant, user string) []*plan {
	var out []*plan
	for _, p := range d.plans {
		if p.view.TenantID == tenant && p.view.UserID == user && !final(p.view.Status) {
			out = append(out, p)
		}
	}
	return out
}

// plansOf are the subjects that change when a user's open plans end. The lock is held.
func (v *View) plansOf(tenant, user string) []storage.Subject {
	var out []storage.Subject
	for _, p := range v.d.openPlansOf(tenant, user) {
		out = append(out, mover{v: v}.touching(p, true)...)
	}
	return out
}

func (d *Directory) endPlansOf(tenant, user, why string, at time.Time) {
	for _, p := range d.openPlansOf(tenant, user) {
		d.endPlan(p, catalog.PlanFailed, at)
		p.view.Failure = &catalog.Failure{Reason: why, CompletedSteps: p.doneSteps()}
	}
}

// EndedWith lists the plans that an accepted order of the router ends beside any
// that it names: those of a user whose grants it revokes, or whom it disables. It is
// asked before the order is folded.
func (d *Directory) EndedWith(s Summary) (tenant string, plans []string) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	tenant, user := d.userEnded(s.Type, s.Tenant, s.Args)
	if s.Decision.Verdict != intents.Allow || user == "" {
		return "", nil
	}
	for _, p := range d.openPlansOf(tenant, user) {
		plans = append(plans, p.view.PlanID)
	}
	return tenant, plans
}

// userEnded is whose open plans an order of the router ends; empty: nobody's. The
// lock is held.
func (d *Directory) userEnded(typ, actor string, args json.RawMessage) (tenant, user string) {
	switch typ {
	case "grant.revoke":
		var a catalog.GrantRevoke
		_ = json.Unmarshal(args, &a) // they matched their schema
		return a.Tenant, a.Sub
	case "admin.put":
		var a catalog.AdminPut
		if json.Unmarshal(args, &a) == nil && d.endsPlans(a.User) {
			return adminTenant(actor, a.Tenant), a.User.UserID
		}
	}
	return "", ""
}
