package gateway

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/state/agents"
)

// Bounds of the state for MCP clients. At the limit of sessions, the least recently used one
// ends: its client starts over.
const (
	maxMCPSessions = 64        // of one caller
	mcpIdle        = time.Hour // without a request or a stream
	keyRates       = 10        // times the rate of a user, for a key that acts for many
)

// mcpShares are of the servers: of all callers, of a tenant's, and of those of a key.
var mcpShares = ratelimit.Shares{All: 2000, Tenant: 500, Key: 100}

// skillClient calls skills for MCP clients.
type skillClient interface {
	callSkill(ctx context.Context, who actor, c clientCall) (*intents.Answer, error)
	clientSkills(ctx context.Context, who actor) ([]catalog.Manifest, error)
	findSkills(ctx context.Context, who actor, session string, query catalog.SkillFind) (*intents.Answer, error)
	clientLines(ctx context.Context, who actor, session string, lines catalog.ReadLines) (*intents.Answer, error)
	endClient(ctx context.Context, who actor, session string)
	readResource(ctx context.Context, who actor, session string, args catalog.ResourceRead) (*intents.Answer, error)
}

// mcpServers are the MCP servers: one for each caller, so that nobody sees a session, a call or a
// notification of another.
type mcpServers struct {
	g      *Gateway
	skills skillClient
	limit  *ratelimit.Limiter // of tenant and user
	keys   *ratelimit.Limiter // of keys, which may act for many users
	roles  *ratelimit.Recent[[]string]

	mu  sync.Mutex
	all *ratelimit.Table[*mcpServer] // by key, tenant and user
}

// mcpServer serves one caller.
type mcpServer struct {
	servers        *mcpServers
	rpc            *server.MCPServer
	http           *server.StreamableHTTPServer
	defaultSession string // session of the clients that have none

	repeats *repeats

	listing sync.Mutex // one request to the servers for their lists at a time

	renewing  sync.Mutex // guards what follows
	documents []agents.SkillDocument
	readers   []reader
	offers    offers
	offer     string    // source of the tools
	shown     int       // skills among them
	until     time.Time // their expiry

	mu       sync.Mutex // guards what follows
	actor    actor      // as of the last request
	used     time.Time
	sessions map[string]*mcpSession
	listens  int // listening clients without a session
}

type mcpSession struct {
	used time.Time
	open int // requests and streams
}

func newMCPServers(g *Gateway, rate int) *mcpServers {
	return &mcpServers{
		g: g, skills: g, limit: ratelimit.New(rate, mcpWindow, callers, g.cfg.Now), keys: ratelimit.New(keyRates*rate, mcpWindow, callers, g.cfg.Now),
		roles: ratelimit.NewRecent[[]string](callers, keyLife, g.cfg.Now),
		all:   ratelimit.NewTable(mcpShares, func(old *mcpServer) { go old.close() }), // its client starts over
	}
}

// meter counts a request against the rates of the key and of a tenant's user.
func (s *mcpServers) meter(a actor) error {
	if wait, ok := s.keys.Allow(ratelimit.Caller{Tenant: a.tenant, Key: a.keyID}); !ok {
		return limited(wait)
	}
	if wait, ok := s.limit.Allow(ratelimit.Caller{Tenant: a.tenant, Name: a.user}); !ok {
		return limited(wait)
	}
	return nil
}

// rolesOf returns the roles under which an actor calls a tool, as they were at most keyLife ago: the
// router judges each call by the user and the roles of its own time.
func (s *mcpServers) rolesOf(ctx context.Context, a actor, most []string) ([]string, error) {
	id := strings.Join(append([]string{a.tenant, a.keyID, a.user}, most...), "\n")
	if roles, ok := s.roles.Get(id); ok {
		return roles, nil
	}
	roles, err := s.g.rolesOf(ctx, a, most)
	if err == nil {
		s.roles.Put(id, a.tenant, a.keyID, 1, roles)
	}
	return roles, err
}

// serverOf returns the caller's own server.
func (s *mcpServers) serverOf(a actor) (*mcpServer, error) {
	name := a.tenant + "\n" + a.keyID + "\n" + a.user
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all.Get(name)
	if !ok {
		one = s.newServer()
		s.all.Put(name, a.tenant, a.keyID, 1, one)
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.actor, one.used = a, s.g.cfg.Now()
	return one, nil
}

func (s *mcpServers) newServer() *mcpServer {
	one := &mcpServer{servers: s, defaultSession: newID("mcp"), repeats: newRepeats(), sessions: map[string]*mcpSession{}}
	one.rpc = server.NewMCPServer("writ", intents.Version, server.WithToolCapabilities(true), server.WithToolFilter(withoutUnlisted), server.WithResourceCapabilities(false, true), server.WithPromptCapabilities(true), server.WithInstructions(mcpInstructions))
	one.http = server.NewStreamableHTTPServer(one.rpc, server.WithSessionIdManager(one), server.WithDisableLocalhostProtection(true), server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)))
	return one
}

// tick ends unused servers and sessions, and notifies listeners when their tools have changed.
// Disabled callers are no longer served.
func (s *mcpServers) tick(ctx context.Context) {
	s.mu.Lock()
	all := maps.Collect(s.all.All())
	s.mu.Unlock()
	for name, one := range all {
		open, unused := one.sweep()
		if open && problem.FromError(one.renew(ctx)).Code == intents.RBACForbidden {
			unused = true
		}
		if unused {
			s.mu.Lock()
			s.all.Remove(name)
			s.mu.Unlock()
			one.close() //nolint:contextcheck // the ends of its plans outlive the tick
		}
	}
}

// sweep ends idle sessions, and reports whether any client waits for an answer or a notification,
// and whether there is none at all.
func (s *mcpServer) sweep() (open, unused bool) {
	now := s.servers.g.cfg.Now()
	s.mu.Lock()
	var idle []string
	open = s.listens > 0
	for id, x := range s.sessions {
		open = open || x.open > 0
		if x.open == 0 && now.Sub(x.used) > mcpIdle {
			idle = append(idle, id)
		}
	}
	unused = !open && len(s.sessions) == len(idle) && now.Sub(s.used) > mcpIdle
	s.mu.Unlock()
	for _, id := range idle {
		s.end(id)
	}
	return open, unused
}

func (s *mcpServer) caller() actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.actor
}

// close ends all sessions and streams.
func (s *mcpServer) close() {
	s.http.CloseSessions(context.Background())
	s.ended(s.defaultSession)
}

// ended has the plan of a session closed.
func (s *mcpServer) ended(session string) {
	go func() { // once its calls have ended
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		s.servers.skills.endClient(ctx, s.caller(), session)
	}()
}

// end ends a session as its client would.
func (s *mcpServer) end(session string) {
	r := &http.Request{Method: http.MethodDelete, Header: http.Header{}}
	r.Header.Set(server.HeaderKeySessionID, session)
	s.http.ServeHTTP(edge.Keep(), r)
}

// makeRoom ends the least recently used session at the limit of sessions.
func (s *mcpServer) makeRoom() {
	s.mu.Lock()
	oldest := ""
	if len(s.sessions) >= maxMCPSessions {
		for id, x := range s.sessions {
			if oldest == "" || x.used.Before(s.sessions[oldest].used) {
				oldest = id
			}
		}
	}
	s.mu.Unlock()
	if oldest != "" {
		s.end(oldest)
	}
}

func (s *mcpServer) has(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[session] != nil
}

// use counts a request or a stream of a session, or of a client without one, until done.
func (s *mcpServer) use(session string) (done func()) {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := s.servers.g.cfg.Now()
		s.used = now
		switch x := s.sessions[session]; {
		case x != nil:
			x.open, x.used = x.open+n, now
		case session == "":
			s.listens += n
		}
	}
	count(1)
	return func() { count(-1) }
}

// Generate implements server.SessionIdManager.
func (s *mcpServer) Generate() string {
	id := newID("mcp")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[id] = &mcpSession{used: s.servers.g.cfg.Now()}
	return id
}

// Validate implements server.SessionIdManager.
func (s *mcpServer) Validate(session string) (terminated bool, err error) {
	return !s.has(session), nil
}

// Terminate implements server.SessionIdManager.
func (s *mcpServer) Terminate(session string) (notAllowed bool, err error) {
	s.mu.Lock()
	_, ok := s.sessions[session]
	delete(s.sessions, session)
	s.mu.Unlock()
	if ok {
		s.ended(session)
	}
	return false, nil
}
