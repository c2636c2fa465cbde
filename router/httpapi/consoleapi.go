package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/state"
)

// ConsoleAPI reads what the console shows. The caller has already checked that the person may read
// it.
type ConsoleAPI interface {
	// Signed is the envelope of the intent at a position of the record.
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

// visitor is the bearer of a grant.
type visitor struct {
	*gin.Context
	s      *server
	tenant string
	caps   []string
}

func (v visitor) may(capability string) bool {
	return state.Covers(v.caps, capability)
}

// intent is an intent that the visitor sees; masked reports whether a policy hides any of it.
func (v visitor) intent() (a *intents.Answer, masked bool, err error) {
	a, err = v.s.intent(v.Context)
	return a, err == nil && a.Decision.Masks(), err
}

// openConsoleAPI adds the routes of the console.
func (s *server) openConsoleAPI(r *edge.Routes) {
	api := s.cfg.ConsoleAPI
	if api == nil {
		return
	}
	route := func(path string, answer func(v visitor) (any, error), needs ...string) {
		r.Engine.GET(consoleapi.Path+path, r.Handle(func(c *gin.Context) error {
			v, err := s.visit(c, needs)
			if err != nil {
				return err
			}
			out, err := answer(v)
			if err == nil && out != nil {
				c.JSON(http.StatusOK, out)
			}
			return err
		}))
	}
	route("intents/:id", func(v visitor) (any, error) {
		a, masked, err := v.intent()
		if err != nil || masked {
			return (*consoleapi.Signed)(nil), err
		}
		return api.Signed(v.Request.Context(), *a.Position)
	})
	route("skills", func(v visitor) (any, error) { return api.Skills(v.Request.Context(), v.tenant) })
	route("agents", func(v visitor) (any, error) {
		return api.Agents(v.Request.Context(), v.tenant, v.may(capabilityAgents))
	})
	route("health", func(v visitor) (any, error) {
		return api.Health(v.Request.Context(), v.tenant, v.may(capabilityAudit))
	})
	route("policy", func(visitor) (any, error) { return api.Policy(), nil }, capabilityExplain)
	route("explain/:id", func(v visitor) (any, error) {
		a, masked, err := v.intent()
		switch {
		case err != nil:
			return nil, err
		case masked:
			return nil, problem.New(intents.RBACForbidden, "", "a policy masks parts of the intent, and an explanation would show them")
		}
		return s.heavily(v, func(ctx context.Context) (any, error) { return api.Explain(ctx, a.IntentID) })
	}, capabilityExplain)
	route("bundle", func(v visitor) (any, error) {
		return s.heavily(v, func(ctx context.Context) (any, error) { return nil, s.bundle(ctx, v) })
	}, capabilityAudit)
}

// visit verifies the visitor's grant and capabilities.
func (s *server) visit(c *gin.Context, needs []string) (visitor, error) {
	g, caps, err := s.reader(c)
	v := visitor{c, s, g.Tenant, caps}
	for _, capability := range needs {
		if err == nil && !v.may(capability) {
			err = problem.New(intents.RBACForbidden, "", "the actor lacks the capability "+capability)
		}
	}
	return v, err
}

// heavily runs a read of the whole record: one at a time for a tenant.
func (s *server) heavily(v visitor, read func(ctx context.Context) (any, error)) (any, error) {
	ctx := v.Request.Context()
	wait, cancel := context.WithTimeout(ctx, heavyWait)
	defer cancel()
	leave, err := s.heavy.Wait(wait, v.tenant, "", 0)
	if err != nil {
		return nil, crowded("the record is being read for somebody else")
	}
	defer leave()
	return read(ctx)
}

func (s *server) bundle(ctx context.Context, v visitor) error {
	v.Header("Content-Type", "application/jsonl")
	err := s.cfg.ConsoleAPI.Bundle(ctx, v.Writer, v.tenant)
	if err == nil || !v.Writer.Written() {
		return err
	}
	s.cfg.Log.WarnContext(ctx, "console API: bundle", slog.String("error", err.Error()))
	panic(http.ErrAbortHandler) // a part must not look like the whole
}
