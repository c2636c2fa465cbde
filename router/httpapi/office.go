package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/office"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/state"
)

// Office reads what the console shows. It asks nobody whether a person may: that was done.
type Office interface {
	// Sealed is the order at a position of the record, as it was signed.
	Sealed(ctx context.Context, position int64) (office.Sealed, error)
	// Skills are the tools that servers declare for a tenant, with their approvals.
	Skills(ctx context.Context, tenant string) ([]office.Skill, error)
	// Agents are the files of a tenant's agents in force and of the revision before. Of those of
	// system, another tenant has the texts only if it may see foreign ones.
	Agents(ctx context.Context, tenant string, foreign bool) ([]office.Revision, error)
	// Policy is the tree in force: texts by name.
	Policy() map[string]string
	// Explain decides a recorded order anew, by the policy of then, and says why.
	Explain(ctx context.Context, id string) (json.RawMessage, error)
	// Backtest decides the orders of a tenant again with one file of the tree changed.
	Backtest(ctx context.Context, tenant string, t office.Trial) (office.Backtest, error)
	// Bundle writes the record of a tenant, complete, without what policies mask.
	Bundle(ctx context.Context, w io.Writer, tenant string) error
	// Health is an office.Health, with the tenant's figures if they are asked for.
	Health(ctx context.Context, tenant string, figures bool) (any, error)
}

// Capabilities for what shows more than the orders that somebody sees.
const (
	capabilityExplain = "policy:explain"
	capabilityAgents  = "agents:read" // revisions of others
	maxTrial          = 1 << 20
	heavyWait         = 10 * time.Second // for another one that reads the whole record
)

// visitor is somebody with a grant.
type visitor struct {
	*gin.Context
	s      *server
	tenant string
	caps   []string
}

func (v visitor) may(capability string) bool {
	return state.Covered(intents.CurrentRules, v.caps, capability)
}

// order that the visitor sees, and of which no policy hides anything.
func (v visitor) order() (a *intents.Answer, masked bool, err error) {
	a, err = v.s.order(v.Context)
	return a, err == nil && masks(a.Decision), err
}

// openOffice adds the routes of the office.
func (s *server) openOffice(r *edge.Routes) {
	desk := s.cfg.Office
	if desk == nil {
		return
	}
	route := func(method, path string, answer func(v visitor) (any, error), needs ...string) {
		r.Engine.Handle(method, office.Path+path, r.Handle(func(c *gin.Context) error {
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
	route(http.MethodGet, "orders/:id", func(v visitor) (any, error) {
		a, masked, err := v.order()
		if err != nil || masked {
			return (*office.Sealed)(nil), err
		}
		return desk.Sealed(v.Request.Context(), *a.Position)
	})
	route(http.MethodGet, "skills", func(v visitor) (any, error) { return desk.Skills(v.Request.Context(), v.tenant) })
	route(http.MethodGet, "agents", func(v visitor) (any, error) {
		return desk.Agents(v.Request.Context(), v.tenant, v.may(capabilityAgents))
	})
	route(http.MethodGet, "health", func(v visitor) (any, error) {
		return desk.Health(v.Request.Context(), v.tenant, v.may(capabilityAudit))
	})
	route(http.MethodGet, "policy", func(visitor) (any, error) { return desk.Policy(), nil }, capabilityExplain)
	route(http.MethodGet, "explain/:id", func(v visitor) (any, error) {
		a, masked, err := v.order()
		switch {
		case err != nil:
			return nil, err
		case masked:
			return nil, problem.New(intents.RBACForbidden, "", "a policy masks parts of the order, and an explanation would show them")
		}
		return s.heavily(v, func(ctx context.Context) (any, error) { return desk.Explain(ctx, a.IntentID) })
	}, capabilityExplain)
	route(http.MethodPost, "backtest", func(v visitor) (any, error) {
		var t office.Trial
		raw, err := bodyOf(v.Context, maxTrial, "a file of a policy has at most 1048576 bytes")
		if err != nil {
			return nil, err
		}
		err = json.Unmarshal(raw, &t)
		if _, ok := desk.Policy()[t.File]; err != nil || !ok {
			return nil, problem.New(intents.NotFound, "/file", "the policy in force has no such file")
		}
		return s.heavily(v, func(ctx context.Context) (any, error) { return desk.Backtest(ctx, v.tenant, t) })
	}, capabilityExplain, capabilityAudit)
	route(http.MethodGet, "bundle", func(v visitor) (any, error) {
		return s.heavily(v, func(ctx context.Context) (any, error) { return nil, s.bundle(ctx, v) })
	}, capabilityAudit)
}

// visit asks who comes.
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

// heavily does what reads the whole record: one at a time for a tenant.
func (s *server) heavily(v visitor, read func(ctx context.Context) (any, error)) (any, error) {
	ctx := v.Request.Context()
	wait, cancel := context.WithTimeout(ctx, heavyWait)
	defer cancel()
	leave, ok := s.heavy.enter(wait, v.tenant)
	if !ok {
		return nil, crowded("the record is being read for somebody else")
	}
	defer leave()
	return read(ctx)
}

func (s *server) bundle(ctx context.Context, v visitor) error {
	v.Header("Content-Type", "application/jsonl")
	err := s.cfg.Office.Bundle(ctx, v.Writer, v.tenant)
	if err == nil || !v.Writer.Written() {
		return err
	}
	s.cfg.Log.WarnContext(ctx, "office: bundle", slog.String("error", err.Error()))
	panic(http.ErrAbortHandler) // a part must not look like the whole
}

// masks says whether a policy hides parts of an order from people.
func masks(d *intents.Decision) bool {
	if d == nil {
		return false
	}
	for _, o := range d.Obligations {
		if o.Name == "mask" {
			return true
		}
	}
	if d.Hold != nil {
		for _, r := range d.Hold.Rules {
			if len(r.Mask) > 0 {
				return true
			}
		}
	}
	return false
}
