package gateway

import (
	"github.com/gin-gonic/gin"

	"aob.dev/writ/agentic/agents"
)

// schemaRow is an agent as GET /schemas/ gives it.
type schemaRow struct {
	Name    string       `json:"name"`
	Kind    string       `json:"kind"`    // agent
	Content string       `json:"content"` // the system prompt, without a soul
	Schema  agents.Agent `json:"json_schema"`
}

// listSchemas is GET /schemas/: ?name=. It has the built-in agents: they are the only
// ones that work in a running writ.
func (g *Gateway) listSchemas(c *gin.Context, who caller) error {
	if _, err := g.identify(c.Request.Context(), who, claim{}); err != nil {
		return err
	}
	return respond(c, schemaRows(c.Query("name")), nil)
}

// schemaRows are those of all agents, or of the one of a name.
func schemaRows(name string) []schemaRow {
	rows := []schemaRow{}
	for _, d := range agents.Builtins() {
		if name != "" && d.Name != name {
			continue
		}
		schema := *d.Agent
		schema.Type = "object"
		rows = append(rows, schemaRow{d.Name, "agent", d.System(""), schema})
	}
	return rows
}
