package state

import (
	"encoding/json"
	"fmt"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Budgets bound the tokens that agents use. No task begins where one is spent; what runs
// goes on to its end, so a budget may be passed by what the tasks of then still use.

// budgets are those of a tenant, in tokens; 0: there is no such bound.
type budgets struct {
	Day  int `json:"tokens_per_day"`      // of all users together
	User int `json:"tokens_per_user_day"` // of each user
	Turn int `json:"tokens_per_turn"`     // of each plan
}

// used are the tokens of one day: that of the latest record that told of any. Days are
// those of records, in UTC.
type used struct {
	Day    int64          `json:"day"`    // since 1970
	Tokens map[string]int `json:"tokens"` // by "tenant", and by "tenant/user"
}

func dayOf(t time.Time) int64 { return t.Unix() / 86400 }

// spend counts what a plan has used of models.
func (s *State) spend(p *plan, tokens int, at time.Time) {
	if s.rules < intents.RulesAsks || tokens == 0 {
		return
	}
	s.spendFor(p.View.TenantID, p.View.UserID, tokens, at)
	p.Used = catalog.AddTokens(p.Used, tokens)
}

// spendFor counts what was used for a user.
func (s *State) spendFor(tenant, user string, tokens int, at time.Time) {
	if day := dayOf(at); day > s.used.Day || s.used.Tokens == nil {
		s.used = used{day, make(map[string]int)}
	}
	for _, name := range []string{tenant, tenant + "/" + user} {
		s.used.Tokens[name] = catalog.AddTokens(s.used.Tokens[name], tokens)
	}
}

// usageReport counts what was used for the actor, in no plan.
var usageReport = move("usage.report",
	func(*View, Order, catalog.UsageReport) (Effect, error) { return accepted(), nil },
	func(s *State, o Order, a catalog.UsageReport) error {
		if n := catalog.Tokens(a.Usage); n > 0 {
			s.spendFor(o.Tenant, o.User, n, o.At)
		}
		return nil
	})

// usedBy is what a plan and, on a day, its user and tenant have used.
func (s *State) usedBy(p *plan, day int64) *intents.FactBudget {
	b := &intents.FactBudget{Turn: p.Used}
	if s.used.Day == day {
		b.Day, b.User = s.used.Tokens[p.View.TenantID], s.used.Tokens[p.View.TenantID+"/"+p.View.UserID]
	}
	return b
}

// spendOf counts what a task has used that ends: what it reports, or else a part of its
// token limit, as large as the part of its requests that it seems to have made.
func (s *State) spendOf(t *task, reported []catalog.Usage, at time.Time) {
	if t.APIKey != "" { // the client's model is no concern of ours
		return
	}
	if t.Used = catalog.Tokens(reported); len(reported) == 0 {
		limits := agents.Builtin(agents.Executor).Limits
		_, r := t.plan.agentAt(t.Step)
		if r != nil && t.Ask != "" {
			r = r.Asks[t.Agent]
		}
		if r != nil && r.Requests > 0 {
			limits.Requests, limits.Tokens = r.Requests, r.Tokens
		}
		made := min(t.plan.replies(t.Task)-t.Replies+1, limits.Requests)
		t.Used = made * limits.Tokens / limits.Requests
	}
	s.spend(t.plan, t.Used, at)
}

// replies is the highest number of a reply with calls in the place of a task.
func (p *plan) replies(t Task) (highest int) {
	for _, c := range p.Calls {
		if c.Step == t.Step && c.Revision == t.Revision && c.Ask == t.Ask {
			n := 0
			_, _ = fmt.Sscanf(c.Call, "%d.", &n) // the envelope's schema says that it is so
			highest = max(highest, n)
		}
	}
	return highest
}

// budgets of a tenant, as they were put: the schema of tenant data has judged them.
func (v *View) budgets(tenant string) (b budgets) {
	v.rely(SubjectTenant(tenant))
	if t := v.s.dir.tenants[tenant]; t != nil && v.s.rules >= intents.RulesAsks {
		_ = json.Unmarshal(t.Data["budgets"], &b)
	}
	return b
}

// affordable refuses a task of a plan where a budget is spent, by what the decision saw. While it was
// being made, others may have used more on its day, but nothing of the plan.
func (v *View) affordable(o Order, p *plan) error {
	b := v.budgets(o.Tenant)
	if b == (budgets{}) {
		return nil
	}
	day, saw := dayOf(o.Now), o.Budget
	is := v.s.usedBy(p, day)
	switch {
	case o.Position == storage.Nobody: // it is being decided
		saw, v.Budget = is, is
	case saw == nil:
		return illegal("/intent/args/plan_id", "decided without what the tenant has used of its budgets")
	case saw.Turn != is.Turn || v.s.used.Day <= day && (saw.User > is.User || saw.Day > is.Day):
		return illegal("/intent/args/plan_id", "decided by other sums of tokens than the record gives")
	}
	return b.spent(saw, day)
}

// spent refuses where one of the budgets is.
func (b budgets) spent(saw *intents.FactBudget, day int64) error {
	tomorrow := time.Unix((day+1)*86400, 0).UTC().Format("It is free again at 2006-01-02 15:04 MST")
	for _, of := range []struct {
		whose     string
		used, may int
		free      string
	}{
		{"this request", saw.Turn, b.Turn, "A new request begins anew"},
		{"this user and day", saw.User, b.User, tomorrow},
		{"this tenant and day", saw.Day, b.Day, tomorrow},
	} {
		if of.may > 0 && of.used >= of.may {
			x := intents.Refuse(intents.RateLimited, "/intent/args/plan_id", fmt.Sprintf("the token budget of %s is spent: %d of %d. %s", of.whose, of.used, of.may, of.free))
			x.Hint = "an operator can change it: writ tenant data budgets"
			return x
		}
	}
	return nil
}

// Spent refuses work of models that is of no plan, where a budget of its user's day is spent.
func (s *State) Spent(tenant, user string, now time.Time) error {
	v := s.View()
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := v.budgets(tenant)
	b.Turn = 0
	return b.spent(s.usedBy(&plan{View: catalog.PlanView{TenantID: tenant, UserID: user}}, dayOf(now)), dayOf(now))
}
