// Package gateway is the entrance for people and applications: it identifies the user, opens a
// plan for the request, dispatches the turn to a manager, and shows its progress and result.
//
//	GET    /v1/me                         the user for whom requests with the key act
//	GET    /v1/apikeys                    the API keys of that user
//	POST   /v1/skills                     pins a skill's manifest
//	POST   /v1/grants                     a grant of 15 minutes, for reading and for signing
//	POST   /v1/produce                    one intent from one sentence, signed and not submitted
//	POST   /v1/logs                       the address of a stream of a run's log
//	GET    /v1/logs/{id}                  the stream, as a WebSocket
//	POST   /agent/run                     a turn: JSON, or SSE with "stream": true
//	POST   /v1/request                    a turn of the agent that request routing chooses
//	POST   /chat/{session_id}             a turn of a conversation, as SSE
//	POST   /v1/chat/completions           a turn, for clients of OpenAI's API
//	POST   /v1/responses                  the same, for its later API
//	GET    /v1/models                     the agents
//	GET    /v1/models/{model}             one of them
//	GET    /agent/plans                   plans, newest first
//	GET    /agent/plans/{plan_id}         the plan
//	GET    /agent/plans/{plan_id}/trace   its events, in order
//	GET    /agent/plans/{plan_id}/events  its stream again, after Last-Event-ID
//	DELETE /agent/plans/{plan_id}         cancels it
//	POST   /v1/runs                       starts a run of a workflow
//	GET    /v1/runs                       runs, newest first
//	GET    /v1/runs/{run_id}              the run: nodes, edges, and what was decided about them
//	GET    /v1/runs/{run_id}/stream       its stream, after Last-Event-ID
//	DELETE /v1/runs/{run_id}              cancels it
//	POST   /v1/runs/{run_id}/patch        changes its graph
//	POST   /v1/runs/{run_id}/replay       repeats it from a node on
//	GET    /agent/approvals               pending approvals that the user may decide, and own ones
//	POST   /agent/approvals               decide the pending approval at a node of a run
//	GET    /agent/approvals/{intent_id}   one of them
//	POST   /agent/approvals/{intent_id}   approve, reject, request_changes or edit
//	PUT    /agent/souls/{tenant_id}       the persona of a tenant, or of one of its users
//	POST   /agent/schedules               schedules a request, once or repeatedly
//	GET    /agent/schedules               those of the user
//	DELETE /agent/schedules/{id}          ends one
//	GET    /agent/sessions                sessions, the last used first
//	POST   /agent/sessions/{session_id}/resume  continues an ended session under a new id
//	GET    /agent/memory/query            searches memories; POST takes the same as a body
//	POST   /agent/kb/documents            adds a document; GET lists them, DELETE …/:id removes one
//	POST   /agent/kb/search               searches them
//	GET    /agent/cache                   counts cached answers; POST …/invalidate drops some
//	POST   /query/                        a memory, memories, or a named query
//	POST   /agent/artifacts               retains the body for good
//	GET    /agent/artifacts/{digest}      its bytes: with a key, or by a link
//	POST   /mcp                           tools, for clients of the Model Context Protocol; GET, DELETE
//	PUT    /schemas/{name}                puts an agent of the tenant in force; GET /schemas/ lists them
//	GET    /skills/                       documents of skills; ?id= with its text
//	GET    /health/deep                   stores, and the agents of the tenant
//	GET    /livez, /readyz, /health
//
// Every caller sends an API key (X-Api-Key). The key determines the tenant and bounds the roles;
// headers (X-Tenant-Id, X-User-Id, X-Session-Id) and members of the body may name what the key
// covers, and must agree.
//
// The gateway has one key, which alone allows nothing. For every request it issues a grant, a
// signed statement that this user asked, valid for at most 15 minutes. Every action is an intent of
// its own under such a grant. What a person reads is no intent: a router answers it, under a grant
// for reading of 5 minutes (reads.go). The gateway retains nothing that would be missed after a
// restart.
//
// When a client disconnects, its plan continues, unless the client is a chat front end. A plan whose driver is gone is dispatched again
// (resume.go).
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/ratelimit"
)

// Config of a gateway. Bus, Frames, Key and Origin are required.
type Config struct {
	Bus    bus.Conn       // with the rights of the user gateway
	Frames bus.Conn       // with the rights of the user frames: reads display frames, nothing else
	Key    intents.Signer // of role gateway
	Origin string         // log origin
	Now    func() time.Time
	Log    *slog.Logger

	// Artifacts store and serve artifacts; nil: none. Links lead to them; anyone who has a link
	// may use it.
	Artifacts Artifacts
	Links     Links

	// Registry is for GET /skills/ and /health/deep only.
	Registry Registry

	// People come with access tokens of OpenID providers for PublicURL; nil or empty: API keys alone are taken.
	People *openid.Providers

	// Profiles supply the users that requests do not describe; nil: none.
	Profiles Profiles

	// RunAgent gets the requests of POST /agent/run that name no agent; empty: the planner.
	RunAgent string
	// Routing are the switches of request routing; zero: DefaultRouting.
	Routing catalog.Routing

	// PublicURL is the address that people use, without a slash at its end; empty: the listener's.
	PublicURL string

	// UserHeaders name the user of a request, beside X-User-Id and that of Open WebUI, under a key that may assert users.
	UserHeaders []string
	// Origins are those of other sites whose pages may call the API from a browser.
	Origins []string

	// Requests per window for each pair of key and user; ReadRate reads a minute are allowed
	// besides.
	RateLimit  int           // 0: DefaultRateLimit; negative: no limit, of reads neither
	RateWindow time.Duration // 0: DefaultRateWindow
	MCPRate    int           // calls of MCP clients a minute, of a tenant's user; 0: DefaultMCPRate; negative: no limit

	MCPTools  int      // skills that MCP clients are listed, more are searched for; 0: DefaultMCPTools; negative: all
	MCPPinned []string // skills, or patterns of them, that are listed whatever their number
}

// Defaults of the rate limit.
const (
	DefaultRateLimit  = 100
	DefaultRateWindow = 900 * time.Second
)

// ReadRate is how many reads a minute (GET) a user of a key has, whatever the limit of requests:
// a polling client must still be able to approve.
const ReadRate = 600

// PromptRate is how many prompts a minute, for titles and the like, a user of a chat front end has,
// whatever the limit of requests.
const PromptRate = 60

// callers bounds the per-caller state of the gateway.
var callers = ratelimit.Shares{All: 10_000, Tenant: 4000, Key: 2000}

// maxOpen bounds concurrent requests with an API key, including streams: half of the connections.
const maxOpen = 1024

// Gateway answers HTTP. Run keeps its plans running.
type Gateway struct {
	cfg     Config
	public  *url.URL                           // cfg.PublicURL; the zero value if it is empty
	root    string                             // its path
	keys    *ratelimit.Recent[bus.APIKeyReply] // owners, by the hash of the key
	foreign *ratelimit.Recent[bool]            // hashes of keys for skill servers, which are no API keys
	limit   rates
	doors   *ratelimit.Limiter // of keys and addresses without a known user
	reads   rates
	prompts rates
	open    *ratelimit.Places // for requests
	turns   *openTurns
	clients *clients
	pace    pace
	patched chan struct{}               // signals that a run may have another graph
	unfired *ratelimit.Recent[notFired] // schedules that open no plan, by "tenant/user/id"
	dreamt  map[string]bool             // last turns whose sessions were tried, by plan; owned by Run's goroutine
	mcps    *mcpServers
	router  http.Handler              // answers reads; nil: none is known
	audits  *ratelimit.Recent[string] // the audit.reads that this process has signed, by reader and subject, and by reader and path
	signing singleflight.Group        // of them
	last    atomic.Int64              // position of the last intent that was recorded for it
}

// pace has the gateway's intervals and limits of time; tests use shorter ones.
type pace struct {
	wait       time.Duration // longest wait of a request without a stream
	quiet      time.Duration // without frames for so long, the plan itself is read
	closed     time.Duration // the same if the plan is known to be closed
	resume     time.Duration // between two requests for plans without a driver
	redispatch time.Duration // before the same plan is dispatched again
	working    time.Duration // between two progress reports of a call
	call       time.Duration // longest wait for a call of a client that does not ask for its progress
	look       time.Duration // longest pause between two looks at a call that runs
	tick       time.Duration // between two checks of which grants are due
	renew      time.Duration // age at which a plan's grant is replaced
}

var defaultPace = pace{
	wait:       10 * time.Minute,
	quiet:      15 * time.Second,
	closed:     250 * time.Millisecond,
	resume:     2 * time.Second,
	redispatch: 30 * time.Second,
	working:    2 * time.Second,
	call:       50 * time.Second, // clients give up after 60
	look:       4 * time.Second,
	tick:       30 * time.Second,
	renew:      10 * time.Minute,
}

// New creates a gateway. It starts nothing.
func New(cfg Config) (*Gateway, error) {
	switch {
	case cfg.Bus == nil || cfg.Frames == nil:
		return nil, errors.New("gateway: needs its two connections")
	case cfg.Key.Key == nil || cfg.Key.Role != intents.RoleGateway:
		return nil, errors.New("gateway: needs a key of role gateway")
	case cfg.Origin == "":
		return nil, errors.New("gateway: needs the log origin")
	case cfg.RateWindow < 0:
		return nil, errors.New("gateway: the window of the rate limit must be positive")
	}
	public, err := url.Parse(cfg.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	cfg.Routing = cmp.Or(cfg.Routing, DefaultRouting)
	cfg.RateLimit = cmp.Or(cfg.RateLimit, DefaultRateLimit)
	cfg.RateWindow = cmp.Or(cfg.RateWindow, DefaultRateWindow)
	cfg.MCPTools = cmp.Or(cfg.MCPTools, DefaultMCPTools)
	g := &Gateway{
		cfg: cfg, public: public, root: public.Path,
		keys:    ratelimit.NewRecent[bus.APIKeyReply](callers, keyLife, cfg.Now),
		foreign: ratelimit.NewRecent[bool](callers, keyLife, cfg.Now),
		limit:   newRates(cfg.RateLimit, cfg.RateWindow, cfg.Now),
		open:    ratelimit.NewPlaces(maxOpen),
		doors:   ratelimit.New(cfg.RateLimit, cfg.RateWindow, callers, cfg.Now),

		turns:   newOpenTurns(),
		pace:    defaultPace,
		patched: make(chan struct{}, 1),
		audits:  ratelimit.NewRecent[string](auditShares, auditLife, cfg.Now),

		clients: newClients(), unfired: ratelimit.NewRecent[notFired](unfiredShares, 0, cfg.Now),
	}
	if cfg.RateLimit >= 0 {
		g.reads, g.prompts = newRates(ReadRate, time.Minute, cfg.Now), newRates(PromptRate, time.Minute, cfg.Now)
	}
	g.mcps = newMCPServers(g, cmp.Or(cfg.MCPRate, DefaultMCPRate))
	return g, nil
}

// Run dispatches plans without a driver, opens those of schedules, and renews the grants of open
// ones, until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	resume, tick := time.NewTicker(g.pace.resume), time.NewTicker(g.pace.tick)
	defer resume.Stop()
	defer tick.Stop()
	for {
		g.resumeSilent(ctx)
		g.endLate(ctx)
		g.mcps.tick(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			g.renewGrants(ctx)
		case <-resume.C:
		case <-g.patched:
		}
	}
}
