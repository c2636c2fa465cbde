package gateway

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// queryRequest is the body of POST /query/.
type queryRequest struct {
	claim
	Mode        string `json:"mode"`  // LOOKUP, SEARCH, FUZZY or SQL
	Query       string `json:"query"` // a key, a text, or the name of a query
	Since       string `json:"since"`
	Until       string `json:"until"`
	ByDay       bool   `json:"by_day"`
	WholeTenant bool   `json:"whole_tenant"`
	Limit       int    `json:"limit"`
	After       string `json:"after"`
}

// query is POST /query/. The modes LOOKUP, SEARCH and FUZZY read memories. SQL takes the
// name of a query, and nothing else: tenant and user are always the caller's.
func (g *Gateway) query(c *gin.Context, who caller) error {
	var q queryRequest
	if err := readBody(c, &q); err != nil {
		return err
	}
	typ, args, err := q.order()
	if err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, q.claim)
	if err != nil {
		return err
	}
	if typ == "" {
		return respond(c, gin.H{"schemas": schemaRows("")}, nil)
	}
	found, err := request[json.RawMessage](c.Request.Context(), g, a, typ, args, "")
	var p *problem.Problem
	if errors.As(err, &p) {
		switch p.Pointer {
		case "/query_text", "/key":
			p.Pointer = "/query"
		case "/top_k":
			p.Pointer = "/limit"
		}
	}
	return respond(c, found, err)
}

// order is the order that answers the query; no type: the gateway knows the answer.
func (q queryRequest) order() (typ string, args any, err error) {
	in := catalog.Period{Since: q.Since, Until: q.Until}
	switch strings.ToUpper(q.Mode) {
	case "LOOKUP":
		return "read_memory", catalog.ReadMemory{Key: q.Query}, q.takes()
	case "SEARCH", "FUZZY":
		return "memory.query", catalog.MemoryQuery{Text: q.Query, TopK: q.Limit}, q.takes("limit")
	case "SQL":
	default:
		return "", nil, problem.New(intents.SchemaInvalid, "/mode", "there is no such mode: name LOOKUP, SEARCH, FUZZY or SQL")
	}
	switch strings.ToLower(q.Query) {
	case "usage":
		return "plan.usage", catalog.PlanUsage{Period: in, ByDay: q.ByDay, WholeTenant: q.WholeTenant}, q.takes("since", "until", "by_day", "whole_tenant")
	case "health":
		return "plan.health", catalog.PlanHealth{Period: in, WholeTenant: q.WholeTenant}, q.takes("since", "until", "whole_tenant")
	case "messages":
		return "message.list", catalog.MessageList{Period: in, Limit: q.Limit, After: q.After}, q.takes("since", "until", "limit", "after")
	case "schemas":
		return "", nil, q.takes()
	}
	return "", nil, problem.New(intents.SchemaInvalid, "/query", "SQL takes the name of a query and no statement: usage, messages, schemas or health")
}

// takes refuses parameters that the query does not take: nobody shall believe that they
// counted.
func (q queryRequest) takes(names ...string) error {
	for _, p := range []struct {
		name  string
		given bool
	}{
		{"since", q.Since != ""},
		{"until", q.Until != ""},
		{"by_day", q.ByDay},
		{"whole_tenant", q.WholeTenant},
		{"limit", q.Limit != 0},
		{"after", q.After != ""},
	} {
		if p.given && !slices.Contains(names, p.name) {
			return problem.New(intents.SchemaInvalid, "/"+p.name, "this query does not take it: leave it out")
		}
	}
	return nil
}
