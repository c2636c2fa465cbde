package storage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Retentions are for how long each tenant's documents are kept.
type Retentions interface {
	Tenants() []string
	// Outdated is the time before which documents of an index are removed; zero: none
	// are.
	Outdated(tenant, index string, now time.Time) time.Time
}

// Younger are the documents of an index without those from before a time.
func Younger(index string, docs []Document, before time.Time) []Document {
	if before.IsZero() {
		return docs
	}
	return slices.DeleteFunc(slices.Clone(docs), func(d Document) bool { return Older(index, d.Body, before) })
}

// RemoveAged removes memories that have expired, and documents that are older than their
// tenants' retentions; of the latter only those that were removed one by one are counted.
// It goes on after an error.
func RemoveAged(ctx context.Context, docs Documents, kept Retentions, now time.Time) (expired, old int, failed error) {
	expired, err1 := removeExpired(ctx, docs, kept.Tenants(), now)
	old, err2 := removeOutdated(ctx, docs, kept, now)
	return expired, old, errors.Join(err1, err2)
}

func removeExpired(ctx context.Context, docs Documents, tenants []string, now time.Time) (removed int, failed error) {
	over := Query{Ranges: map[string]Range{"ttl_at": {LT: now.UTC().Format(time.RFC3339Nano)}}}
	for _, tenant := range tenants {
		n, err := docs.Purge(ctx, tenant, IndexMemory, over)
		removed += n
		failed = errors.Join(failed, err)
	}
	return removed, failed
}

// dropper is a store that removes what is old of an index, of all tenants, without
// reading it.
type dropper interface {
	DropBefore(ctx context.Context, index string, before time.Time) ([]string, error)
}

func removeOutdated(ctx context.Context, docs Documents, kept Retentions, now time.Time) (removed int, failed error) {
	tenants := kept.Tenants()
	for _, index := range slices.Sorted(maps.Keys(Aged)) {
		failed = errors.Join(failed, dropOutdated(ctx, docs, kept, index, now))
		for _, tenant := range tenants {
			before := kept.Outdated(tenant, index, now)
			if before.IsZero() {
				continue
			}
			for _, q := range OlderThan(index, before) {
				n, err := docs.Purge(ctx, tenant, index, q)
				removed += n
				failed = errors.Join(failed, err)
			}
		}
	}
	return removed, failed
}

// dropOutdated removes what is too old for every tenant, if the store can.
func dropOutdated(ctx context.Context, docs Documents, kept Retentions, index string, now time.Time) error {
	store, ok := docs.(dropper)
	if _, appended := Appended[index]; !ok || !appended {
		return nil
	}
	before := now
	for _, tenant := range kept.Tenants() {
		t := kept.Outdated(tenant, index, now)
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
