package edge

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/schemas"
)

// Routes are the routes of an HTTP interface. Each request has a trace, and each refusal
// is a problem document.
type Routes struct {
	*gin.Engine
	log *slog.Logger
	// Bodies of refusals of routes that have another form for them, as JSON.
	Bodies map[string]func(problem.Problem) any
}

// NewRoutes serves /livez and /openapi.json, which every interface has. The first handlers process
// every request, then Check; upload is the one path whose body may be of any type.
func NewRoutes(log *slog.Logger, upload string, first ...gin.HandlerFunc) *Routes {
	gin.SetMode(gin.ReleaseMode)
	r := &Routes{Engine: gin.New(), log: log}
	r.HandleMethodNotAllowed, r.RedirectTrailingSlash = true, false
	_ = r.SetTrustedProxies(nil) // fails only on addresses that do not parse
	r.Use(trace)
	r.Use(first...)
	r.Use(r.recover, r.Handle(func(c *gin.Context) error { return check(c, upload) }))
	r.NoRoute(r.Handle(func(*gin.Context) error { return NoRoute() }))
	r.NoMethod(r.Handle(func(c *gin.Context) error {
		return refuse(http.StatusMethodNotAllowed, intents.NotFound, "no such method on this path", "use one that the path has: "+c.Writer.Header().Get("Allow"))
	}))
	r.GET("/openapi.json", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", schemas.OpenAPI()) })
	r.GET("/livez", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })
	return r
}

// NoRoute is the refusal of a path that has no route.
func NoRoute() error {
	return refuse(http.StatusNotFound, intents.NotFound, "no such path", "GET /openapi.json lists the paths")
}

// Handle answers a request with the answer of h, or with the problem of its error.
func (r *Routes) Handle(h func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := h(c); err != nil {
			r.refuse(c, err)
		}
	}
}

// statusClientClosed is for the log: no client is there to read it.
const statusClientClosed = 499

// refuse answers with the problem of an error. An answer that has begun just ends.
func (r *Routes) refuse(c *gin.Context, err error) {
	c.Abort()
	ctx := c.Request.Context()
	if ctx.Err() != nil && !clock.Stopping(ctx) {
		c.Status(statusClientClosed)
		return
	}
	p := *Stopped(ctx, err)
	if p.Code == intents.Internal {
		r.log.ErrorContext(c.Request.Context(), "request", slog.String("route", c.FullPath()), slog.String("trace_id", Trace(c)), slog.String("error", err.Error()))
	}
	if c.Writer.Written() {
		return
	}
	p.TraceID = cmp.Or(p.TraceID, Trace(c))
	if id := c.Param("id"); p.IntentID == "" && intents.IsDigest(id) {
		p.IntentID = id
	}
	if body := r.Bodies[c.FullPath()]; body != nil {
		p.WriteAs(c.Writer, "application/json", body(p))
		return
	}
	if c.FullPath() == "" && strings.HasPrefix(c.Request.URL.Path+"/", "/v1/") { // no route: it may be one of OpenAI's API
		p.WriteAs(c.Writer, problem.ContentType, problem.WithOpenAI(p))
		return
	}
	p.Write(c.Writer)
}

// Stopped is the problem of an error. An error that comes of the stop of the process, which ended
// ctx, is problem.Stopped.
func Stopped(ctx context.Context, err error) *problem.Problem {
	p := problem.FromError(err)
	if clock.Stopping(ctx) && (p.Code == intents.Internal || p.Code == intents.ExecutorTimeout || p.Code == intents.DispatchUnavailable) {
		return problem.Stopped(p.IntentID, p.PlanID)
	}
	return p
}

// recover turns a panic into INTERNAL. Its value may contain user data, so only its origin is
// logged.
func (r *Routes) recover(c *gin.Context) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			r.log.ErrorContext(c.Request.Context(), "panic", slog.String("route", c.FullPath()), slog.String("trace_id", Trace(c)), slog.String("stack", string(debug.Stack())))
			r.refuse(c, problem.New(intents.Internal, "", ""))
		}
	}()
	c.Next()
}

const traceKey = "trace_id"

// Trace of a request, which its answer names in X-Trace-Id.
func Trace(c *gin.Context) string { return c.GetString(traceKey) }

func trace(c *gin.Context) {
	ctx, span := tracing.Start(tracing.Under(c.Request.Context(), c.GetHeader("Traceparent")), c.Request.Method+" "+c.FullPath(), tracing.Route.String(c.FullPath()))
	defer func() {
		span.SetAttributes(tracing.Status.Int(c.Writer.Status()))
		span.End()
	}()
	id, _ := tracing.IDs(ctx)
	c.Set(traceKey, cmp.Or(id, TraceID(c.Request)))
	c.Request = c.Request.WithContext(logging.In(ctx, Trace(c)))
	c.Header("X-Trace-Id", Trace(c))
	c.Header("X-Content-Type-Options", "nosniff")
	c.Next()
}

func check(c *gin.Context, upload string) error {
	r := c.Request
	if r.Method == http.MethodPost && upload != "" && c.FullPath() == upload {
		r = &http.Request{RequestURI: r.RequestURI, Header: r.Header.Clone()}
		r.Header.Del("Content-Type")
	}
	if p := Check(r); p != nil {
		return p
	}
	return nil
}

// ServePlain answers with a handler that refuses in plain text, and gives its refusal
// instead of the text.
func ServePlain(c *gin.Context, h http.Handler) error {
	w := &statusWriter{ResponseWriter: c.Writer}
	h.ServeHTTP(w, c.Request)
	switch w.refused {
	case 0:
		return nil
	case http.StatusNotFound:
		return problem.New(intents.NotFound, "", "no such resource")
	case http.StatusInternalServerError:
		return problem.New(intents.Internal, "", "")
	}
	p := problem.New(intents.SchemaInvalid, "", http.StatusText(w.refused))
	p.Status = w.refused
	return p
}

// statusWriter writes the status of a refusal, and omits its text.
type statusWriter struct {
	http.ResponseWriter
	refused int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.refused = status
		w.Header().Del("Content-Length")
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.refused != 0 {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
