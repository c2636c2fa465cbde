package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// SystemTenant owns control records.
const SystemTenant = storage.SystemTenant

// maxTenants is how many orders' tenants are remembered; then all are forgotten
// and looked up again.
const maxTenants = 1 << 16

// Tenants says to which tenant a record belongs: an order to its actor's tenant,
// and the records about an order to the same. One goroutine at a time.
type Tenants struct {
	records storage.Records
	seen    map[int64]string
}

// NewTenants looks up in records what it has not seen.
func NewTenants(records storage.Records) *Tenants {
	return &Tenants{records: records, seen: make(map[int64]string)}
}

// Of a record.
func (t *Tenants) Of(ctx context.Context, r storage.Record) (string, error) {
	switch r.Kind {
	case storage.KindControl:
		return SystemTenant, nil
	case storage.KindOrder:
		return t.order(r)
	case storage.KindOutcome, storage.KindRelease, storage.KindTakeover:
		of, err := About(r)
		if err != nil {
			return "", err
		}
		if tenant, ok := t.seen[of]; ok {
			return tenant, nil
		}
		order, err := t.records.Get(ctx, of)
		if err != nil {
			return "", fmt.Errorf("record %d is about %d: %w", r.Position, of, err)
		}
		return t.order(order)
	default:
		return "", fmt.Errorf("record %d: unknown kind %q", r.Position, r.Kind)
	}
}

func (t *Tenants) order(r storage.Record) (string, error) {
	tenant, err := tenantOf(r)
	if err != nil {
		return "", fmt.Errorf("record %d: %w", r.Position, err)
	}
	t.Note(r.Position, tenant)
	return tenant, nil
}

// Note is Of for an order that the caller has read.
func (t *Tenants) Note(position int64, tenant string) {
	if len(t.seen) >= maxTenants {
		clear(t.seen)
	}
	t.seen[position] = tenant
}

// tenantOf an order: its summary names it, and stays where the order is erased. One
// without a summary has to be read itself.
func tenantOf(r storage.Record) (string, error) {
	if _, there := r.Parts[storage.PartSummary]; there {
		s, err := storage.ReadSummary(r.Parts)
		return s.Tenant, err
	}
	sealed, err := intents.ReadSealed(r.Parts[storage.PartOrder])
	if err != nil {
		return "", err
	}
	body, err := sealed.Body()
	return body.Actor.Tenant, err
}

// About is the position of the order that an outcome, release or takeover is
// about. An outcome committed with its order stands right behind it and says -1.
func About(r storage.Record) (int64, error) {
	part := map[storage.Kind]string{storage.KindOutcome: storage.PartOutcome, storage.KindRelease: storage.PartRelease, storage.KindTakeover: storage.PartTakeover}[r.Kind]
	var p struct {
		Of *int64 `json:"of"`
	}
	if err := json.Unmarshal(r.Parts[part], &p); err != nil || p.Of == nil {
		return 0, fmt.Errorf("record %d: part %q does not say which order it is about: %w", r.Position, part, err)
	}
	if *p.Of < 0 {
		return r.Position - 1, nil
	}
	return *p.Of, nil
}
