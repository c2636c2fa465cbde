package upkeep

import (
	"context"
	"errors"
	"slices"
	"time"

	"aob.dev/writ/executors/files"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// GCReport lists what `writ admin storage gc` removed.
type GCReport struct {
	Expired int `json:"expired"` // memories that have expired
	Old     int `json:"old"`     // documents older than their retention
	Scopes  int `json:"scopes"`  // temporary files of steps that never ended, and what a crash left
	Blobs   int `json:"blobs"`   // content that no record names
}

// Collect removes unreachable data, while no node uses the directory: memories that have expired,
// documents that are older than their tenant's retention, temporary files that are older than an
// hour, and blobs older than blobAge that no record names. It never changes journal and ledger.
func Collect(ctx context.Context, dir string, at datadir.DocumentsAt, now time.Time) (c GCReport, err error) {
	h, err := hold(ctx, dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	docs, err := openDocuments(ctx, dir, at)
	if err != nil {
		return c, err
	}
	c.Expired, c.Old, err = storage.RemoveAged(ctx, docs, h.state, now)
	if err := errors.Join(err, docs.Close()); err != nil {
		return c, err
	}
	blobs, err := datadir.OpenBlobs(ctx, dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	if c.Scopes, err = blobs.Sweep(ctx, files.SweepAge); err != nil {
		return c, err
	}
	c.Blobs, err = storage.Collect(ctx, blobs, h.records, slices.DeleteFunc(h.state.Tenants(), isSystem), blobAge)
	return c, err
}

// blobAge is how long a blob stays that no record names yet. It is longer than an intent may live,
// with the time of a hold.
const blobAge = 2 * intents.MaxHold

// isSystem reports whether a tenant's blobs are policies and catalogs, which no record names as its
// own.
func isSystem(tenant string) bool { return tenant == ledger.SystemTenant }
