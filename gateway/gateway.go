// Package gateway is where people and applications come in: it says who asks,
// opens a plan for the request, hands the turn to a manager, and shows what
// becomes of it.
//
//	GET    /v1/me                         for whom requests with the key act
//	POST   /v1/skills                     pins a skill's manifest
//	POST   /v1/grants                     a grant of 15 minutes, to read and to seal under
//	POST   /v1/produce                    one order of one sentence, sealed and not submitted
//	POST   /v1/logs                       the address of a stream of a run's log
//	GET    /v1/logs/{id}                  the stream, as a WebSocket
//	POST   /agent/run                     a turn: JSON, or SSE with "stream": true
//	POST   /v1/request                    a turn of the agent that the gate chooses
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
//	GET    /agent/approvals               held orders that the user may decide, and own ones
//	POST   /agent/approvals               decide the held order of a node of a run
//	GET    /agent/approvals/{intent_id}   one of them
//	POST   /agent/approvals/{intent_id}   approve, reject, request_changes or edit
//	PUT    /agent/souls/{tenant_id}       the persona of a tenant, or of one of its users
//	POST   /agent/schedules               has a request carried out later, or again and again
//	GET    /agent/schedules               those of the user
//	DELETE /agent/schedules/{id}          ends one
//	POST   /agent/sessions/{session_id}/resume  goes on with one that has ended, under a new id
//	GET    /agent/memory/query            searches memories; POST takes the same as a body
//	POST   /agent/kb/documents            adds a document; GET lists them, DELETE …/:id removes one
//	POST   /agent/kb/search               searches them
//	GET    /agent/cache                   counts kept answers; POST …/invalidate forgets some
//	POST   /query/                        a memory, memories, or a named query
//	POST   /agent/artifacts               keeps the body for good
//	GET    /agent/artifacts/{digest}      its bytes: with a key, or by a link
//	POST   /mcp                           tools, for clients of the Model Context Protocol; GET, DELETE
//	GET    /skills/                       documents of skills; ?id= with its text
//	GET    /health/deep                   stores, and the agents of the tenant
//	GET    /livez, /readyz, /health
//
// Whoever calls brings an API key (X-Api-Key). The key decides the tenant and
// bounds the roles; headers (X-Tenant-Id, X-User-Id, X-Session-Id) and members
// of the body may name what it covers, and must agree.
//
// The gateway holds one key, which alone allows nothing. For every request it issues
// a grant, a signed statement that this user asked, valid for at most 15 minutes.
// All it does, reads included, is an order of its own under such a grant. It asks
// CORE about people and plans, and keeps nothing that would be missed after a
// restart.
//
// A client that goes away leaves its plan going on. A plan whose driver is gone
// is handed out again (resume.go).
package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/ratelimit"
)

// Config of a gateway. Bus, Frames, Key and Origin are required.
type Config struct {
	Bus    bus.Conn       // as the user gateway
	Frames bus.Conn       // as the user frames: reads display frames, nothing else
	Key    intents.Signer // of role gateway
	Origin string         // log origin
	Now    func() time.Time
	Log    *slog.Logger

	// Artifacts are what people keep and read; nil: none. Links lead to them;
	// whoever has a link may use it.
	Artifacts Artifacts
	Links     Links

	// Registry is for GET /skills/ and /health/deep, and for nothing else.
	Registry Registry

	// Profiles of users whose requests do not say who they are; nil: none.
	Profiles Profiles

	// RunAgent gets the requests of POST /agent/run that name no agent; empty: the planner.
	RunAgent string
	// Gate are the switches of the gate; zero: DefaultGate.
	Gate catalog.Gate

	// PublicURL is where people reach the gateway; empty: where it listens.
	PublicURL string

	// Requests per window for each pair of key and user, beside ReadRate reads a minute.
	RateLimit  int           // 0: DefaultRateLimit; negative: no limit, of reads neither
	RateWindow time.Duration // 0: DefaultRateWindow
	MCPRate    int           // calls of MCP clients a minute, of a tenant's user; 0: DefaultMCPRate; negative: no limit
}

// Defaults of the rate limit.
const (
	DefaultRateLimit  = 100
	DefaultRateWindow = 900 * time.Second
)

// ReadRate is how many reads a minute (GET) a user of a key has, whatever the limit of requests:
// who polls must still be able to approve.
const ReadRate = 600

// callers bounds what the gateway remembers by caller.
var callers = ratelimit.Shares{All: 10_000, Tenant: 4000, Key: 2000}

// Gateway answers HTTP. Run keeps its plans going.
type Gateway struct {
	cfg     Config
	keys    *keyCache
	limit   rates
	doors   *ratelimit.Limiter // of keys and addresses whose user is not known
	reads   rates
	turns   *openTurns
	clients *clients
	pace    pace
	patched chan struct{} // a run may have another graph
	unfired unfired
	dreamt  map[string]bool // last turns whose sessions were tried, by plan; of Run's goroutine
	mcps    *mcpServers
	orders  http.Handler // GET /v1/intents/{intent_id}; nil: another process has it
}

// pace holds the gateway's intervals and limits of time; tests use shorter ones.
type pace struct {
	wait    time.Duration // longest wait of a request without a stream
	quiet   time.Duration // without frames for so long, the plan itself is read
	settled time.Duration // the same where the plan is known to be closed
	resume  time.Duration // between two questions for plans without a driver
	again   time.Duration // before the same plan is handed out once more
	working time.Duration // between two signs of life of a call
	tick    time.Duration // between two looks at which grants are due
	renew   time.Duration // age at which a plan's grant is replaced
}

var defaultPace = pace{
	wait:    10 * time.Minute,
	quiet:   15 * time.Second,
	settled: 250 * time.Millisecond,
	resume:  2 * time.Second,
	again:   30 * time.Second,
	working: 2 * time.Second,
	tick:    30 * time.Second,
	renew:   10 * time.Minute,
}

// New makes a gateway. It starts nothing.
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
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	cfg.Gate = cmp.Or(cfg.Gate, DefaultGate)
	cfg.RateLimit = cmp.Or(cfg.RateLimit, DefaultRateLimit)
	cfg.RateWindow = cmp.Or(cfg.RateWindow, DefaultRateWindow)
	g := &Gateway{
		cfg:   cfg,
		keys:  newKeyCache(cfg.Now),
		limit: newRates(cfg.RateLimit, cfg.RateWindow, cfg.Now),
		doors: ratelimit.New(cfg.RateLimit, cfg.RateWindow, callers, cfg.Now),

		turns:   newOpenTurns(),
		pace:    defaultPace,
		patched: make(chan struct{}, 1),

		clients: newClients(), unfired: unfired{by: make(map[string]notFired)},
	}
	if cfg.RateLimit >= 0 {
		g.reads = newRates(ReadRate, time.Minute, cfg.Now)
	}
	g.mcps = newMCPServers(g, cmp.Or(cfg.MCPRate, DefaultMCPRate))
	return g, nil
}

// Run hands out plans that nobody drives, opens those of schedules, and keeps the grants of
// open ones fresh, until ctx ends.
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
