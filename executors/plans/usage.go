package plans

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Bounds of a report.
const (
	maxCounted  = 20_000 // plans that are read for it
	countedPage = 200
	maxRows     = 10_000
	maxSum      = 1_000_000_000_000_000 // what agents say of themselves is not believed without limit
)

// usage sums up what agents used of models.
func (p plans) usage(ctx context.Context, o *executors.Order, args catalog.PlanUsage) (*executors.Result, error) {
	type key struct{ day, agent, model string }
	rows := map[key]*catalog.UsageRow{}
	err := p.each(ctx, o, args.Period, args.WholeTenant, func(plan counted) {
		for _, u := range plan.Usage {
			k := key{agent: u.Agent, model: u.Model}
			if args.ByDay {
				k.day = plan.CreatedAt.UTC().Format(time.DateOnly)
			}
			if rows[k] == nil {
				rows[k] = &catalog.UsageRow{Day: k.day, Agent: k.agent, Model: k.model}
			}
			r := rows[k]
			r.Turns++
			r.Calls += int64(u.Calls)
			r.InputTokens = min(r.InputTokens+int64(u.InputTokens), maxSum)
			r.OutputTokens = min(r.OutputTokens+int64(u.OutputTokens), maxSum)
			r.AvgLatencyMS = min(r.AvgLatencyMS+u.LatencyMS, maxSum) // the sum, until all are there
		}
	})
	if err != nil {
		return nil, err
	}
	out := catalog.PlanUsageResult{Usage: make([]catalog.UsageRow, 0, len(rows))}
	for _, r := range rows {
		r.AvgLatencyMS /= r.Turns
		if price, there := p.prices[r.Model]; there {
			cost := price.Of(r.InputTokens, r.OutputTokens)
			r.Cost = &cost
		}
		out.Usage = append(out.Usage, *r)
	}
	slices.SortFunc(out.Usage, func(a, b catalog.UsageRow) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.InputTokens, a.InputTokens), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	return &executors.Result{Value: out}, fits(len(out.Usage))
}

// health counts replans and failures: of plans by the skills that their steps use, and
// of the calls of each skill.
func (p plans) health(ctx context.Context, o *executors.Order, args catalog.PlanHealth) (*executors.Result, error) {
	kinds := map[string]*catalog.PlansHealth{}
	err := p.each(ctx, o, args.Period, args.WholeTenant, func(plan counted) {
		skills := []string{}
		for _, s := range plan.Steps {
			skills = append(skills, s.Skills...)
		}
		slices.Sort(skills)
		skills = slices.Compact(skills)
		name, _ := json.Marshal(skills) // strings marshal
		if kinds[string(name)] == nil {
			kinds[string(name)] = &catalog.PlansHealth{Skills: skills}
		}
		k := kinds[string(name)]
		k.Plans++
		k.Replans += int64(plan.ReplanCount)
		if plan.Status == catalog.PlanFailed {
			k.Failed++
		}
		if len(plan.History) > catalog.MaxReplans {
			k.Exhausted++
		}
	})
	if err != nil {
		return nil, err
	}
	out := catalog.PlanHealthResult{Plans: []catalog.PlansHealth{}}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[name]
		k.AvgReplans = float64(k.Replans) / float64(k.Plans)
		out.Plans = append(out.Plans, *k)
	}
	slices.SortStableFunc(out.Plans, func(a, b catalog.PlansHealth) int { return cmp.Compare(b.AvgReplans, a.AvgReplans) })
	if out.Skills, err = p.skillCalls(ctx, o, args); err != nil {
		return nil, err
	}
	return &executors.Result{Value: out}, fits(max(len(out.Plans), len(out.Skills)))
}

// skillCalls counts the calls of each skill, and those that did not succeed.
func (p plans) skillCalls(ctx context.Context, o *executors.Order, args catalog.PlanHealth) ([]catalog.SkillHealth, error) {
	q, err := query(o, "ts", args.Period, args.WholeTenant)
	if err != nil {
		return nil, err
	}
	count := func() (map[string]int64, error) {
		buckets, err := p.docs.Aggregate(ctx, o.Ticket.Actor.Tenant, storage.IndexSkillCalls, q, storage.Aggregation{By: "skill_id"})
		calls := map[string]int64{}
		for _, b := range buckets {
			calls[b.Key] = b.Count
		}
		return calls, executors.Store(err)
	}
	all, err := count()
	if err != nil {
		return nil, err
	}
	q.Terms["status"] = []string{string(intents.Done)}
	done, err := count()
	out := []catalog.SkillHealth{}
	for _, skill := range slices.Sorted(maps.Keys(all)) {
		out = append(out, catalog.SkillHealth{Skill: skill, Calls: all[skill], Failed: all[skill] - done[skill]})
	}
	slices.SortStableFunc(out, func(a, b catalog.SkillHealth) int { return cmp.Compare(b.Failed, a.Failed) })
	return out, err
}

// counted is what a report takes of a plan.
type counted struct {
	Usage       []catalog.Usage    `json:"usage"`
	Steps       []catalog.PlanStep `json:"steps"`
	Status      catalog.PlanStatus `json:"status"`
	ReplanCount int                `json:"replan_count"`
	History     []catalog.Replan   `json:"replan_history"`
	CreatedAt   time.Time          `json:"created_at"`
}

// each reads all plans of a period, in no order.
func (p plans) each(ctx context.Context, o *executors.Order, in catalog.Period, wholeTenant bool, add func(counted)) error {
	q, err := query(o, "created_at", in, wholeTenant)
	if err != nil {
		return err
	}
	q.Limit = countedPage
	for n := 0; n < maxCounted; n += countedPage {
		page, err := p.docs.Search(ctx, o.Ticket.Actor.Tenant, storage.IndexPlans, q)
		if err != nil {
			return executors.Store(err)
		}
		for _, doc := range page.Documents {
			var plan counted
			if err := json.Unmarshal(doc.Body, &plan); err != nil {
				return executors.Fail(intents.ExecutorFailed, "a stored plan cannot be read")
			}
			add(plan)
		}
		if q.After = page.Cursor; q.After == "" {
			return nil
		}
	}
	return executors.Fail(intents.OversizedOutput, "there are more than 20,000 plans: ask for a shorter time, with since and until")
}

// query selects what was created in a period, by the user or by anybody of the tenant.
func query(o *executors.Order, created string, in catalog.Period, wholeTenant bool) (storage.Query, error) {
	q := storage.Query{Terms: map[string][]string{}, Sort: "-" + created}
	switch {
	case !wholeTenant:
		q.Terms["user_id"] = []string{o.Ticket.Actor.UserID}
	case !o.Ticket.Oversees:
		return q, executors.Fail(intents.RBACForbidden, "only those who have audit:read see what others of the tenant did")
	}
	if in != (catalog.Period{}) {
		q.Ranges = map[string]storage.Range{created: {GTE: in.Since, LT: in.Until}}
	}
	return q, nil
}

// fits refuses a report that is too long for one answer.
func fits(rows int) error {
	if rows > maxRows {
		return executors.Fail(intents.OversizedOutput, "the report has more than 10,000 rows: ask for a shorter time, with since and until")
	}
	return nil
}
