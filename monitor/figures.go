// Package monitor reads what the recorder writes, as any reader of the documents could, and derives
// figures and alerts from it. It decides nothing, and nothing waits for it.
package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Documents store agent_plans, agent_events and agent_skill_calls.
type Documents interface {
	Search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error)
	Aggregate(ctx context.Context, tenant, index string, q storage.Query, a storage.Aggregation) ([]storage.Bucket, error)
}

// Figures of a period, of all tenants together.
type Figures struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`

	Plans     int64 `json:"plans"`     // that have ended
	AtOnce    int64 `json:"at_once"`   // of these complete, without a replan
	Replans   int64 `json:"replans"`   // of all of these
	Exhausted int64 `json:"exhausted"` // with the maximum number of replans

	Calls  int64         `json:"calls"` // of skills
	Large  int64         `json:"large"` // with an answer over the gate
	Skills []SkillFigure `json:"skills"`

	Scripts    int64 `json:"scripts"`
	Timeouts   int64 `json:"timeouts"` // of scripts
	Writes     int64 `json:"writes"`   // write_memory
	Violations int64 `json:"violations"`
	LockWaitMS int64 `json:"lock_wait_ms"` // the longest
	Mismatches int64 `json:"mismatches"`   // answers for another user

	Agents []AgentFigure `json:"agents"`
	Process

	// Cut reports that only the newest events were read for scripts, locks and durations.
	Cut bool `json:"cut,omitempty"`
}

// Process is the current state of a process.
type Process struct {
	HoldsLate    int           `json:"holds_late"`    // pending approvals past half of their time
	LedgerBehind time.Duration `json:"ledger_behind"` // how long records have been without their leaf, in nanoseconds
	Conditions   []string      `json:"conditions"`    // as /readyz reports them
}

// SkillFigure counts how calls of a skill ended.
type SkillFigure struct {
	Skill  string `json:"skill"`
	Calls  int64  `json:"calls"`
	Failed int64  `json:"failed"`
}

// AgentFigure is how long agents of a type took.
type AgentFigure struct {
	Agent string `json:"agent"` // subagent_a plans, subagent_b executes steps
	Ended int    `json:"ended"`
	P95MS int64  `json:"p95_ms"`
}

// part is n divided by of; false: of is zero.
func part(n, of int64) (float64, bool) {
	if of == 0 {
		return 0, false
	}
	return float64(n) / float64(of), true
}

// maxEvents bounds the events of a tenant that are read whole for one slice; the others are only
// counted.
const maxEvents = 5000

// told are the events whose payload is read.
var told = []string{"subagent_a.spawned", "plan.received", "subagent.finish", "memory.written", "memory.lock_timeout", "python_script.executed"}

// slice is what ended in a tenant in a period. Several slices make the figures of a longer one.
type slice struct {
	Figures // but the period, Skills and Agents
	skills  map[string]SkillFigure
	took    map[string][]int64   // how long agents took, by type, in milliseconds
	spawned map[string]time.Time // when a planner began, by plan
	planned map[string]time.Time // and ended
}

func readSlice(ctx context.Context, docs Documents, tenant string, since, until time.Time) (slice, error) {
	s := slice{skills: map[string]SkillFigure{}, took: map[string][]int64{}, spawned: map[string]time.Time{}, planned: map[string]time.Time{}}
	r := reader{ctx, docs, tenant, storage.Range{GTE: intents.FormatTime(since), LT: intents.FormatTime(until)}}
	for _, read := range []func(*slice) error{r.plans, r.counts, r.calls, r.events} {
		if err := read(&s); err != nil {
			return s, fmt.Errorf("monitor: tenant %s: %w", tenant, err)
		}
	}
	return s, nil
}

// figuresOf adds up the slices of a period.
func figuresOf(since, until time.Time, list []slice) Figures {
	f := Figures{Since: since, Until: until}
	skills, took, spawned := map[string]SkillFigure{}, map[string][]int64{}, map[string]time.Time{}
	for _, s := range list {
		f = f.and(s.Figures)
		for id, k := range s.skills {
			k.Calls, k.Failed = k.Calls+skills[id].Calls, k.Failed+skills[id].Failed
			skills[id] = k
		}
		for agent, all := range s.took {
			took[agent] = append(took[agent], all...)
		}
		maps.Copy(spawned, s.spawned)
		for plan, end := range s.planned {
			if began, ok := spawned[plan]; ok && !end.Before(began) {
				took["subagent_a"] = append(took["subagent_a"], end.Sub(began).Milliseconds())
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(skills)) {
		f.Skills = append(f.Skills, skills[id])
	}
	for _, agent := range slices.Sorted(maps.Keys(took)) {
		all := took[agent]
		slices.Sort(all)
		f.Agents = append(f.Agents, AgentFigure{agent, len(all), all[(len(all)*95+99)/100-1]})
	}
	return f
}

// and adds the counts of another period.
func (f Figures) and(o Figures) Figures {
	for to, n := range map[*int64]int64{
		&f.Plans: o.Plans, &f.AtOnce: o.AtOnce, &f.Replans: o.Replans, &f.Exhausted: o.Exhausted, &f.Calls: o.Calls, &f.Large: o.Large,
		&f.Scripts: o.Scripts, &f.Timeouts: o.Timeouts, &f.Writes: o.Writes, &f.Violations: o.Violations, &f.Mismatches: o.Mismatches,
	} {
		*to += n
	}
	f.LockWaitMS, f.Cut = max(f.LockWaitMS, o.LockWaitMS), f.Cut || o.Cut
	return f
}

// reader reads the documents of one tenant.
type reader struct {
	ctx    context.Context //nolint:containedctx // of one look
	docs   Documents
	tenant string
	when   storage.Range
}

func (r reader) count(index, by, at string, terms map[string][]string) (map[string]int64, error) {
	all, err := r.docs.Aggregate(r.ctx, r.tenant, index, storage.Query{Terms: terms, Ranges: map[string]storage.Range{at: r.when}}, storage.Aggregation{By: by})
	out := make(map[string]int64, len(all))
	for _, b := range all {
		var text string
		if json.Unmarshal([]byte(b.Key), &text) != nil {
			text = b.Key // a number
		}
		out[text] = b.Count
	}
	return out, err
}

func (r reader) plans(f *slice) error {
	const ended = "completed_at"
	replans, err := r.count(storage.IndexPlans, "replan_count", ended, map[string][]string{"status": {"complete", "failed", "needs_input"}})
	if err != nil {
		return err
	}
	for text, n := range replans {
		times, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		f.Plans += n
		f.Replans += times * n
		if times >= catalog.MaxReplans {
			f.Exhausted += n
		}
	}
	done, err := r.count(storage.IndexPlans, "status", ended, map[string][]string{"status": {"complete"}, "replan_count": {"0"}})
	f.AtOnce += done["complete"]
	return err
}

func (r reader) counts(f *slice) error {
	of, err := r.count(storage.IndexEvents, "event_type", "ts", map[string][]string{"event_type": {
		"memory.written", "contract_violation", "skill.principal_mismatch", "large_response.detected",
	}})
	f.Violations += of["contract_violation"]
	f.Writes += of["memory.written"] + of["contract_violation"]
	f.Mismatches += of["skill.principal_mismatch"]
	f.Large += of["large_response.detected"]
	return err
}

func (r reader) calls(s *slice) error {
	all, err := r.count(storage.IndexSkillCalls, "skill_id", "ts", nil)
	if err != nil {
		return err
	}
	failed, err := r.count(storage.IndexSkillCalls, "skill_id", "ts", map[string][]string{"status": {"failed", "indeterminate"}})
	for id, n := range all {
		k := s.skills[id]
		s.skills[id] = SkillFigure{id, k.Calls + n, k.Failed + failed[id]}
		s.Calls += n
	}
	return err
}

// events reads the payloads of events, the newest first.
func (r reader) events(s *slice) error {
	q := storage.Query{Terms: map[string][]string{"event_type": told}, Ranges: map[string]storage.Range{"ts": r.when}, Sort: "-ts", Limit: 1000}
	for read := 0; ; {
		page, err := r.docs.Search(r.ctx, r.tenant, storage.IndexEvents, q)
		if err != nil {
			return err
		}
		for _, d := range page.Documents {
			if err := s.take(d.Body); err != nil {
				return err
			}
		}
		read += len(page.Documents)
		if page.Cursor == "" {
			return nil
		}
		if read >= maxEvents {
			s.Cut = true
			return nil
		}
		q.After = page.Cursor
	}
}

// take adds one event.
func (s *slice) take(body json.RawMessage) error {
	var e struct {
		Type    string    `json:"event_type"`
		Plan    string    `json:"plan_id"`
		At      time.Time `json:"ts"`
		Payload struct {
			Duration *int64 `json:"duration_ms"`
			LockWait int64  `json:"lock_wait_ms"`
			Outcome  string `json:"outcome"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	p := e.Payload
	switch e.Type {
	case "subagent.finish":
		if p.Duration != nil {
			s.took["subagent_b"] = append(s.took["subagent_b"], *p.Duration)
		}
	case "plan.received":
		s.planned[e.Plan] = e.At
	case "subagent_a.spawned":
		s.spawned[e.Plan] = e.At
	case "memory.written", "memory.lock_timeout":
		s.LockWaitMS = max(s.LockWaitMS, p.LockWait)
	case "python_script.executed":
		s.Scripts++
		if p.Outcome == "timeout" {
			s.Timeouts++
		}
	}
	return nil
}
