package audit_test

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

var anasTexts = catalog.Transient{AddedInstruction: "Be brief.", UserEmail: "ana@example.com"}

// beside opens a plan with texts beside its opening, and claims it.
func (d *dishonest) beside() {
	d.Helper()
	d.plan = d.NewPlan("plan_1")
	d.Want(d.Do(d.plan.OpenIntentWith(anasTexts)), intents.OK)
	d.Want(d.plan.Claim(), intents.OK)
}

// opening is the record of the plan's opening.
func (d *dishonest) opening() int64 {
	d.Helper()
	for _, r := range d.records {
		if r.Parts[storage.PartTransient] != nil {
			return r.Position
		}
	}
	d.Fatal("no record has texts beside an intent")
	return 0
}

// opensBeside is plan.open with texts of another plan.
func (d *dishonest) opensBeside() routertest.Intent {
	d.Helper()
	return d.NewPlan("plan_2").OpenIntentWith(anasTexts)
}

func (d *dishonest) endsLegally() {
	d.Helper()
	d.accepted(d.closing("failed"))
	d.hides(d.opening(), storage.PartTransient)
	p := d.NewPlan("plan_2")
	cancelled := d.accepted(d.opensBeside())
	d.accepted(p.CancelIntent(d.Gateway))
	d.hides(cancelled, storage.PartTransient)
	d.accepted(d.NewPlan("plan_3").OpenIntentWith(anasTexts))
	refused := d.opensBeside()
	refused.Beside = nil
	d.accepted(refused, denied)
}

// denied makes an intent a refused one.
func denied(x *appended) {
	x.decision.Verdict, x.decision.Code, x.decision.Key, x.outcome = intents.Deny, intents.RateLimited, "", nil
}

const (
	besideRule = "erasures: the texts beside a plan.open are those whose digests it signs, and a refused one has none"
	endedRule  = "erasures: they alone may be missing when its plan has ended, and not before"
)

var transientMisdeeds = []misdeed{
	{"texts-gone-from-open", "beside", endedRule, "its plan has not ended", func(d *dishonest) int64 {
		d.hides(d.opening(), storage.PartTransient)
		return d.opening()
	}},
	{"texts-gone-by-refused", "beside", endedRule, "its plan has not ended", func(d *dishonest) int64 {
		d.hides(d.opening(), storage.PartTransient)
		d.accepted(d.closing("failed"), denied)
		return d.opening()
	}},
	{"texts-gone-by-another", "beside", endedRule, "its plan has not ended", func(d *dishonest) int64 {
		other := d.accepted(d.opensBeside())
		d.accepted(d.closing("failed"))
		d.hides(other, storage.PartTransient)
		return other
	}},
	{"more-gone-than-texts", "beside", endedRule, "no erasure in the log", func(d *dishonest) int64 {
		d.accepted(d.closing("failed"))
		d.hides(d.opening(), storage.PartEnvelope, storage.PartGrant, storage.PartTransient)
		return d.opening()
	}},
	{"grant-gone-with-texts", "beside", endedRule, "the grant is withheld", func(d *dishonest) int64 {
		d.accepted(d.closing("failed"))
		d.hides(d.opening(), storage.PartGrant, storage.PartTransient)
		return d.opening()
	}},
	{"another-text", "beside", besideRule, "not the one whose digest", func(d *dishonest) int64 {
		return d.accepted(d.opensBeside(), func(a *appended) {
			t := a.texts["user_email"]
			t.Text = "eve@example.com"
			a.texts = intents.Transient{"added_instruction": a.texts["added_instruction"], "user_email": t}
		})
	}},
	{"a-text-less", "beside", besideRule, "not the one whose digest", func(d *dishonest) int64 {
		return d.accepted(d.opensBeside(), func(a *appended) {
			a.texts = intents.Transient{"user_email": a.texts["user_email"]}
		})
	}},
	{"no-texts", "beside", besideRule, "not those whose digests", func(d *dishonest) int64 {
		return d.accepted(d.opensBeside(), func(a *appended) { a.texts = nil })
	}},
	{"unsigned-texts", "beside", besideRule, "not those whose digests", func(d *dishonest) int64 {
		return d.accepted(d.NewPlan("plan_2").OpenIntent(), func(a *appended) { a.texts = anasTexts.Salted() })
	}},
	{"texts-of-refused", "beside", besideRule, "not those whose digests", func(d *dishonest) int64 {
		return d.accepted(d.opensBeside(), denied)
	}},
}
