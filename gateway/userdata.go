package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// memoryRequest is a query of memory: parameters of GET, body of POST.
type memoryRequest struct {
	claim
	QueryText string `json:"query_text"`
	TopK      int    `json:"top_k"`
	Scope     string `json:"scope"`
}

// queryMemory is GET and POST /agent/memory/query. The result is bounded by the actor's tenant,
// user and session.
func (g *Gateway) queryMemory(c *gin.Context, who caller) error {
	q, err := memoryQuestion(c)
	if err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, q.claim)
	if err != nil {
		return err
	}
	found, err := request[catalog.MemoryQueryResult](c.Request.Context(), g, a, "memory.query",
		catalog.MemoryQuery{Text: q.QueryText, TopK: q.TopK, Scope: q.Scope}, "")
	return respond(c, found, err)
}

// memoryQuestion reads the query from the body if there is one, also of a GET, otherwise from the
// parameters.
func memoryQuestion(c *gin.Context) (memoryRequest, error) {
	var q memoryRequest
	if c.Request.Method == http.MethodPost || c.Request.ContentLength > 0 {
		return q, readBody(c, &q)
	}
	q = memoryRequest{
		claim:     claim{c.Query("tenant_id"), c.Query("user_id"), c.Query("session_id")},
		QueryText: c.Query("query_text"), Scope: c.Query("scope"),
	}
	if raw := c.Query("top_k"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil {
			return q, problem.New(intents.SchemaInvalid, "/top_k", "must be a number")
		}
		q.TopK = n
	}
	return q, nil
}

// soulRequest is the body of PUT /agent/souls/{tenant_id}. Its user_id names the owner of the
// soul, not the caller; without one it is the tenant's.
type soulRequest struct {
	UserID   string          `json:"user_id,omitempty"`
	Persona  catalog.Persona `json:"persona"`
	Policies json.RawMessage `json:"policies,omitempty"`
}

// putSoul is PUT /agent/souls/{tenant_id}.
func (g *Gateway) putSoul(c *gin.Context, who caller) error {
	var body soulRequest
	if err := readBody(c, &body); err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, claim{Tenant: c.Param("tenant_id")})
	if err != nil {
		return err
	}
	ctx, cancel := lasting(c.Request.Context(), openTimeout)
	defer cancel()
	soul, err := request[catalog.Soul](ctx, g, a, "soul.put", catalog.SoulPut(body), "")
	return respond(c, soul, err)
}

// resumedSession is the answer of POST /agent/sessions/{session_id}/resume.
type resumedSession struct {
	SessionID string `json:"session_id"`
	From      string `json:"resumed_from"`
	Turns     int    `json:"turns"` // copied from the ended session
}

// resumeSession continues a user's session that has ended, or is full, under a new id.
func (g *Gateway) resumeSession(c *gin.Context, a actor) error {
	ctx, cancel := lasting(c.Request.Context(), openTimeout)
	defer cancel()
	s, err := request[catalog.Session](ctx, g, a, "session.resume", catalog.SessionResume{SessionID: newID("sess"), From: c.Param("session_id")}, "")
	return respond(c, resumedSession{s.SessionID, s.ResumedFrom, len(s.TurnHistory)}, err)
}
