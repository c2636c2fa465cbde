package agents

import (
	"encoding/json"

	"aob.dev/writ/intents/catalog"
)

// Row is the agent as it is stored and listed: its prompt, and its definition as a
// JSON Schema.
func (a *Agent) Row() (catalog.SchemaRow, error) {
	schema := *a
	schema.Type = "object"
	raw, err := json.Marshal(schema)
	return catalog.SchemaRow{Name: a.Name, Kind: catalog.KindAgent, Content: a.System(""), Schema: raw}, err
}
