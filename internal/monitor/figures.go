// Package monitor reads what the recorder writes, as anybody could who may read the
// documents, and makes figures and alerts of it. It decides nothing, and nothing waits for
// it.
package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Documents are where agent_plans, agent_events and agent_skill_calls are.
type Documents interface {
	Search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error)
	Aggregate(ctx context.Context, tenant, index string, q storage.Query, a storage.Aggregation) ([]storage.Bucket, error)
}

// Figures of a stretch of time, of all tenants together.
type Figures struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`

	Plans     int64 `json:"plans"`     // that have ended
	AtOnce    int64 `json:"at_once"`   // of these complete, without a replan
	Replans   int64 `json:"replans"`   // of all of these
	Exhausted int64 `json:"exhausted"` // with as many replans as there may be

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

	// Cut says that only the newest events were read for scripts, locks and durations.
	Cut bool `json:"cut,omitempty"`
}

// Process is what a process knows of itself, now.
type Process struct {
	HoldsLate    int           `json:"holds_late"`    // orders that wait for people, past half of their time
	LedgerBehind time.Duration `json:"ledger_behind"` // how long records have been without their leaf, in nanoseconds
	Conditions   []string      `json:"conditions"`    // that /readyz tells
}

// SkillFigure is how calls of a skill ended.
type SkillFigure struct {
	Skill  string `json:"skill"`
	Calls  int64  `json:"calls"`
	Failed int64  `json:"failed"`
}

// AgentFigure is how long agents of a type took.
type AgentFigure struct {
	Agent string `json:"agent"` // subagent_a plans, subagent_b carries steps out
	Ended int    `json:"ended"`
	P95MS int64  `json:"p95_ms"`
}

// part of a whole; false: there is no whole.
func part(n, of int64) (float64, bool) {
	if of == 0 {
		return 0, false
	}
	return float64(n) / float64(of), true
}

// maxEvents of a tenant are read whole for one look; the others are counted alone.
const maxEvents = 5000

// told are the events whose payload is read.
var told = []string{"subagent_a.spawned", "plan.received", "subagent.finish", "memory.written", "memory.lock_timeout", "python_script.executed"}

// Read makes the figures of what ended between two times.
func Read(ctx context.Context, docs Documents, tenants []string, since, until time.Time) (Figures, error) {
	f := Figures{Since: since, Until: until}
	skills, took := map[string]*SkillFigure{}, map[string][]int64{}
	for _, tenant := range tenants {
		r := reader{ctx, docs, tenant, storage.Range{GTE: intents.FormatTime(since), LT: intents.FormatTime(until)}}
		for _, read := range []func(*Figures) error{r.plans, r.counts, func(f *Figures) error { return r.calls(f, skills) }, func(f *Figures) error { return r.events(f, took) }} {
			if err := read(&f); err != nil {
				return f, fmt.Errorf("monitor: tenant %s: %w", tenant, err)
			}
		}
	}
	for _, s := range skills {
		f.Skills = append(f.Skills, *s)
	}
	slices.SortFunc(f.Skills, func(a, b SkillFigure) int { return cmp.Compare(a.Skill, b.Skill) })
	for agent, all := range took {
		slices.Sort(all)
		f.Agents = append(f.Agents, AgentFigure{agent, len(all), all[(len(all)*95+99)/100-1]})
	}
	slices.SortFunc(f.Agents, func(a, b AgentFigure) int { return cmp.Compare(a.Agent, b.Agent) })
	return f, nil
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

func (r reader) plans(f *Figures) error {
	const ended = "completed_at"
	replans, err := r.count(storage.IndexPlans, "replan_count", ended, map[string][]string{"status": {"complete", "failed"}})
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

func (r reader) counts(f *Figures) error {
	of, err := r.count(storage.IndexEvents, "event_type", "ts", map[string][]string{"event_type": {
		"memory.written", "contract_violation", "skill.principal_mismatch", "large_response.detected",
	}})
	f.Violations += of["contract_violation"]
	f.Writes += of["memory.written"] + of["contract_violation"]
	f.Mismatches += of["skill.principal_mismatch"]
	f.Large += of["large_response.detected"]
	return err
}

func (r reader) calls(f *Figures, skills map[string]*SkillFigure) error {
	all, err := r.count(storage.IndexSkillCalls, "skill_id", "ts", nil)
	if err != nil {
		return err
	}
	failed, err := r.count(storage.IndexSkillCalls, "skill_id", "ts", map[string][]string{"status": {"failed", "indeterminate"}})
	for id, n := range all {
		if skills[id] == nil {
			skills[id] = &SkillFigure{Skill: id}
		}
		f.Calls += n
		skills[id].Calls += n
		skills[id].Failed += failed[id]
	}
	return err
}

// events reads what stands in the payloads of events, the newest first.
func (r reader) events(f *Figures, took map[string][]int64) error {
	q := storage.Query{Terms: map[string][]string{"event_type": told}, Ranges: map[string]storage.Range{"ts": r.when}, Sort: "-position", Limit: 1000}
	received := map[string]time.Time{}
	for read := 0; ; {
		page, err := r.docs.Search(r.ctx, r.tenant, storage.IndexEvents, q)
		if err != nil {
			return err
		}
		for _, d := range page.Documents {
			if err := take(f, took, received, d.Body); err != nil {
				return err
			}
		}
		read += len(page.Documents)
		if page.Cursor == "" {
			return nil
		}
		if read >= maxEvents {
			f.Cut = true
			return nil
		}
		q.After = page.Cursor
	}
}

// take adds one event. received are plans whose planner has ended and whose beginning is
// not read yet.
func take(f *Figures, took map[string][]int64, received map[string]time.Time, body json.RawMessage) error {
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
			took["subagent_b"] = append(took["subagent_b"], *p.Duration)
		}
	case "plan.received":
		received[e.Plan] = e.At
	case "subagent_a.spawned":
		if end, ok := received[e.Plan]; ok {
			took["subagent_a"] = append(took["subagent_a"], end.Sub(e.At).Milliseconds())
			delete(received, e.Plan)
		}
	case "memory.written", "memory.lock_timeout":
		f.LockWaitMS = max(f.LockWaitMS, p.LockWait)
	case "python_script.executed":
		f.Scripts++
		if p.Outcome == "timeout" {
			f.Timeouts++
		}
	}
	return nil
}
