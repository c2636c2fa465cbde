package state

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
)

// Budgets bound the tokens that agents use. No task begins once a budget is used up; running
// tasks continue to their end, so they may exceed a budget.

// budgets are those of a tenant, in tokens; 0: no bound.
type budgets struct {
	Day  int `json:"tokens_per_day"`      // of all users together
	User int `json:"tokens_per_user_day"` // of each user
	Turn int `json:"tokens_per_turn"`     // of each plan
}

// dayUsage counts the tokens of one day: that of the latest record with usage. Days are those of
// records, in UTC.
type dayUsage struct {
	Day    int64          `json:"day"`    // since 1970
	Tokens map[string]int `json:"tokens"` // by "tenant", and by "tenant/user"
}

func dayOf(t time.Time) int64 { return t.Unix() / 86400 }

// spend counts the model usage of a plan.
func (s *State) spend(p *plan, tokens int, at time.Time) {
	if tokens == 0 {
		return
	}
	s.spendFor(p.View.TenantID, p.View.UserID, tokens, at)
	p.Used = catalog.AddTokens(p.Used, tokens)
}

// spendFor counts the usage of a user.
func (s *State) spendFor(tenant, user string, tokens int, at time.Time) {
	if day := dayOf(at); day > s.dayUsage.Day || s.dayUsage.Tokens == nil {
		s.dayUsage = dayUsage{day, make(map[string]int)}
	}
	for _, name := range []string{tenant, tenant + "/" + user} {
		s.dayUsage.Tokens[name] = catalog.AddTokens(s.dayUsage.Tokens[name], tokens)
	}
}

// usageReport counts the actor's usage outside plans.
var usageReport = newTransition("usage.report",
	func(*View, Intent, catalog.UsageReport) (Effect, error) { return accepted(), nil },
	func(s *State, o Intent, a catalog.UsageReport) error {
		if n := catalog.Tokens(a.Usage); n > 0 {
			s.spendFor(o.Tenant, o.User, n, o.At)
		}
		return nil
	})

// usedBy is the usage of a plan and, on a day, of its user and tenant.
func (s *State) usedBy(p *plan, day int64) *intents.BudgetInput {
	b := &intents.BudgetInput{Turn: p.Used}
	if s.dayUsage.Day == day {
		b.Day, b.User = s.dayUsage.Tokens[p.View.TenantID], s.dayUsage.Tokens[p.View.TenantID+"/"+p.View.UserID]
	}
	return b
}

// spendOf counts the usage of a task that ends: what it reports, or else a part of its token
// limit, in proportion to the requests that it appears to have made.
func (s *State) spendOf(t *task, reported []catalog.Usage, at time.Time) {
	if t.APIKey != "" { // the client's model is not counted
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

// replies is the highest number of a reply with calls at the place of a task.
func (p *plan) replies(t Task) (highest int) {
	for _, c := range p.Calls {
		if c.Step == t.Step && c.Revision == t.Revision && c.Ask == t.Ask {
			reply, _, _ := strings.Cut(c.Call, ".")
			n, _ := strconv.Atoi(reply) // the envelope's schema guarantees the form
			highest = max(highest, n)
		}
	}
	return highest
}

// budgets returns the budgets of a tenant as they were put; the schema of tenant data has
// checked them.
func (v *View) budgets(tenant string) (b budgets) {
	v.addRead(SubjectTenant(tenant))
	if t := v.s.dir.tenants[tenant]; t != nil {
		_ = json.Unmarshal(t.Data["budgets"], &b)
	}
	return b
}

// affordable refuses a task of a plan if a budget was used up when the decision was made.
// Meanwhile others may have used more of the day's budget, but nothing of the plan's.
func (v *View) affordable(o Intent, p *plan) error {
	b := v.budgets(o.Tenant)
	if b == (budgets{}) {
		return nil
	}
	day, saw := dayOf(o.Now), o.Budget
	is := v.s.usedBy(p, day)
	switch {
	case o.Position == storage.NoPosition: // while it is being decided
		saw, v.Budget = is, is
	case saw == nil:
		return illegal("/intent/args/plan_id", "decided without what the tenant has used of its budgets")
	case saw.Turn != is.Turn || v.s.dayUsage.Day <= day && (saw.User > is.User || saw.Day > is.Day):
		return illegal("/intent/args/plan_id", "decided by other sums of tokens than the record gives")
	}
	return b.check(saw, day)
}

// check refuses if one of the budgets is used up.
func (b budgets) check(saw *intents.BudgetInput, day int64) error {
	tomorrow := time.Unix((day+1)*86400, 0).UTC().Format("It is free again at 2006-01-02 15:04 MST")
	for _, of := range []struct {
		scope     string
		used, may int
		free      string
	}{
		{"this request", saw.Turn, b.Turn, "A new request begins anew"},
		{"this user and day", saw.User, b.User, tomorrow},
		{"this tenant and day", saw.Day, b.Day, tomorrow},
	} {
		if of.may > 0 && of.used >= of.may {
			x := intents.Refuse(intents.RateLimited, "/intent/args/plan_id", fmt.Sprintf("the token budget of %s is spent: %d of %d. %s", of.scope, of.used, of.may, of.free))
			x.Hint = "an operator can change it: writ tenant data budgets"
			return x
		}
	}
	return nil
}

// CheckBudget refuses model use outside plans if a daily budget of its user is used up.
func (s *State) CheckBudget(tenant, user string, now time.Time) error {
	v := s.View()
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := v.budgets(tenant)
	b.Turn = 0
	return b.check(s.usedBy(&plan{View: catalog.PlanView{TenantID: tenant, UserID: user}}, dayOf(now)), dayOf(now))
}
