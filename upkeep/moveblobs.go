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

// MoveReport counts what was copied to another place.
type MoveReport struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Blobs int    `json:"blobs"`
	Bytes int64  `json:"bytes"`
}

// MoveBlobs copies the retained blobs of all tenants to another place, which must store each under
// the same digest, and has the directory remember it from then on. No node may use the directory.
// The blobs in the old place stay; temporary files of steps are not copied.
//
// Crash: some blobs are in the new place, and the directory remembers the old one.
func MoveBlobs(ctx context.Context, dir string, to datadir.BlobsAt) (m MoveReport, err error) {
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
	for _, tenant := range withSystem(h.state.Tenants()) {
		refs, err := source.ListOld(ctx, tenant, everyAge)
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

// withSystem adds the tenant of policies and catalogs to tenants.
func withSystem(tenants []string) []string {
	if slices.Contains(tenants, ledger.SystemTenant) {
		return tenants
	}
	return append(slices.Clone(tenants), ledger.SystemTenant)
}

// bring copies one blob. Its digest is checked while it is read, and computed again where it is
// written.
func (m *MoveReport) bring(ctx context.Context, tenant, ref string, source, target quota.Store) (err error) {
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
