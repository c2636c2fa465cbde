package recorder

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// agentDoc is an agent of a tenant's registry in agent_schemas.
type agentDoc struct {
	catalog.SchemaRow
	TenantID string `json:"tenant_id"`
	Version  int64  `json:"version"` // revision of the registry
	Created  string `json:"created_at"`
}

// writeAgents gathers the agents of the revision that an order has put in force, and says
// of those that only the one before had that they are gone.
func (r *Recorder) writeAgents(s state.Order, rec storage.Record) error {
	if s.Type != state.TypeRegistryPush {
		return nil
	}
	var a catalog.RegistryPush
	if err := json.Unmarshal(s.Args, &a); err != nil {
		return err
	}
	tenant := state.Named(s.Tenant, a.Tenant)
	rows, err := r.fold.Registered(tenant)
	if err != nil {
		return err
	}
	for _, row := range rows {
		body, err := json.Marshal(agentDoc{row, tenant, a.Revision, rec.At.UTC().Format(time.RFC3339Nano)})
		if err != nil {
			return err
		}
		r.batch.agents[place{tenant, row.Name}] = storage.Document{ID: row.Name, Position: rec.Position, Body: body}
	}
	return nil
}
