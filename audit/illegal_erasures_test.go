package audit_test

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// found appends an intent that an executor carried out, of which the bundle shows neither envelope nor result, and
// what erases them.
func (d *dishonest) found() (at int64, a catalog.RecordErase) {
	d.Helper()
	return d.foundBy("ana")
}

func (d *dishonest) foundBy(user string) (at int64, a catalog.RecordErase) {
	d.Helper()
	o := d.finds("anas-word", "")
	o.User = user
	at, id := d.accept(o)
	d.hides(at, storage.PartEnvelope, storage.PartGrant)
	d.hides(at+1, storage.PartResult)
	return at, catalog.RecordErase{Tenant: "default", IntentID: id, Position: at, Parts: []string{catalog.ErasesEnvelope, catalog.ErasesResult}, Reason: "asked for"}
}

// hides leaves parts of a record out of the bundle.
func (d *dishonest) hides(at int64, parts ...string) {
	if d.hidden == nil {
		d.hidden = map[int64][]string{}
	}
	d.hidden[at] = parts
}

// erases appends a record.erase of the operator of system.
func (d *dishonest) erases(a catalog.RecordErase) int64 {
	d.Helper()
	return d.accepted(routertest.Intent{By: d.Operator, Type: "record.erase", Args: a})
}

// disables puts a user's row.
func (d *dishonest) disables(tenant, user string, is bool) {
	d.Helper()
	d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: tenant, User: &catalog.User{UserID: user, Roles: []string{"user"}, Disabled: is}}})
}

// erasesUser appends a user.erase of the operator of system.
func (d *dishonest) erasesUser(tenant, user string) int64 {
	d.Helper()
	return d.accepted(routertest.Intent{By: d.Operator, Type: "user.erase", Args: catalog.UserErase{Tenant: tenant, UserID: user, Reason: "asked for"}})
}

func (d *dishonest) erasesLegally() {
	d.Helper()
	_, a := d.found()
	d.erases(a)
	_, a = d.found()
	a.Parts = []string{catalog.ErasesEnvelope}
	d.erases(a)
	a.Parts = []string{catalog.ErasesResult}
	d.erases(a)
	d.found()
	d.found()
	d.disables("default", "ana", true)
	d.erasesUser("default", "ana")
	d.foundBy("ben")
	d.disables("default", "ben", true)
	d.disables("default", "ana", false)
	d.accept(d.finds("anas-word", ""))
	d.erasesUser("default", "ben")
}

const (
	eraseRule = "erasures: an accepted record.erase or user.erase takes away what is not there"
	byUser    = "erasures: a user who is erased is disabled, and every intent of the user has ended"
	mayGo     = "erasures: what others rest on cannot be taken away"
	ofIts     = "erasures: what it takes away is of the intent that it names, before it"
)

var erasureMisdeeds = []misdeed{
	{"withheld-by-nobody", "erased", eraseRule, "no erasure in the log", func(d *dishonest) int64 {
		at, _ := d.found()
		return at
	}},
	{"withheld-result", "erased", eraseRule, "no erasure in the log", func(d *dishonest) int64 {
		at, a := d.found()
		a.Parts = []string{catalog.ErasesEnvelope}
		d.erases(a)
		return at + 1
	}},
	{"withheld-by-refused", "erased", eraseRule, "no erasure in the log", func(d *dishonest) int64 {
		at, a := d.found()
		d.accept(routertest.Intent{By: d.Operator, Type: "record.erase", Args: a}, func(x *appended) {
			x.decision.Verdict, x.decision.Code, x.decision.Key, x.outcome = intents.Deny, intents.RateLimited, "", nil
		})
		return at
	}},
	{"withheld-decision", "erased", mayGo, "cannot be erased", func(d *dishonest) int64 {
		at, a := d.found()
		d.hides(at, storage.PartEnvelope, storage.PartGrant, storage.PartDecision)
		d.erases(a)
		return at
	}},
	{"withheld-outcome", "erased", mayGo, "cannot be erased", func(d *dishonest) int64 {
		at, a := d.found()
		d.hides(at+1, storage.PartOutcome)
		d.erases(a)
		return at + 1
	}},
	{"withheld-grant", "erased", mayGo, "the grant is withheld", func(d *dishonest) int64 {
		at, a := d.found()
		d.hides(at, storage.PartGrant)
		d.erases(a)
		return at
	}},
	{"withheld-role", "erased", mayGo, "cannot be erased", func(d *dishonest) int64 {
		role := routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "mallory", Roles: []string{"admin"}}}}
		at, id := d.accept(role)
		d.hides(at, storage.PartEnvelope)
		d.erases(catalog.RecordErase{Tenant: "default", IntentID: id, Position: at, Parts: []string{catalog.ErasesEnvelope}, Reason: "asked for"})
		return at
	}},
	{"erases-another-intent", "erased", ofIts, "of another intent or tenant", func(d *dishonest) int64 {
		_, a := d.found()
		_, b := d.found()
		a.IntentID = b.IntentID
		return d.erases(a)
	}},
	{"erases-in-another-tenant", "erased", ofIts, "of another intent or tenant", func(d *dishonest) int64 {
		_, a := d.found()
		a.Tenant = ""
		return d.accepted(routertest.Intent{By: d.operator, User: "eve", Tenant: "acme", Roles: []string{"admin"}, Type: "record.erase", Args: a})
	}},
	{"withheld-of-another-user", "erased", eraseRule, "no erasure in the log", func(d *dishonest) int64 {
		d.found()
		at, _ := d.foundBy("ben")
		d.disables("default", "ana", true)
		d.erasesUser("default", "ana")
		return at
	}},
	{"withheld-of-another-tenants-user", "erased", eraseRule, "no erasure in the log", func(d *dishonest) int64 {
		at, _ := d.found()
		d.disables("acme", "ana", true)
		d.erasesUser("acme", "ana")
		return at
	}},
	{"withheld-after-its-user", "erased", eraseRule, "no erasure in the log", func(d *dishonest) int64 {
		d.found()
		d.disables("default", "ana", true)
		d.erasesUser("default", "ana")
		d.disables("default", "ana", false)
		at, _ := d.found()
		return at
	}},
	{"erases-enabled-user", "erased", byUser, "the user is not disabled", func(d *dishonest) int64 {
		d.found()
		return d.erasesUser("default", "ana")
	}},
	{"erases-running-user", "erased", byUser, "has not ended", func(d *dishonest) int64 {
		d.accept(d.finds("anas-word", ""), func(a *appended) { a.outcome = nil })
		d.disables("default", "ana", true)
		return d.erasesUser("default", "ana")
	}},
	{"erases-unresolved-user", "erased", byUser, "nobody knows how intent", func(d *dishonest) int64 {
		d.accept(d.finds("anas-word", ""), func(a *appended) { a.outcome["status"], a.outcome["code"] = "indeterminate", "INDETERMINATE" })
		d.disables("default", "ana", true)
		return d.erasesUser("default", "ana")
	}},
	{"erases-user-elsewhere", "erased", byUser, "", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.operator, User: "eve", Tenant: "acme", Roles: []string{"admin"}, Type: "user.erase", Args: catalog.UserErase{Tenant: "default", UserID: "ana", Reason: "asked for"}})
	}},
	{"erases-what-comes", "erased", ofIts, "comes after it", func(d *dishonest) int64 {
		_, a := d.found()
		d.erases(a)
		a.Position = d.records.Next()
		return d.erases(a)
	}},
}
