package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// agentDoc is an agent or a workflow of a tenant's registry in agent_schemas.
type agentDoc struct {
	catalog.SchemaRow
	TenantID string `json:"tenant_id"`
	Version  int64  `json:"version"` // revision of the registry
	Created  string `json:"created_at"`
}

// writeAgents adds the agents and workflows of the revision that an intent has put in force, and
// marks those that only the revision before had as gone.
func (r *Recorder) writeAgents(ctx context.Context, s state.Intent, rec storage.Record) error {
	if s.Type != state.TypeRegistryPush {
		return nil
	}
	a, err := state.ArgsOf[catalog.RegistryPush](s)
	if err != nil {
		return err
	}
	tenant := state.TargetTenant(s.Tenant, a.Tenant)
	read := func(digest string) (content []byte, err error) {
		lost := false
		err = r.patiently(ctx, storage.IndexSchemas, func() (err error) {
			content, err = r.Content(ctx, digest)
			if lost = errors.Is(err, storage.ErrNotFound); lost {
				return nil
			}
			return err
		})
		if lost {
			return nil, storage.ErrNotFound
		}
		return content, err
	}
	rows, err := r.state.SchemaRows(tenant, read)
	if errors.Is(err, storage.ErrNotFound) {
		r.log.ErrorContext(ctx, "the content of a registry is lost: its agents get no rows", slog.String("digest", a.Digest))
		return nil
	}
	if err != nil {
		return err
	}
	for _, row := range rows {
		body, err := json.Marshal(agentDoc{row, tenant, a.Revision, rec.At.UTC().Format(time.RFC3339Nano)})
		if err != nil {
			return err
		}
		r.batch.agents[place{tenant, row.ID}] = storage.Document{ID: row.ID, Position: rec.Position, Body: body}
	}
	return nil
}
