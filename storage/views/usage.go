package views

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// maxSum bounds a sum: usage that agents report of themselves is not trusted without limit.
const maxSum = 1_000_000_000_000_000

// use is the key of a report's rows.
type use struct{ day, agent, model string }

// Usage sums up the model usage of plans of a user, the outcomes of those plans by kind, and those of
// skill calls. Prices are by driver:model.
func Usage(ctx context.Context, docs storage.Documents, prices map[string]catalog.Price, tenant, user string, args catalog.PlanUsage) (out catalog.PlanUsageResult, err error) {
	rows, kinds := map[use]catalog.UsageRow{}, map[string]catalog.PlansHealth{}
	more, err := walk(ctx, docs, tenant, storage.IndexPlans, query(user, "created_at", args.Period), summed, func(doc storage.Document) error {
		plan, err := planOf(doc)
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
				CachedTokens: min(r.CachedTokens+int64(u.CachedTokens), maxSum),
				OutputTokens: min(r.OutputTokens+int64(u.OutputTokens), maxSum),
				Estimated:    r.Estimated || u.Estimated,
				AvgLatencyMS: min(r.AvgLatencyMS+u.LatencyMS, maxSum), // the sum, until all are there
			}
		}
		return err
	})
	if err != nil {
		return out, err
	}
	if more != "" {
		return out, tooLarge("there are more than 20,000 plans: ask for a shorter time, with since and until")
	}
	out = catalog.PlanUsageResult{Usage: []catalog.UsageRow{}, Plans: []catalog.PlansHealth{}, Skills: []catalog.SkillHealth{}}
	for _, r := range rows {
		r.AvgLatencyMS /= r.Turns
		if price, there := prices[r.Model]; there {
			cost := price.Of(r.InputTokens, r.CachedTokens, r.OutputTokens)
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
	out.Skills, err = skills(ctx, docs, tenant, query(user, "ts", args.Period))
	return out, err
}

// skills counts the calls that a query selects by their skill, most failures first.
func skills(ctx context.Context, docs storage.Documents, tenant string, q storage.Query) ([]catalog.SkillHealth, error) {
	if err := fresh(ctx, docs, storage.IndexSkillCalls); err != nil {
		return nil, err
	}
	all, failed, large := q, q, q
	failed.Terms, large.Terms = maps.Clone(q.Terms), maps.Clone(q.Terms)
	failed.Terms["status"] = []string{string(intents.Failed), string(intents.StatusIndetermined)}
	large.Terms["large_response_triggered"] = []string{"true"}
	of := map[string]catalog.SkillHealth{}
	for _, c := range []struct {
		query storage.Query
		set   func(*catalog.SkillHealth, int64)
	}{
		{all, func(s *catalog.SkillHealth, n int64) { s.Calls = n }},
		{failed, func(s *catalog.SkillHealth, n int64) { s.Failed = n }},
		{large, func(s *catalog.SkillHealth, n int64) { s.Large = n }},
	} {
		buckets, err := docs.Aggregate(ctx, tenant, storage.IndexSkillCalls, c.query, storage.Aggregation{By: "skill_id"})
		if err != nil {
			return nil, err
		}
		for _, b := range buckets {
			s := of[b.Key]
			s.Skill = b.Key
			c.set(&s, b.Count)
			of[b.Key] = s
		}
	}
	out := slices.AppendSeq([]catalog.SkillHealth{}, maps.Values(of))
	slices.SortFunc(out, func(a, b catalog.SkillHealth) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Skill, b.Skill))
	})
	return out, nil
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
