package storage

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Collector removes blobs that nothing names. What was kept, or kept again,
// within age is young and stays.
type Collector interface {
	// Aged lists the tenant's blobs that are not young.
	Aged(ctx context.Context, tenant string, age time.Duration) (refs []string, err error)
	// Drop removes a blob unless it is young by now, durably. Missing is false.
	Drop(ctx context.Context, tenant, ref string, age time.Duration) (bool, error)
}

// Collect removes the blobs of tenants that are older than age and that no
// record names. A record names a blob if its digest stands anywhere in a part: in
// policies, catalogs, scripts, arguments, inputs or results. Erased parts do not count,
// and blobs that only another blob names are not found: the tenant of policies and
// catalogs must not be among the tenants.
//
// It goes on after an error of one blob. A record that names a blob for the
// first time while Collect runs finds it gone unless the blob was kept again
// meanwhile; age has to be longer than an order may live. A crash leaves every
// blob there or gone.
func Collect(ctx context.Context, c Collector, records Records, tenants []string, age time.Duration) (removed int, failed error) {
	type blob struct{ tenant, ref string }
	aged := make(map[string][]blob) // by digest
	for _, tenant := range tenants {
		refs, err := c.Aged(ctx, tenant, age)
		if err != nil {
			return 0, err
		}
		for _, ref := range refs {
			digest := strings.TrimPrefix(ref, "cas://")
			aged[digest] = append(aged[digest], blob{tenant, ref})
		}
	}
	if len(aged) == 0 {
		return 0, nil
	}
	// Until none is new: the scan yields what was durable when it began.
	for next := int64(0); next < records.Next(); {
		for r, err := range records.Scan(ctx, next) {
			if err != nil {
				return 0, err
			}
			for _, digest := range r.Named() {
				delete(aged, digest)
			}
			next = r.Position + 1
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
	for _, blobs := range aged {
		for _, b := range blobs {
			gone, err := c.Drop(ctx, b.tenant, b.ref, age)
			if gone {
				removed++
			}
			failed = errors.Join(failed, err)
		}
	}
	return removed, failed
}
