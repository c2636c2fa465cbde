// Package httpapi is the router's HTTP entrance (DESIGN §4): orders come in as
// they are sealed, since the order is the credential; reads carry a grant.
//
//	POST /v1/intents              a sealed order; ?dry_run=true, Prefer: wait=n
//	GET  /v1/intents/{intent_id}  what became of it
//	GET  /v1/catalog              every type with its schemas
//	GET  /.well-known/jwks.json   the keys in force
//	GET  /livez, /readyz
package httpapi

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/storage"
)

// Config of the entrance. All members are required.
type Config struct {
	Router    *router.Router
	Directory *router.Directory
	Documents storage.Documents // the search index of orders
	Recorder  *recorder.Recorder
	Policy    *policies.Live
	Now       func() time.Time
	Log       *slog.Logger
}

type server struct{ cfg Config }

// New is the router's HTTP interface.
func New(cfg Config) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	s := &server{cfg}
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.ContextWithFallback = true
	_ = e.SetTrustedProxies(nil) // a constant
	e.Use(gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, cause any) {
		cfg.Log.Error("panic", "path", c.FullPath(), "cause", cause)
		s.refuse(c, problem.New(intents.Internal, "", ""))
	}))
	e.NoRoute(func(c *gin.Context) { s.refuse(c, problem.New(intents.NotFound, "", "no such path")) })
	e.POST("/v1/intents", s.submit)
	e.GET("/v1/intents/:id", s.get)
	e.GET("/v1/catalog", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", catalog.Document()) })
	e.GET("/v1/policy", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"digest": cfg.Policy.Engine().Digest()}) })
	e.GET("/.well-known/jwks.json", func(c *gin.Context) { c.JSON(http.StatusOK, cfg.Directory.JWKS()) })
	e.GET("/livez", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })
	e.GET("/readyz", s.ready)
	return e
}

func (s *server) ready(c *gin.Context) {
	if !s.cfg.Router.Ready() {
		c.JSON(http.StatusServiceUnavailable, gin.H{"status": "not ready"})
		return
	}
	c.JSON(http.StatusOK, gin.H{"status": "ok"})
}

// refuse writes a problem.
func (s *server) refuse(c *gin.Context, p *problem.Problem) {
	p.Write(c.Writer)
	c.Abort()
}
