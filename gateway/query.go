package gateway

import (
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/gateway/readapi"
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

// queryParameters are those of all named queries. A query refuses those that it does not accept.
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
	path, err := q.answeredBy()
	if err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, q.claim)
	if err != nil {
		return err
	}
	switch path {
	case memoryQuery:
	case readapi.Agents:
		rows, err := g.schemas(c.Request.Context(), a, "")
		return respond(c, gin.H{"schemas": rows}, err)
	default:
		found, err := read[json.RawMessage](c.Request.Context(), g, a, path, q.values())
		return respond(c, found, err)
	}
	if q.ofSchemas() { // a user who may not list the agents reads none in a statement
		if _, err := g.schemas(c.Request.Context(), a, ""); err != nil {
			return err
		}
	}
	found, err := request[json.RawMessage](c.Request.Context(), g, a, memoryQuery, catalog.MemoryQuery{Mode: strings.ToUpper(q.Mode), Text: q.Query, TopK: q.Limit}, "")
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

// memoryQuery is the intent that answers what no read does.
const memoryQuery = "memory.query"

// answeredBy returns the read that answers the query, or memoryQuery.
func (q queryRequest) answeredBy() (path string, err error) {
	mode, name := strings.ToUpper(q.Mode), strings.ToLower(q.Query)
	plain := q.queryParameters == (queryParameters{})
	switch {
	case mode == catalog.SQL && name == "usage":
		return readapi.Usage, nil
	case mode == catalog.SQL && name == "messages":
		return readapi.Messages, nil
	case mode == catalog.SQL && name == "schemas" && plain:
		return readapi.Agents, nil
	case plain && (mode == catalog.Lookup || mode == catalog.SQL),
		(mode == catalog.Search || mode == catalog.Fuzzy || mode == catalog.Traverse) && q.queryParameters == (queryParameters{Limit: q.Limit}):
		return memoryQuery, nil
	case mode == catalog.SQL:
		return "", problem.New(intents.SchemaInvalid, "/query", "name usage (since, until, by_day, whole_tenant), messages (since, until, limit, after) or schemas, or write a SELECT, which takes no more")
	}
	return "", problem.New(intents.SchemaInvalid, "/mode", "name LOOKUP or TRAVERSE with a key, SEARCH or FUZZY with a text (TRAVERSE, SEARCH, FUZZY: limit), or SQL")
}

// values are the parameters of a read. The router refuses those that it does not accept.
func (q queryParameters) values() url.Values {
	out := url.Values{}
	for name, v := range map[string]string{"since": q.Since, "until": q.Until, "after": q.After} {
		if v != "" {
			out.Set(name, v)
		}
	}
	for name, yes := range map[string]bool{"by_day": q.ByDay, "whole_tenant": q.WholeTenant} {
		if yes {
			out.Set(name, "true")
		}
	}
	if q.Limit != 0 {
		out.Set("limit", strconv.Itoa(q.Limit))
	}
	return out
}
