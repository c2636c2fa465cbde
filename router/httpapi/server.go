// Package httpapi is the router's HTTP entrance: orders come in as
// they are sealed, since the order is the credential; reads carry a grant.
//
//	POST /v1/intents              a sealed order; ?dry_run=true, Prefer: wait=n
//	POST /v1/batches              up to 100 of them, all or none; likewise
//	GET  /v1/intents              a list of orders; ?type, code, verdict, plan_id, user, since, until, limit, cursor
//	GET  /v1/intents/{intent_id}  what became of it
//	GET  /v1/intents/{intent_id}/receipt, …/proof
//	GET  /ledger/checkpoint, /ledger/tile/…
//	GET  /v1/approvals            held orders that the bearer may decide, and own ones
//	GET  /v1/approvals/{intent_id}
//	GET  /v1/catalog              every type with its schemas
//	GET  /.well-known/jwks.json   the keys in force
//	GET  /openapi.json            this interface
//	GET  /livez, /readyz
package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Ledger proves and serves the log; package storage/ledger has it.
type Ledger interface {
	// Proof of a position against the published checkpoint; published is false
	// as long as that does not cover it.
	Proof(ctx context.Context, position int64) (doc json.RawMessage, published bool, err error)
	// Handler serves checkpoint and tiles.
	Handler() http.Handler
}

// Config of the entrance. All members but Ledger are required.
type Config struct {
	Router    *router.Router
	State     *state.State
	Documents storage.Documents // the search index of orders
	Recorder  *recorder.Recorder
	Ledger    Ledger // nil: this process has none, and its routes are not there
	Policy    *policies.Live
	Health    *health.Board // what /readyz tells; nil: nobody watches
	Log       *slog.Logger
}

type server struct {
	cfg     Config
	batches chan struct{} // one for each batch that is being carried out
	intake  intake        // of batches
}

// New is the router's HTTP interface.
func New(cfg Config) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	s := &server{cfg: cfg, batches: make(chan struct{}, maxBatches), intake: intake{from: map[string]int{}}}
	e := gin.New()
	e.HandleMethodNotAllowed, e.RedirectTrailingSlash = true, false
	e.ContextWithFallback = true
	_ = e.SetTrustedProxies(nil) // a constant
	e.Use(guard, gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, cause any) {
		cfg.Log.Error("panic", slog.String("path", c.FullPath()), slog.Any("cause", cause))
		s.refuse(c, problem.New(intents.Internal, "", ""))
	}))
	e.NoRoute(func(c *gin.Context) { s.refuse(c, problem.New(intents.NotFound, "", "no such path")) })
	e.NoMethod(func(c *gin.Context) {
		p := problem.New(intents.NotFound, "", "no such method on this path; see the header Allow")
		p.Status = http.StatusMethodNotAllowed
		s.refuse(c, p)
	})
	e.POST("/v1/intents", s.submit)
	e.GET("/v1/intents", s.list)
	e.POST("/v1/batches", s.batch)
	e.GET("/v1/intents/:id", s.get)
	e.GET("/v1/intents/:id/receipt", s.receipt)
	e.GET("/v1/approvals", s.listApprovals)
	e.GET("/v1/approvals/:id", s.getApproval)
	if cfg.Ledger != nil {
		e.GET("/v1/intents/:id/proof", s.proof)
		tiles := s.tiles(http.StripPrefix("/ledger", cfg.Ledger.Handler()))
		e.GET("/ledger/*path", tiles)
		e.HEAD("/ledger/*path", tiles)
	}
	e.GET("/v1/catalog", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", cfg.Router.Catalog().Document()) })
	e.GET("/v1/policy", s.policy)
	e.GET("/.well-known/jwks.json", func(c *gin.Context) { c.JSON(http.StatusOK, cfg.State.JWKS()) })
	e.GET("/openapi.json", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", schemas.OpenAPI()) })
	e.GET("/livez", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })
	e.GET("/readyz", s.ready)
	return e
}

func (s *server) ready(c *gin.Context) {
	up := s.cfg.Health.List()
	switch {
	case !s.cfg.Router.Ready():
		c.JSON(http.StatusServiceUnavailable, status{"not ready", up})
	case len(up) > 0:
		c.JSON(http.StatusOK, status{"degraded", up})
	default:
		c.JSON(http.StatusOK, status{Status: "ok"})
	}
}

// status is the answer of /readyz.
type status struct {
	Status     string             `json:"status"`
	Conditions []health.Condition `json:"conditions,omitempty"`
}

// refuse writes a problem.
func (s *server) refuse(c *gin.Context, p *problem.Problem) {
	if p.TraceID == "" {
		p.TraceID = c.GetString(traceKey)
	}
	if id := c.Param("id"); p.IntentID == "" && intents.IsDigest(id) {
		p.IntentID = id
	}
	p.Write(c.Writer)
	c.Abort()
}
