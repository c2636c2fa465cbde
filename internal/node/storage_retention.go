package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// remembering is a store for the recorder: what a retention may have removed is
// not made again, be it that the recorder goes over old records or is late.
type remembering struct {
	storage.Documents
	directory *state.State
	now       func() time.Time
}

// Project implements storage.Documents.
func (r remembering) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	before := r.directory.Removed(tenant, index, r.now())
	p.Put, p.Created = younger(index, p.Put, before), younger(index, p.Created, before)
	return r.Documents.Project(ctx, tenant, index, p)
}

// younger are the documents of an index but those from before a time.
func younger(index string, docs []storage.Document, before time.Time) []storage.Document {
	if before.IsZero() {
		return docs
	}
	return slices.DeleteFunc(slices.Clone(docs), func(d storage.Document) bool { return storage.Older(index, d.Body, before) })
}

// dropper is a store that removes what is old of an index, of all tenants, without
// reading it.
type dropper interface {
	DropBefore(ctx context.Context, index string, before time.Time) ([]string, error)
}

// removeOutdated removes the documents that the tenants' retentions do not keep by
// now, and returns how many were removed one by one. It goes on after an error.
func removeOutdated(ctx context.Context, docs storage.Documents, d *state.State, now time.Time) (removed int, failed error) {
	tenants := d.Tenants()
	for _, index := range slices.Sorted(maps.Keys(storage.Aged)) {
		failed = errors.Join(failed, dropOutdated(ctx, docs, d, index, now))
		for _, tenant := range tenants {
			before := d.Outdated(tenant, index, now)
			if before.IsZero() {
				continue
			}
			for _, q := range storage.OlderThan(index, before) {
				n, err := docs.Purge(ctx, tenant, index, q)
				removed += n
				failed = errors.Join(failed, err)
			}
		}
	}
	return removed, failed
}

// dropOutdated removes what no tenant keeps, where the store has a way to.
func dropOutdated(ctx context.Context, docs storage.Documents, d *state.State, index string, now time.Time) error {
	store, ok := docs.(dropper)
	if _, appended := storage.Appended[index]; !ok || !appended {
		return nil
	}
	before := now
	for _, tenant := range d.Tenants() {
		t := d.Outdated(tenant, index, now)
		if t.IsZero() {
			return nil
		}
		if t.Before(before) {
			before = t
		}
	}
	_, err := store.DropBefore(ctx, index, before)
	return err
}
