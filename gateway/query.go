package gateway

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// queryRequest is the body of POST /query/.
type queryRequest struct {
	claim
	Mode  string `json:"mode"`  // LOOKUP, SEARCH, FUZZY, TRAVERSE or SQL
	Query string `json:"query"` // a key, a text, the name of a query, or a statement
	queryParameters
}

// queryParameters are those of all named queries. The schema of the intent refuses those that a
// query does not accept.
type queryParameters struct {
	Since       string `json:"since,omitempty"`
	Until       string `json:"until,omitempty"`
	ByDay       bool   `json:"by_day,omitempty"`
	WholeTenant bool   `json:"whole_tenant,omitempty"`
	Limit       int    `json:"limit,omitempty"`
	After       string `json:"after,omitempty"`
}

// query is POST /query/: the dialect of memory.query, in which SQL also accepts the name of a
// query. Tenant and user are always the caller's.
func (g *Gateway) query(c *gin.Context, who caller) error {
	var q queryRequest
	if err := readBody(c, &q); err != nil {
		return err
	}
	typ, args, err := q.intent()
	if err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, q.claim)
	if err != nil {
		return err
	}
	if typ == "" {
		rows, err := g.schemas(c.Request.Context(), a, "")
		return respond(c, gin.H{"schemas": rows}, err)
	}
	if q.ofSchemas() { // a user who may not list the agents reads none in a statement
		if _, err := g.schemas(c.Request.Context(), a, ""); err != nil {
			return err
		}
	}
	found, err := request[json.RawMessage](c.Request.Context(), g, a, typ, args, "")
	var p *problem.Problem
	if errors.As(err, &p) {
		switch p.Pointer {
		case "/query_text":
			p.Pointer = "/query"
		case "/top_k":
			p.Pointer = "/limit"
		}
	}
	return respond(c, found, err)
}

var namesSchemas = regexp.MustCompile(`(?i)schemas`)

// ofSchemas reports whether a statement may read the view of the agents.
func (q queryRequest) ofSchemas() bool {
	return strings.EqualFold(q.Mode, catalog.SQL) && namesSchemas.MatchString(q.Query)
}

// intent returns the intent that answers the query; no type: it is about the agents.
func (q queryRequest) intent() (typ string, args any, err error) {
	mode, name := strings.ToUpper(q.Mode), strings.ToLower(q.Query)
	plain := q.queryParameters == (queryParameters{})
	switch {
	case mode == catalog.SQL && name == "usage":
		return "plan.usage", q.queryParameters, nil
	case mode == catalog.SQL && name == "messages":
		return "message.list", q.queryParameters, nil
	case mode == catalog.SQL && name == "schemas" && plain:
		return "", nil, nil
	case plain && (mode == catalog.Lookup || mode == catalog.SQL),
		(mode == catalog.Search || mode == catalog.Fuzzy || mode == catalog.Traverse) && q.queryParameters == (queryParameters{Limit: q.Limit}):
		return "memory.query", catalog.MemoryQuery{Mode: mode, Text: q.Query, TopK: q.Limit}, nil
	case mode == catalog.SQL:
		return "", nil, problem.New(intents.SchemaInvalid, "/query", "name usage (since, until, by_day, whole_tenant), messages (since, until, limit, after) or schemas, or write a SELECT, which takes no more")
	}
	return "", nil, problem.New(intents.SchemaInvalid, "/mode", "name LOOKUP or TRAVERSE with a key, SEARCH or FUZZY with a text (TRAVERSE, SEARCH, FUZZY: limit), or SQL")
}
