package state

import (
	"cmp"
	"iter"
	"maps"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// userErase removes everything that may be erased of a user's intents before it, and the user's
// schedules. The user is disabled, which ended plans and holds, and no intent of the user is open:
// so nothing is judged by them any more. Before the commit the router counts them.
var userErase = operators(TypeUserErase,
	func(v *View, o Intent, a catalog.UserErase) (Effect, error) {
		tenant := TargetTenant(o.Tenant, a.Tenant)
		t := v.s.dir.tenants[tenant]
		if t == nil {
			return Effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		v.addRead(SubjectTenant(tenant))
		if !t.Users[a.UserID].Disabled {
			return Effect{}, illegal("/intent/args/user_id", "the user is not disabled: disable the user first (writ user put ID --disabled)")
		}
		schedules := subjectSchedules(Intent{Tenant: tenant, User: a.UserID})
		v.addRead(schedules)
		if x := firstOf(maps.Values(v.s.intents), tenant, a.UserID); x != nil {
			return Effect{}, illegal("/intent/args/user_id", "intent "+x.ID+" of the user "+NotEnded+": wait for it")
		}
		if x := firstOf(maps.Values(v.s.unknown), tenant, a.UserID); x != nil {
			return Effect{}, illegal("/intent/args/user_id", "nobody knows how intent "+x.ID+" of the user ended: resolve it first (writ intent resolve)")
		}
		return Effect{catalog.UserEraseResult{Accepted: true, Retained: []catalog.RetainedIntents{}, Remaining: catalog.UserRemaining()}, []storage.Subject{schedules}}, nil
	},
	func(s *State, o Intent, a catalog.UserErase) error {
		tenant := TargetTenant(o.Tenant, a.Tenant)
		s.erasures.number++
		e := Erasure{
			Number: s.erasures.number, Tenant: tenant, User: a.UserID, Position: o.Position,
			Parts: []string{catalog.ErasesEnvelope, catalog.ErasesResult, catalog.ErasesBlobs},
		}
		s.erasures.pending = append(s.erasures.pending, e)
		s.erasures.explain(e)
		for _, p := range s.plans {
			if p.View.TenantID != tenant {
				continue
			}
			if p.View.UserID == a.UserID {
				p.removeTexts()
			}
			for _, f := range p.IntentHistory {
				if cmp.Or(f.User, p.View.UserID) == a.UserID && !f.Held {
					f.erase()
				}
			}
		}
		own := ofUser(Intent{Tenant: tenant, User: a.UserID})
		maps.DeleteFunc(s.schedules, func(name string, _ catalog.Schedule) bool { return strings.HasPrefix(name, own) })
		return nil
	})

// NotEnded is in the reason of a refused user.erase that may succeed once an intent has ended.
const NotEnded = "has not ended"

// firstOf is the first intent of a user.
func firstOf(list iter.Seq[*openIntent], tenant, user string) *openIntent {
	var first *openIntent
	for x := range list {
		if x.Tenant == tenant && x.User == user && (first == nil || x.Position < first.Position) {
			first = x
		}
	}
	return first
}

// Erasable reports whether an intent may lose its envelope: people were not asked about it, and no
// later record is judged by more of it than its summary has.
func Erasable(o Intent) bool {
	return o.Decision.Verdict == intents.Deny ||
		o.Decision.Verdict == intents.Allow && (o.Decision.Executor != catalog.ExecutorRouter || RetainsArgs(o.Type))
}
