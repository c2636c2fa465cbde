package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// SystemTenant owns control records.
const SystemTenant = storage.SystemTenant

// maxTenants is how many intents' tenants are cached; then all are dropped
// and looked up again.
const maxTenants = 1 << 16

// Tenants finds the tenant of a record: of an intent its actor's tenant,
// and of records about an intent the same. One goroutine at a time.
type Tenants struct {
	records storage.Records
	cache   map[int64]string
}

// NewTenants looks up uncached tenants in records.
func NewTenants(records storage.Records) *Tenants {
	return &Tenants{records: records, cache: make(map[int64]string)}
}

// Tenant a record.
func (t *Tenants) Tenant(ctx context.Context, r storage.Record) (string, error) {
	switch r.Kind {
	case storage.KindControl:
		return SystemTenant, nil
	case storage.KindIntent:
		return t.intent(r)
	case storage.KindOutcome, storage.KindRelease, storage.KindTakeover:
		f, ok := storage.Follow(r)
		if !ok {
			return "", fmt.Errorf("record %d does not say which intent it is about", r.Position)
		}
		if tenant, ok := t.cache[f.Target]; ok {
			return tenant, nil
		}
		intent, err := t.records.Get(ctx, f.Target)
		if err != nil {
			return "", fmt.Errorf("record %d is about %d: %w", r.Position, f.Target, err)
		}
		return t.intent(intent)
	default:
		return "", fmt.Errorf("record %d: unknown kind %q", r.Position, r.Kind)
	}
}

func (t *Tenants) intent(r storage.Record) (string, error) {
	tenant, err := tenantOf(r)
	if err != nil {
		return "", fmt.Errorf("record %d: %w", r.Position, err)
	}
	t.Note(r.Position, tenant)
	return tenant, nil
}

// Note caches the tenant of an intent that the caller has read; see Tenant.
func (t *Tenants) Note(position int64, tenant string) {
	if len(t.cache) >= maxTenants {
		clear(t.cache)
	}
	t.cache[position] = tenant
}

// tenantOf an intent: its summary names it, and remains when the envelope is erased. One
// without a summary must be read itself.
func tenantOf(r storage.Record) (string, error) {
	if raw, there := r.Parts[storage.PartSummary]; there {
		var s struct {
			Tenant string `json:"tenant"`
		}
		if err := json.Unmarshal(raw, &s); err != nil || s.Tenant == "" {
			return "", errors.New("the part summary names no tenant")
		}
		return s.Tenant, nil
	}
	signed, err := intents.ReadSigned(r.Parts[storage.PartEnvelope])
	if err != nil {
		return "", err
	}
	body, err := signed.Body()
	return body.Actor.Tenant, err
}
