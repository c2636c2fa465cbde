package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

// maxBody of a request, in bytes.
const maxBody = 1 << 20

// Handler is the gateway's HTTP interface.
func (g *Gateway) Handler() http.Handler { return g.shared(g.routes()) }

func (g *Gateway) routes() *gin.Engine {
	r := edge.NewRoutes(g.cfg.Log, uploadRoute, g.observe)
	r.Bodies = ofBearers
	keyed := func(h func(*gin.Context, caller) error) gin.HandlerFunc { return r.Handle(g.authenticated(h)) }
	by := func(h func(*gin.Context, actor) error) gin.HandlerFunc { return keyed(g.identified(h)) }
	ofPlan := func(h func(*gin.Context, actor, string) error) gin.HandlerFunc { return keyed(g.aboutPlan(h)) }
	r.GET("/readyz", r.Handle(g.ready))
	mcp := r.Handle(g.mcpRoute(g.authenticated(g.mcp)))
	r.POST(routeMCP, mcp)
	r.GET(routeMCP, mcp)
	r.DELETE(routeMCP, mcp)
	r.GET(server.WellKnownProtectedResourcePath, r.Handle(g.protectedResource))
	r.GET(server.WellKnownProtectedResourcePath+routeMCP, r.Handle(g.protectedResource))
	if g.root != "" { // the path of the resource is inserted (RFC 9728)
		r.GET(server.WellKnownProtectedResourcePath+g.root+routeMCP, r.Handle(g.protectedResource))
	}
	r.GET("/v1/me", keyed(g.getMe))
	r.GET("/v1/apikeys", by(g.getAPIKeys))
	r.POST("/v1/grants", keyed(g.postGrant))
	r.POST("/v1/skills", keyed(g.submits("skill.approve", nil)))
	r.POST("/v1/stop", keyed(g.submits(catalog.TypeAdminStop, nil)))
	r.POST("/v1/produce", keyed(g.produce))
	r.POST("/v1/logs", keyed(g.submits("logs.stream", nil)))
	r.GET(routeLogs, by(g.getLogs))
	r.POST("/agent/run", keyed(g.run))
	r.POST("/v1/request", keyed(g.request))
	chat := keyed(g.chat)
	r.POST("/chat/:session_id", func(c *gin.Context) {
		if c.Param("session_id") == "completions" { // of OpenAI's API, without its /v1
			r.Handle(g.unserved)(c)
			return
		}
		chat(c)
	})
	r.NoRoute(r.Handle(g.unserved))
	r.POST(routeCompletions, keyed(g.openai(newCompletion)))
	r.POST(routeResponses, keyed(g.openai(newResponse)))
	r.GET(routeModels, by(g.listModels))
	r.GET(routeModel, by(g.listModels))
	r.GET("/agent/plans", keyed(g.routed(readapi.Plans, "status", "limit", "after")))
	r.GET("/agent/plans/:plan_id", ofPlan(g.getPlan))
	r.GET("/agent/plans/:plan_id/trace", ofPlan(g.getTrace))
	r.GET("/agent/plans/:plan_id/events", keyed(g.getEvents))
	r.DELETE("/agent/plans/:plan_id", ofPlan(g.cancelPlan))
	r.POST("/v1/runs", keyed(g.startRun))
	r.GET("/v1/runs", by(g.listRuns))
	r.GET("/v1/runs/:run_id", ofPlan(g.getRun))
	r.GET("/v1/runs/:run_id/stream", keyed(g.getEvents))
	r.DELETE("/v1/runs/:run_id", ofPlan(g.cancelPlan))
	r.POST("/v1/runs/:run_id/patch", keyed(g.patchRun))
	r.POST("/v1/runs/:run_id/replay", keyed(g.replayRun))
	r.GET("/agent/approvals", keyed(g.routed(approvalsAt, "mine", "type", "brief", "limit", "after")))
	r.POST("/agent/approvals", keyed(g.decideNode))
	r.GET("/agent/approvals/:intent_id", by(g.getApproval))
	r.POST("/agent/approvals/:intent_id", keyed(g.decideApproval))
	r.PUT("/agent/souls/:tenant_id", keyed(g.putSoul))
	r.POST("/agent/artifacts", r.Handle(g.putArtifact))
	r.GET("/agent/artifacts/:digest", r.Handle(g.getArtifact))
	r.GET("/agent/memory/query", keyed(g.queryMemory))
	r.POST("/agent/memory/query", keyed(g.queryMemory))
	r.POST("/agent/kb/documents", keyed(g.submits("kb.index", nil)))
	r.GET("/agent/kb/documents", keyed(g.routed(readapi.Knowledge, "limit", "after")))
	r.DELETE("/agent/kb/documents/:id", keyed(g.submits("kb.remove", removedDocument)))
	r.POST("/agent/kb/search", keyed(g.submits("kb.search", nil)))
	r.GET("/agent/cache", keyed(g.routed(readapi.Cache)))
	r.POST("/agent/cache/invalidate", keyed(g.submits("cache.invalidate", nil)))
	r.POST("/agent/connections", keyed(g.connect))
	r.DELETE("/agent/connections/:server", keyed(g.submits(catalog.TypeSkillDisconnect, disconnected)))
	r.GET("/schemas/", by(g.listSchemas))
	r.PUT("/schemas/:name", keyed(g.putSchema))
	r.GET("/health", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": Up}) })
	r.GET("/health/deep", r.Handle(g.health))
	r.GET("/skills/", by(g.listSkills))
	r.POST("/query/", keyed(g.query))
	r.POST("/agent/schedules", keyed(g.submits("schedule.put", nil)))
	r.GET("/agent/schedules", by(g.listSchedules))
	r.DELETE("/agent/schedules/:id", keyed(g.submits("schedule.delete", removedSchedule)))
	r.GET("/agent/sessions", keyed(g.routed(readapi.Sessions, "limit", "after")))
	r.POST("/agent/sessions/:session_id/resume", by(g.resumeSession))
	return r.Engine
}

// ready is GET /readyz: the router answers queries about API keys.
func (g *Gateway) ready(c *gin.Context) error {
	_, err := ask[bus.APIKeyReply](c.Request.Context(), g.cfg.Bus, bus.DirectoryAPIKey, bus.APIKeyRequest{})
	return respond(c, gin.H{"status": "ok"}, err)
}

// authenticated is a route that needs a key.
func (g *Gateway) authenticated(h func(*gin.Context, caller) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBody)
		who, err := g.authenticate(c)
		if err != nil {
			return err
		}
		if err := g.mayGoOn(who); err != nil {
			return err
		}
		leave, ok := g.open.Take(who.key.Tenant, who.key.ID)
		if !ok {
			p := problem.New(intents.Overloaded, "", "too many requests and streams of this API key or its tenant are open")
			p.RetryAfter, p.Hint = time.Second, "end some of them, or wait until they end"
			return p
		}
		defer leave()
		err = h(c, who)
		if err != nil && !*who.metered {
			_ = meter(g.doors, who.refused()) // the next request is refused
		}
		return err
	}
}

// identified is a route whose request names no user in its body.
func (g *Gateway) identified(h func(*gin.Context, actor) error) func(*gin.Context, caller) error {
	return func(c *gin.Context, who caller) error {
		a, err := g.identify(c.Request.Context(), who, claim{})
		if err != nil {
			return err
		}
		return h(c, a)
	}
}

// aboutPlan is a route for the plan, or run, in its path.
func (g *Gateway) aboutPlan(h func(c *gin.Context, a actor, planID string) error) func(*gin.Context, caller) error {
	return func(c *gin.Context, who caller) error {
		a, planID, err := g.identifyForPlan(c, who)
		if err != nil {
			return err
		}
		return h(c, a, planID)
	}
}

// respond sends the result of a route, or returns its error.
func respond[T any](c *gin.Context, found T, err error) error {
	if err == nil {
		c.JSON(http.StatusOK, found)
	}
	return err
}

// observe logs a request: its route and its outcome, but no content of the sender.
func (g *Gateway) observe(c *gin.Context) {
	began := g.cfg.Now()
	c.Header("Cache-Control", "no-store")
	c.Next()
	g.cfg.Log.InfoContext(c.Request.Context(), "request", slog.String("method", c.Request.Method), slog.String("route", c.FullPath()),
		slog.Int("status", c.Writer.Status()), slog.Int64("duration_ms", g.cfg.Now().Sub(began).Milliseconds()),
		slog.String("trace_id", edge.Trace(c)))
}

// lasting is a context for work that goes on although the client has disconnected.
func lasting(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := clock.UntilStop(ctx)
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, func() {
		cancel()
		end()
	}
}
