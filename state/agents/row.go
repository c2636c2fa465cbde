package agents

import (
	"encoding/json"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/workflows"
)

// Row is the agent as it is stored and listed: its prompt, and its definition as a
// JSON Schema.
func (a *Agent) Row() (catalog.SchemaRow, error) {
	schema := *a
	schema.Type = "object"
	raw, err := json.Marshal(schema)
	return catalog.SchemaRow{Name: a.Name, Kind: catalog.KindAgent, Content: a.System(""), Schema: raw, ID: a.Name}, err
}

// FlowRow is a workflow as it is stored and listed: its file, and its graph.
func FlowRow(d *workflows.Definition) (catalog.SchemaRow, error) {
	raw, err := json.Marshal(d.Graph)
	return catalog.SchemaRow{Name: d.WorkflowID, Kind: catalog.KindWorkflow, Content: string(d.Text), Schema: raw, ID: FlowID(d.WorkflowID)}, err
}

// FlowID of a stored workflow: no agent has such a name.
func FlowID(workflow string) string { return "workflow:" + workflow }
