package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
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
	capabilityAgents  = "agents:read"    // revisions of others
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
	route("policy", capabilityExplain, func(*visitor) (any, error) { return api.Policy(), nil })
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
