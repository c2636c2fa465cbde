package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// moved are the indices whose documents go with a tenant. Others are made from a log's records,
// and stay with them.
var movedIndices = []string{
	storage.IndexMemory, storage.IndexSouls, storage.IndexSessions, storage.IndexMessages, storage.IndexMoments, storage.IndexWorkflows, storage.IndexChunks,
}

// documents copies those of the tenant. Each gets the position of the record by which the tenant
// came: whatever is ordered there later replaces it, and a position of the old log, which may be
// higher than all of the new one for years, would keep every such order out. What the new cell
// has of an earlier stay is removed.
func (m *moving) documents(ctx context.Context, at int64) (n int, err error) {
	if r, lags := m.old.documents.(storage.Refresher); lags {
		if err := r.Refresh(ctx, movedIndices...); err != nil {
			return 0, err
		}
	}
	for _, index := range movedIndices {
		m.Tell("copy documents of %s", index)
		err := eachDocument(ctx, m.old.documents, m.Tenant, index, func(doc storage.Document) error {
			doc.Position, n = at, n+1
			err := m.new.documents.Put(ctx, m.Tenant, index, doc)
			if errors.Is(err, storage.ErrStale) { // what looks after the store has written it again
				err = nil
			}
			return err
		})
		if err == nil {
			err = m.removeEarlier(ctx, index, at)
		}
		if err != nil {
			return n, fmt.Errorf("%s: %w", index, err)
		}
	}
	return n, nil
}

// removeEarlier removes what was written before the tenant came.
func (m *moving) removeEarlier(ctx context.Context, index string, at int64) error {
	if r, lags := m.new.documents.(storage.Refresher); lags {
		if err := r.Refresh(ctx, index); err != nil {
			return err
		}
	}
	var old []string
	err := eachDocument(ctx, m.new.documents, m.Tenant, index, func(doc storage.Document) error {
		if doc.Position < at {
			old = append(old, doc.ID)
		}
		return nil
	})
	for _, id := range old {
		err = errors.Join(err, m.new.documents.Delete(ctx, m.Tenant, index, id))
	}
	return err
}

// eachDocument walks over an index of a tenant.
func eachDocument(ctx context.Context, from storage.Documents, tenant, index string, do func(storage.Document) error) error {
	for q := (storage.Query{Limit: copyBatch / 2}); ; {
		page, err := from.Search(ctx, tenant, index, q)
		if err != nil {
			return err
		}
		for _, doc := range page.Documents {
			if err := do(doc); err != nil {
				return err
			}
		}
		if q.After = page.Cursor; q.After == "" {
			return nil
		}
	}
}

// everyAge is an age that every blob has, whatever the clocks of two machines say.
const everyAge = -100 * 365 * 24 * time.Hour

// blobs copies the content that the tenant keeps and the new cell does not have.
func (m *moving) blobs(ctx context.Context) (n int, err error) {
	refs, err := m.old.blobs.Aged(ctx, m.Tenant, everyAge)
	if err != nil {
		return 0, err
	}
	have, err := m.new.blobs.Aged(ctx, m.Tenant, everyAge)
	if err != nil {
		return 0, err
	}
	m.Tell("copy %d blobs", len(refs))
	for _, ref := range refs {
		if slices.Contains(have, ref) {
			continue
		}
		if err := m.blob(ctx, ref); err != nil {
			return n, fmt.Errorf("%s: %w", ref, err)
		}
		n++
	}
	return n, nil
}

// blob copies one. Its digest is checked where it is read, and made anew where it is written.
func (m *moving) blob(ctx context.Context, ref string) (err error) {
	r, _, err := m.old.blobs.Fetch(ctx, m.Tenant, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	got, _, err := m.new.blobs.Keep(ctx, m.Tenant, r)
	if err == nil && got != ref {
		err = fmt.Errorf("it became %s", got)
	}
	return err
}
