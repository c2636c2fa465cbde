package recorder

import (
	"context"
	"time"

	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// sparing is a store for the recorder. It does not write documents again that a retention may have
// removed, when the recorder replays old records or is late.
type sparing struct {
	storage.Documents
	retention *state.State
	now       func() time.Time
}

// SparingRemoved returns a store that omits what a retention of the state may have removed.
func SparingRemoved(docs storage.Documents, s *state.State, now func() time.Time) storage.Documents {
	return sparing{docs, s, now}
}

// Project implements storage.Documents.
func (s sparing) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	before := s.retention.RemovedBefore(tenant, index, s.now())
	p.Put, p.Created = storage.Younger(index, p.Put, before), storage.Younger(index, p.Created, before)
	return s.Documents.Project(ctx, tenant, index, p)
}

// Refresh implements storage.Refresher.
func (s sparing) Refresh(ctx context.Context, indices ...string) error {
	if store, lags := s.Documents.(storage.Refresher); lags {
		return store.Refresh(ctx, indices...)
	}
	return nil
}

// Scrub implements storage.Scrubber.
func (s sparing) Scrub(ctx context.Context) error {
	if store, can := s.Documents.(storage.Scrubber); can {
		return store.Scrub(ctx)
	}
	return nil
}

// EraseUserKey implements storage.UserKeys.
func (s sparing) EraseUserKey(ctx context.Context, tenant, user string) error {
	if store, can := s.Documents.(storage.UserKeys); can {
		return store.EraseUserKey(ctx, tenant, user)
	}
	return nil
}
