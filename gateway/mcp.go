package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/problem"
)

// routeMCP is the entrance of MCP clients: every approved skill that the caller may use is a tool
// there, and each call of one is an intent.
const routeMCP = "/mcp"

// Default rate of one user of a tenant at routeMCP.
const (
	DefaultMCPRate = 60_000
	mcpWindow      = time.Minute
)

// mcpMessage is the part of a JSON-RPC message that the gateway itself reads.
type mcpMessage struct {
	ID     json.RawMessage `json:"id"`
	Method wire.MCPMethod  `json:"method"`
	Params struct {
		Name string `json:"name"`
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
			Key     string `json:"aob.dev/idempotency_key"` // as the header Idempotency-Key
		} `json:"_meta"`
	} `json:"params"`
}

// maxRequestID bounds the id of a request, in bytes.
const maxRequestID = 256

// mcpRequest is a tool's information about the request that calls it.
type mcpRequest struct {
	actor
	who   caller
	base  string // of this server, as called by the client
	lists bool   // tools
	id    string // of the call: a repeated call has the same
	rpc   string // of JSON-RPC, canonical JSON; empty: the client's ids identify one request each
	done  func(answered bool)
	// untilStop derives a context that ends when the process stops, too: the call is still answered.
	untilStop func(context.Context) (context.Context, context.CancelFunc)
}

type mcpRequestKey struct{}

// mcpOffers are the methods that list tools and resources, as they are now.
var mcpOffers = []wire.MCPMethod{wire.MethodInitialize, wire.MethodToolsList, wire.MethodResourcesList, wire.MethodResourcesRead, wire.MethodResourcesTemplatesList, wire.MethodPromptsList, wire.MethodPromptsGet}

// mcp is POST, GET and DELETE of routeMCP. Protocol 2026-07-28 has no sessions. Earlier protocols
// begin with one, which is the caller's alone and ends with the process: then it is not found,
// and the client starts over.
func (g *Gateway) mcp(c *gin.Context, who caller) error {
	a, err := who.claims(claim{})
	if err != nil {
		return err
	}
	m, err := readMCP(c)
	if err != nil {
		return err
	}
	*who.metered = true
	rolesOf := g.mcps.rolesOf
	if m.Method != wire.MethodToolsCall { // its answer has a form that a model understands
		if err := g.mcps.meter(a); err != nil {
			return err
		}
		rolesOf = g.rolesOf
	}
	if a.roles, err = rolesOf(c.Request.Context(), a, who.key.MaxRoles); err != nil {
		return err
	}
	a.session = "" // sessions of chats; these clients have others
	s, err := g.mcps.serverOf(a)
	if err != nil {
		return err
	}
	modern := wire.IsModernProtocol(c.GetHeader(wire.HeaderProtocolVersion)) || wire.IsModernProtocol(m.Params.Meta.Version)
	switch session := c.GetHeader(server.HeaderKeySessionID); {
	case modern:
	case m.Method == wire.MethodInitialize:
		s.makeRoom()
	case session == "":
		return problem.New(intents.SchemaInvalid, "", "the header Mcp-Session-Id is missing: begin with initialize")
	case !s.has(session):
		return problem.New(intents.NotFound, "", "no such session: begin anew with initialize")
	default:
		done := s.use(session)
		defer done()
	}
	if slices.Contains(mcpOffers, m.Method) || m.Method == wire.MethodToolsCall && (m.Params.Name == toolSearch || s.rpc.GetTool(m.Params.Name) == nil) {
		if err := s.renew(c.Request.Context()); err != nil {
			return err
		}
	}
	if m.Method == wire.MethodSubscriptionsListen {
		done := s.use("")
		defer done()
	}
	r := &mcpRequest{actor: a, who: who, base: g.baseURL(c.Request), lists: m.Method == wire.MethodToolsList, done: func(bool) {}}
	if !modern {
		r.rpc = string(m.ID)
	}
	if key := cmp.Or(c.GetHeader("Idempotency-Key"), m.Params.Meta.Key); key != "" {
		raw, _ := json.Marshal("key " + intents.Digest([]byte(key))) // a text
		r.id = string(raw)
	}
	ctx, request := c.Request.Context(), c.Request.Context()
	r.untilStop = func(ctx context.Context) (context.Context, context.CancelFunc) { return clock.WithStop(ctx, request) }
	if m.Method == wire.MethodToolsCall { // the server answers nothing once its context has ended
		var end context.CancelFunc
		ctx, end = clock.OverStop(ctx)
		defer end()
	}
	ctx = context.WithValue(ctx, mcpRequestKey{}, r)
	if slices.Contains(mcpLists, m.Method) {
		s.list(ctx)
	}
	s.http.ServeHTTP(c.Writer, c.Request.WithContext(ctx))
	r.done(c.Request.Context().Err() == nil)
	return nil
}

// readMCP reads a message: strict JSON, passed to the server in its canonical form.
func readMCP(c *gin.Context) (m mcpMessage, err error) {
	if c.Request.Method != http.MethodPost {
		return m, nil
	}
	raw, err := readJSON(c)
	if err != nil {
		return m, err
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(raw))
	_ = json.Unmarshal(raw, &m) // the server refuses a message that does not fit
	if len(m.ID) > 0 && strings.ContainsAny(string(m.ID[:1]), "{[tf") {
		return m, problem.New(intents.SchemaInvalid, "/id", "must be a text or a number")
	}
	if len(m.ID) > maxRequestID {
		return m, problem.New(intents.SchemaInvalid, "/id", "has more than 256 bytes")
	}
	return m, nil
}

// mcpError converts a problem into an error of JSON-RPC.
func mcpError(p problem.Problem) any {
	code := wire.INTERNAL_ERROR
	if p.Status < http.StatusInternalServerError {
		code = wire.INVALID_REQUEST
	}
	return gin.H{"jsonrpc": wire.JSONRPC_VERSION, "id": nil, "error": gin.H{"code": code, "message": p.Error(), "data": p}}
}

// mcpRoute is a route of MCP clients. A caller without a credential, or with a token that is not
// accepted, is referred to the document that says where to get one (RFC 9728). A wrong API key is
// not: its owner has to correct it, and no login would.
func (g *Gateway) mcpRoute(h func(*gin.Context) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if err := g.expected(c.Request); err != nil {
			return err
		}
		err := h(c)
		key := c.GetHeader("X-Api-Key") != "" || bearerKey(c) != "" && !isJWT(bearerKey(c))
		if err != nil && !key && problem.FromError(err).Code == intents.Unauthorized {
			wrong := ""
			if c.GetHeader("Authorization") != "" {
				wrong = `error="invalid_token", `
			}
			c.Header("WWW-Authenticate", `Bearer `+wrong+`resource_metadata="`+g.baseURL(c.Request)+server.WellKnownProtectedResourcePath+routeMCP+`"`)
		}
		return err
	}
}

// protectedResource is GET /.well-known/oauth-protected-resource/mcp. Without providers it names no
// authorization server: the bearer is an API key, which an operator issues.
func (g *Gateway) protectedResource(c *gin.Context) error {
	about := struct {
		server.ProtectedResourceMetadataConfig
		SignIn []openid.At `json:"writ_sign_in,omitempty"` // for writ login
	}{SignIn: g.cfg.People.SignInAt()}
	about.Resource, about.ResourceName, about.BearerMethodsSupported = g.baseURL(c.Request)+routeMCP, "writ", []string{"header"}
	about.AuthorizationServers = g.cfg.People.Issuers()
	c.JSON(http.StatusOK, about)
	return nil
}
