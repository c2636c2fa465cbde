package plans

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// maxSum bounds a sum: what agents say of themselves is not believed without limit.
const maxSum = 1_000_000_000_000_000

// summed bounds the plans of one report.
var summed = bounds{documents: 20_000, page: 200, bytes: math.MaxInt}

// use is what rows of a report are told apart by.
type use struct{ day, agent, model string }

// usage sums up what plans used of models, how plans of a kind went, and which skills
// failed.
func (p plans) usage(ctx context.Context, o *executors.Order, args catalog.PlanUsage) (*executors.Result, error) {
	q, err := query(o, "created_at", args.Period, args.WholeTenant)
	if err != nil {
		return nil, err
	}
	rows, kinds := map[use]catalog.UsageRow{}, map[string]catalog.PlansHealth{}
	more, err := p.walk(ctx, o, storage.IndexPlans, q, summed, func(doc storage.Document) error {
		plan, err := viewOf(doc)
		addPlan(kinds, plan)
		for _, u := range plan.Usage {
			k := use{agent: u.Agent, model: u.Model}
			if args.ByDay {
				k.day = plan.CreatedAt.UTC().Format(time.DateOnly)
			}
			r := rows[k]
			rows[k] = catalog.UsageRow{
				Day: k.day, Agent: k.agent, Model: k.model, Turns: r.Turns + 1,
				InputTokens:  min(r.InputTokens+int64(u.InputTokens), maxSum),
				OutputTokens: min(r.OutputTokens+int64(u.OutputTokens), maxSum),
				AvgLatencyMS: min(r.AvgLatencyMS+u.LatencyMS, maxSum), // the sum, until all are there
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if more != "" {
		return nil, executors.Fail(intents.OversizedOutput, "there are more than 20,000 plans: ask for a shorter time, with since and until")
	}
	out := catalog.PlanUsageResult{Usage: []catalog.UsageRow{}, Plans: []catalog.PlansHealth{}, Skills: []catalog.SkillHealth{}}
	for _, r := range rows {
		r.AvgLatencyMS /= r.Turns
		if price, there := p.prices[r.Model]; there {
			cost := (price.Input*float64(r.InputTokens) + price.Output*float64(r.OutputTokens)) / 1e6
			r.Cost = &cost
		}
		out.Usage = append(out.Usage, r)
	}
	slices.SortFunc(out.Usage, func(a, b catalog.UsageRow) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.InputTokens, a.InputTokens), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	for _, k := range kinds {
		k.AvgReplans /= float64(k.Plans)
		out.Plans = append(out.Plans, k)
	}
	slices.SortFunc(out.Plans, func(a, b catalog.PlansHealth) int {
		return cmp.Or(cmp.Compare(b.AvgReplans, a.AvgReplans), slices.Compare(a.Skills, b.Skills))
	})
	q, _ = query(o, "ts", args.Period, args.WholeTenant)
	q.Terms["status"] = []string{string(intents.Failed), string(intents.StatusIndetermined)}
	failed, err := p.docs.Aggregate(ctx, o.Ticket.Actor.Tenant, storage.IndexSkillCalls, q, storage.Aggregation{By: "skill_id"})
	for _, b := range failed {
		out.Skills = append(out.Skills, catalog.SkillHealth{Skill: b.Key, Failed: b.Count})
	}
	slices.SortStableFunc(out.Skills, func(a, b catalog.SkillHealth) int { return cmp.Compare(b.Failed, a.Failed) })
	return &executors.Result{Value: out}, executors.Store(err)
}

// addPlan counts a plan among those of its kind; AvgReplans is their sum meanwhile.
func addPlan(kinds map[string]catalog.PlansHealth, plan catalog.PlanView) {
	skills := []string{}
	for _, s := range plan.Steps {
		skills = append(skills, s.Skills...)
	}
	slices.Sort(skills)
	skills = slices.Compact(skills)
	k := kinds[strings.Join(skills, " ")]
	k.Skills = skills
	k.Plans++
	k.AvgReplans += float64(plan.ReplanCount)
	if plan.Status == catalog.PlanFailed {
		k.Failed++
	}
	if len(plan.History) > catalog.MaxReplans {
		k.Exhausted++
	}
	kinds[strings.Join(skills, " ")] = k
}

// query selects what the user created, or anybody of the tenant, newest first.
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
