// Package httpapi is the router's HTTP entrance: intents come in as
// they are signed, since the intent is the credential; reads carry a grant.
//
//	POST /v1/intents              a signed intent; ?dry_run=true, Prefer: wait=n, duplicate=conflict
//	POST /v1/batches              up to 100 of them, all or none; likewise
//	GET  /v1/intents              a list of intents; ?type, code, verdict, plan_id, user, skill, since, until, limit, cursor
//	GET  /v1/intents/{intent_id}  what became of it
//	GET  /v1/intents/{intent_id}/receipt, …/proof
//	GET  /ledger/checkpoint, /ledger/tile/…
//	GET  /v1/approvals            held intents that the bearer may decide, and own ones
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
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Ledger proves and serves the log; package storage/ledger implements it.
type Ledger interface {
	// Proof of a position against the published checkpoint; published is false as long as that does
	// not cover it.
	Proof(ctx context.Context, position int64) (doc json.RawMessage, published bool, err error)
	// Handler serves checkpoint and tiles.
	Handler() http.Handler
}

// Recorder reports the progress of the documents.
type Recorder interface {
	// Reach waits until they have every record before a position.
	Reach(ctx context.Context, position int64) error
}

// Config of the HTTP interface. All members but Ledger and ConsoleAPI are required.
type Config struct {
	Router     *router.Router
	State      *state.State
	Documents  storage.Documents // the search index of intents
	Recorder   Recorder
	Ledger     Ledger     // nil: this process has none, and its routes do not exist
	ConsoleAPI ConsoleAPI // likewise
	Policy     *policies.Live
	Health     *health.Board            // conditions that /readyz lists; nil: there are none
	Prices     map[string]catalog.Price // of models, by driver:model
	// Cached says which cached answers of skills serve a user.
	Cached func(ctx context.Context, of intents.Principal) (catalog.CacheStatsResult, error)
	Access *AccessLog       // nil: reads are logged nowhere
	Root   string           // path of public_url, at which people reach the interface
	Now    func() time.Time // nil: time.Now
	Log    *slog.Logger
}

// rootKey is where a request has Config.Root.
const rootKey = "root"

type server struct {
	cfg    Config
	now    func() time.Time
	intake intake            // of batches
	heavy  *ratelimit.Places // of reads of the whole record
}

// New returns the router's HTTP interface.
func New(cfg Config) http.Handler {
	s := &server{cfg: cfg, now: cfg.Now, intake: intake{from: map[string]int{}}, heavy: ratelimit.PlacesOf(heavyShares)}
	if s.now == nil {
		s.now = time.Now
	}
	r := edge.NewRoutes(cfg.Log, "", func(c *gin.Context) { c.Set(rootKey, cfg.Root) })
	r.POST("/v1/intents", r.Handle(s.submit))
	r.POST("/v1/batches", r.Handle(s.batch))
	s.read(r, "/v1/intents", "", (*visitor).list)
	s.read(r, "/v1/intents/:id", "", func(v *visitor) (any, error) { return v.intent() })
	s.read(r, "/v1/intents/:id/receipt", "", (*visitor).receipt)
	s.read(r, "/v1/approvals", "", (*visitor).listApprovals)
	s.read(r, "/v1/approvals/:id", "", (*visitor).getApproval)
	s.read(r, "/v1/policy", "", (*visitor).policy)
	s.openDocuments(r)
	if cfg.Ledger != nil {
		s.read(r, "/v1/intents/:id/proof", "", (*visitor).proof)
		log := http.StripPrefix("/ledger", cfg.Ledger.Handler())
		tiles := r.Handle(func(c *gin.Context) error { return edge.ServePlain(c, log) })
		r.GET("/ledger/*path", tiles)
		r.HEAD("/ledger/*path", tiles)
	}
	r.GET("/v1/catalog", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", cfg.Router.Catalog().Document()) })
	r.GET("/.well-known/jwks.json", func(c *gin.Context) { c.JSON(http.StatusOK, cfg.State.JWKS()) })
	r.GET("/readyz", s.ready)
	s.openConsoleAPI(r)
	return r.Engine
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
