package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/quota"
)

// everyAge is an age that every blob has, whatever the clocks of two machines say.
const everyAge = -100 * 365 * 24 * time.Hour

// Moved says what was brought to another place.
type Moved struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Blobs int    `json:"blobs"`
	Bytes int64  `json:"bytes"`
}

// MoveBlobs copies the kept blobs of all tenants to another place, which must take
// each under the same digest, and has the directory remember it from then on. No
// node may use the directory. What is in the old place stays; temporary files of
// steps are not brought along.
//
// Crash: some blobs are in the new place, and the directory remembers the old one.
func MoveBlobs(ctx context.Context, dir string, to datadir.BlobsAt) (m Moved, err error) {
	if err := to.Validate(); err != nil {
		return m, err
	}
	h, err := hold(ctx, dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	from, err := datadir.PlaceOf(dir)
	if err != nil {
		return m, err
	}
	m.From, m.To = from.URL, to.URL
	if m.From == m.To {
		return m, fmt.Errorf("the blobs of %s are in %s already", dir, to.URL)
	}
	source, err := from.Open(ctx, dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := to.Open(ctx, dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	for _, tenant := range withSystem(h.fold.Tenants()) {
		refs, err := source.Aged(ctx, tenant, everyAge)
		if err != nil {
			return m, err
		}
		for _, ref := range refs {
			if err := m.bring(ctx, tenant, ref, source, target); err != nil {
				return m, fmt.Errorf("%s of %s: %w", ref, tenant, err)
			}
		}
	}
	return m, to.Remember(dir)
}

// withSystem are tenants, and the one of policies and catalogs.
func withSystem(tenants []string) []string {
	if slices.Contains(tenants, ledger.SystemTenant) {
		return tenants
	}
	return append(slices.Clone(tenants), ledger.SystemTenant)
}

// bring one blob. Its digest is checked while it is read, and made anew where it
// is written.
func (m *Moved) bring(ctx context.Context, tenant, ref string, source, target quota.Store) (err error) {
	r, _, err := source.Fetch(ctx, tenant, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	got, size, err := target.Keep(ctx, tenant, r)
	if err != nil {
		return err
	}
	if got != ref {
		return fmt.Errorf("it became %s", got)
	}
	m.Blobs, m.Bytes = m.Blobs+1, m.Bytes+size
	return nil
}
