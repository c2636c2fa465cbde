package router

import (
	"time"

	"aob.dev/writ/intents"
)

// DefaultTenantPlans and DefaultPlans bound how many plans may be open at once: the
// fold holds each with its words until it is closed.
const (
	DefaultTenantPlans = 5_000
	DefaultPlans       = 20_000
)

// planRetry is when to try again where too many plans are open.
const planRetry = time.Minute

// mayOpen refuses to open a plan beyond the bounds; more are opened in the same
// batch before it. Orders that are decided at once may go beyond them by as many.
func (r *Router) mayOpen(o *order, more int) error {
	if o.env.Type() != typePlanOpen || o.decision.Verdict != intents.Allow {
		return nil
	}
	tenant, all := r.dir.openPlans(o.env.Principal().Tenant)
	if below(tenant+more, r.cfg.TenantPlans) && below(all+more, r.cfg.Plans) {
		return nil
	}
	x := intents.Refuse(intents.Overloaded, "", "too many plans are open")
	x.RetryAfter, x.Hint = planRetry, "cancel plans that nobody needs any more: DELETE /agent/plans/{id}"
	return x
}

const typePlanOpen = "plan.open"

// openPlans of a tenant, and of all.
func (d *Directory) openPlans(tenant string) (one, all int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.open[tenant], d.openAll
}

// opens and closes count open plans. The lock is held.
func (d *Directory) opens(tenant string) {
	d.open[tenant]++
	d.openAll++
}

func (d *Directory) closes(tenant string) {
	d.openAll--
	if d.open[tenant]--; d.open[tenant] <= 0 {
		delete(d.open, tenant)
	}
}

// ForgetWords makes the directory drop the words of a plan once it is closed: what was
// asked, what its steps say and what was answered. No move is judged by them. Whoever
// writes plans down looks for them in the records (Said, Retell). To be called before
// the first record.
func (d *Directory) ForgetWords() *Directory {
	d.forgetful = true
	return d
}

// forget the words of a closed plan and of its tasks. What tickets say stays:
// orders of a task may still be carried out.
func (p *plan) forget() {
	p.view.Task, p.view.Response = "", ""
	for i := range p.view.Steps {
		p.view.Steps[i].Task = ""
	}
	for _, t := range p.tasks {
		t.spec.Task = ""
	}
}

// Held is what the fold of plans holds in memory.
type Held struct {
	Open   int   `json:"open"`   // plans
	Closed int   `json:"closed"` // plans
	Tasks  int   `json:"tasks"`
	Words  int64 `json:"words"` // bytes of requests, steps and answers
}

// Held counts it.
func (d *Directory) Held() Held {
	d.mu.RLock()
	defer d.mu.RUnlock()
	h := Held{Open: d.openAll, Closed: len(d.plans) - d.openAll, Tasks: len(d.tasks)}
	for _, p := range d.plans {
		h.Words += int64(len(p.view.Task) + len(p.view.Response))
		for _, s := range p.view.Steps {
			h.Words += int64(len(s.Task))
		}
	}
	return h
}
