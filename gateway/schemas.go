package gateway

import (
	"context"
	"net/url"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// listSchemas is GET /schemas/: ?name=, ?kind=.
func (g *Gateway) listSchemas(c *gin.Context, a actor) error {
	if c.Query("kind") == catalog.KindWorkflow {
		got, err := read[catalog.SchemaListResult](c.Request.Context(), g, a, readapi.Agents, chosen(c, "name", "kind"))
		return respond(c, append([]catalog.SchemaRow{}, got.Schemas...), err)
	}
	rows, err := g.schemas(c.Request.Context(), a, c.Query("name"))
	return respond(c, rows, err)
}

// schemas returns all agents of the tenant, the built-in ones first, or the one with a name.
func (g *Gateway) schemas(ctx context.Context, a actor, name string) ([]catalog.SchemaRow, error) {
	rows := []catalog.SchemaRow{}
	for _, d := range agents.Builtins() {
		if name != "" && d.Name != name {
			continue
		}
		row, err := d.Row()
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	q := url.Values{}
	if name != "" {
		q.Set("name", name)
	}
	got, err := read[catalog.SchemaListResult](ctx, g, a, readapi.Agents, q)
	return append(rows, got.Schemas...), err
}
