package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/storage"
)

// ConsoleAPI reads what the console shows. The caller has already checked that the person may read
// it.
type ConsoleAPI interface {
	// Signed is the intent at a position of the record, with what no policy masks.
	Signed(ctx context.Context, position int64) (consoleapi.Signed, error)
	// Skills are the tools that servers declare for a tenant, with their approvals.
	Skills(ctx context.Context, tenant string) ([]consoleapi.Skill, error)
	// Agents are the files of a tenant's agents in force and of the revision before. Another tenant
	// gets the texts of those of system only if foreign is set.
	Agents(ctx context.Context, tenant string, foreign bool) ([]consoleapi.Revision, error)
	// Policy is the tree in force: texts by name.
	Policy() map[string]string
	// Explain decides a recorded intent again, by the policy of that time, with the reasons.
	Explain(ctx context.Context, id string) (json.RawMessage, error)
	// Bundle writes the record of a tenant, complete, without what policies mask.
	Bundle(ctx context.Context, w io.Writer, tenant string) error
	// Health is a consoleapi.Health, with the tenant's figures if they are requested.
	Health(ctx context.Context, tenant string, figures bool) (any, error)
}

// Capabilities for reads beyond the intents that a person sees.
const (
	capabilityExplain = "policy:explain"
	capabilityAgents  = "agents:read" // revisions of others
	capabilityLogs    = "logs:read"
	heavyWait         = 10 * time.Second // wait for another read of the whole record
)

// heavyShares are the places for reads of the whole record: one at once for a tenant.
var heavyShares = ratelimit.Shares{All: 4, Tenant: 1, Key: 1}

// openConsoleAPI adds the routes of the console.
func (s *server) openConsoleAPI(r *edge.Routes) {
	api := s.cfg.ConsoleAPI
	if api == nil {
		return
	}
	route := func(path, capability string, answer func(v *visitor) (any, error)) {
		s.read(r, consoleapi.Path+path, capability, answer)
	}
	route("intents/:id", "", func(v *visitor) (any, error) {
		a, err := v.intent()
		if err != nil {
			return nil, err
		}
		s, err := api.Signed(v.Request.Context(), *a.Position)
		if s.Masked = a.Decision.Masks(); s.Masked {
			s.Args = nil
			for i := range s.Decided {
				s.Decided[i].Items, s.Decided[i].Reason = nil, ""
			}
		}
		return s, err
	})
	route("skills", "", func(v *visitor) (any, error) { return api.Skills(v.Request.Context(), v.Grant.Tenant) })
	route("agents", "", func(v *visitor) (any, error) {
		return api.Agents(v.Request.Context(), v.Grant.Tenant, v.May(capabilityAgents))
	})
	route("health", "", func(v *visitor) (any, error) {
		return api.Health(v.Request.Context(), v.Grant.Tenant, v.Oversees())
	})
	route("plans/:id/use", catalog.CapabilityPlans, func(v *visitor) (any, error) { return v.use(api) })
	route("plans/:id/lines", capabilityLogs, (*visitor).lines)
	route("policy", capabilityExplain, func(*visitor) (any, error) { return api.Policy(), nil })
	route("shadow", capabilityExplain, func(v *visitor) (any, error) {
		report, err := s.cfg.Router.Shadow(v.Request.Context())
		if report == nil || err != nil {
			return report, err
		}
		return report.Of(v.Grant.Tenant), nil
	})
	route("explain/:id", capabilityExplain, func(v *visitor) (any, error) {
		a, err := v.intent()
		switch {
		case err != nil:
			return nil, err
		case a.Decision.Masks():
			return nil, problem.New(intents.RBACForbidden, "", "a policy masks parts of the intent, and an explanation would show them")
		}
		return s.heavily(v, func(ctx context.Context) (any, error) { return api.Explain(ctx, a.IntentID) })
	})
	route("bundle", catalog.CapabilityAudit, func(v *visitor) (any, error) {
		if err := v.audited(catalog.SubjectBundle); err != nil {
			return nil, err
		}
		return s.heavily(v, func(ctx context.Context) (any, error) { return nil, s.bundle(ctx, v) })
	})
}

// maxReports bounds the intents of a plan that report usage: no plan has so many.
const maxReports = 1000

// use reads what the plan of the path used of models, from the intents that report it.
func (v *visitor) use(api ConsoleAPI) (any, error) {
	p, err := v.plan()
	if err != nil {
		return nil, err
	}
	ctx := v.Request.Context()
	q := storage.Query{Terms: map[string][]string{"plan_id": {p.PlanID}, "type": {"plan", "step.finish", "plan.close"}, "verdict": {string(intents.Allow)}}, Limit: maxReports}
	page, err := v.s.cfg.Documents.Search(ctx, v.Grant.Tenant, storage.IndexIntents, q)
	if err != nil {
		return nil, err
	}
	out := []consoleapi.Use{}
	for _, d := range page.Documents {
		s, err := api.Signed(ctx, d.Position)
		if err != nil {
			return nil, err
		}
		var a struct {
			TaskID string          `json:"task_id"`
			Usage  []catalog.Usage `json:"usage"`
		}
		if len(s.Args) == 0 { // they were erased
			continue
		}
		if err := json.Unmarshal(s.Args, &a); err != nil {
			return nil, err
		}
		if len(a.Usage) == 0 {
			continue
		}
		use, cost, priced := consoleapi.Use{TaskID: a.TaskID, Tokens: catalog.Tokens(a.Usage)}, 0.0, true
		for _, u := range a.Usage {
			price, has := v.s.cfg.Prices[u.Model]
			cost += price.Of(int64(u.InputTokens), int64(u.CachedTokens), int64(u.OutputTokens))
			priced = priced && has
		}
		if priced {
			use.Cost = &cost
		}
		out = append(out, use)
	}
	return out, nil
}

// lines reads the log of the plan of the path, or with ?step= that of a step.
func (v *visitor) lines() (any, error) {
	if err := v.accepts("step"); err != nil {
		return nil, err
	}
	p, err := v.plan()
	if err != nil {
		return nil, err
	}
	step, _ := strconv.Atoi(v.Query("step")) // 0: there is none
	out := consoleapi.Lines{Lines: []catalog.LogLine{}}
	q := storage.Query{Terms: map[string][]string{"plan_id": {p.PlanID}, "event_type": {catalog.EventLine}}, Sort: "position", Limit: maxReports}
	for {
		page, err := v.s.cfg.Documents.Search(v.Request.Context(), v.Grant.Tenant, storage.IndexEvents, q)
		if err != nil {
			return nil, err
		}
		for _, d := range page.Documents {
			var e struct {
				Payload catalog.LogLine `json:"payload"`
			}
			if err := json.Unmarshal(d.Body, &e); err != nil {
				return nil, err
			}
			if step != 0 && e.Payload.Step != step {
				continue
			}
			if out.More = len(out.Lines) == consoleapi.MaxLines; out.More {
				break
			}
			out.Lines = append(out.Lines, e.Payload)
		}
		if q.After = page.Cursor; q.After == "" || out.More {
			break
		}
	}
	slices.SortStableFunc(out.Lines, func(a, b catalog.LogLine) int { return cmp.Or(a.At.Compare(b.At), a.N-b.N) })
	return out, nil
}

// heavily runs a read of the whole record: one at a time for a tenant.
func (s *server) heavily(v *visitor, read func(ctx context.Context) (any, error)) (any, error) {
	ctx := v.Request.Context()
	wait, cancel := context.WithTimeout(ctx, heavyWait)
	defer cancel()
	leave, err := s.heavy.Wait(wait, v.Grant.Tenant, "", 0)
	if err != nil {
		return nil, crowded("the record is being read for somebody else")
	}
	defer leave()
	return read(ctx)
}

func (s *server) bundle(ctx context.Context, v *visitor) error {
	v.Header("Content-Type", "application/jsonl")
	err := s.cfg.ConsoleAPI.Bundle(ctx, v.Writer, v.Grant.Tenant)
	if err == nil || !v.Writer.Written() {
		return err
	}
	s.cfg.Log.WarnContext(ctx, "console API: bundle", slog.String("error", err.Error()))
	panic(http.ErrAbortHandler) // a part must not look like the whole
}
