package upkeep

import (
	"context"
	"errors"
	"slices"
	"time"

	"aob.dev/writ/executors/files"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// Collected says what `writ storage gc` removed.
type Collected struct {
	Expired int `json:"expired"` // memories whose time was over
	Old     int `json:"old"`     // documents that a retention keeps no longer
	Scopes  int `json:"scopes"`  // temporary files of steps that never ended, and what a crash left
	Blobs   int `json:"blobs"`   // content that no record names
}

// Collect removes what nobody can reach any more, while no node uses the
// directory: memories that have expired, documents that are older than their
// tenant's retention, temporary files that are older than an hour, and blobs older
// than blobAge that no record names. Journal and ledger are never touched.
func Collect(ctx context.Context, dir string, at datadir.DocumentsAt, now time.Time) (c Collected, err error) {
	h, err := hold(ctx, dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	docs, err := openDocuments(ctx, dir, at)
	if err != nil {
		return c, err
	}
	c.Expired, c.Old, err = storage.RemoveAged(ctx, docs, h.fold, now)
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
	c.Blobs, err = storage.Collect(ctx, blobs, h.records, ownTenants(h.fold), blobAge)
	return c, err
}

// blobAge is how long a blob stays that no record names yet. It is longer than an
// order may live, with the time of a hold.
const blobAge = 2 * intents.MaxHold

// ownTenants are all tenants but those with blobs that no record here names: the system's are
// policies and catalogs, and those of a tenant that came stand in the records of the other log.
func ownTenants(of *state.State) []string {
	return slices.DeleteFunc(of.Tenants(), func(t string) bool {
		rows, _ := of.Rows(t)
		return t == ledger.SystemTenant || rows.Place.Came != nil
	})
}
