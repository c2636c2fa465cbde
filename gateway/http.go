package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/schemas"
)

// maxBody of a request, in bytes.
const maxBody = 1 << 20

// Handler is the gateway's HTTP interface.
func (g *Gateway) Handler() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed, e.RedirectTrailingSlash = true, false
	_ = e.SetTrustedProxies(nil) // fails only on addresses that do not parse
	e.Use(g.observe, g.recover)
	e.NoRoute(g.open(func(*gin.Context) error { return problem.New(intents.NotFound, "", "no such route") }))
	e.NoMethod(g.open(func(*gin.Context) error {
		p := problem.New(intents.NotFound, "", "no such method on this route; see the header Allow")
		p.Status = http.StatusMethodNotAllowed
		return p
	}))
	e.GET("/openapi.json", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", schemas.OpenAPI()) })
	e.GET("/livez", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })
	e.GET("/readyz", g.open(g.ready))
	e.POST("/v1/grants", g.authenticated(g.postGrant))
	e.POST("/agent/run", g.authenticated(g.run))
	e.GET("/agent/plans", g.authenticated(g.listPlans))
	e.GET("/agent/plans/:plan_id", g.authenticated(g.getPlan))
	e.GET("/agent/plans/:plan_id/trace", g.authenticated(g.getTrace))
	e.GET("/agent/plans/:plan_id/events", g.authenticated(g.getEvents))
	e.DELETE("/agent/plans/:plan_id", g.authenticated(g.cancelPlan))
	e.GET("/agent/approvals", g.authenticated(g.listApprovals))
	e.GET("/agent/approvals/:intent_id", g.authenticated(g.getApproval))
	e.POST("/agent/approvals/:intent_id", g.authenticated(g.decideApproval))
	e.PUT("/agent/souls/:tenant_id", g.authenticated(g.putSoul))
	e.POST("/agent/artifacts", g.open(g.putArtifact))
	e.GET("/agent/artifacts/:digest", g.open(g.getArtifact))
	e.GET("/agent/memory/query", g.authenticated(g.queryMemory))
	e.POST("/agent/memory/query", g.authenticated(g.queryMemory))
	return e
}

// open is a route that needs no key.
func (g *Gateway) open(h func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := h(c); err != nil {
			g.refuse(c, err)
		}
	}
}

// authenticated is a route that does.
func (g *Gateway) authenticated(h func(*gin.Context, caller) error) gin.HandlerFunc {
	return g.open(func(c *gin.Context) error {
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBody)
		who, err := g.authenticate(c)
		if err != nil {
			return err
		}
		if err := g.mayGoOn(who); err != nil {
			return err
		}
		err = h(c, who)
		if err != nil && !*who.metered {
			_ = g.meter(who.refused()) // the next one is told
		}
		return err
	})
}

// refuse answers with the problem of an error. A stream that has begun is
// beyond that: it just ends, and the client comes back with Last-Event-ID.
func (g *Gateway) refuse(c *gin.Context, err error) {
	if c.Request.Context().Err() != nil {
		c.Status(statusClientGone)
		return
	}
	p := *problem.Of(err)
	if p.Code == intents.Internal {
		g.cfg.Log.ErrorContext(c.Request.Context(), "request", slog.String("route", c.FullPath()), slog.String("trace_id", traceID(c)), slog.String("error", err.Error()))
	}
	if c.Writer.Written() {
		return
	}
	if p.TraceID == "" {
		p.TraceID = traceID(c)
	}
	p.Write(c.Writer)
}

// statusClientGone is for the log: nobody is there to read it.
const statusClientGone = 499

// observe gives each request a trace and logs it: its route and its end, nothing
// that its sender wrote.
func (g *Gateway) observe(c *gin.Context) {
	began := g.cfg.Now()
	c.Set(traceKey, edge.TraceID(c.Request))
	c.Header("X-Trace-Id", traceID(c))
	c.Header("Cache-Control", "no-store")
	c.Header("X-Content-Type-Options", "nosniff")
	if p := edge.Check(withoutUpload(c)); p != nil {
		g.refuse(c, p)
		c.Abort()
	} else {
		c.Next()
	}
	g.cfg.Log.InfoContext(c.Request.Context(), "request", slog.String("method", c.Request.Method), slog.String("route", c.FullPath()),
		slog.Int("status", c.Writer.Status()), slog.Int64("duration_ms", g.cfg.Now().Sub(began).Milliseconds()),
		slog.String("trace_id", traceID(c)))
}

// recover turns a panic into INTERNAL. Its value may hold what a user wrote, so
// only its type and where it came from are logged.
func (g *Gateway) recover(c *gin.Context) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			g.cfg.Log.ErrorContext(c.Request.Context(), "panic", slog.String("route", c.FullPath()), slog.String("trace_id", traceID(c)), slog.String("stack", string(debug.Stack())))
			g.refuse(c, problem.New(intents.Internal, "", ""))
			c.Abort()
		}
	}()
	c.Next()
}

const traceKey = "trace_id"

func traceID(c *gin.Context) string { return c.GetString(traceKey) }

// lasting is a context for work that goes on although the client has gone away.
func lasting(c *gin.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request.Context()), limit)
}
