package gateway

import (
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
