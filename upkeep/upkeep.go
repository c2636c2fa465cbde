// Package upkeep maintains data directories: backup and restore, checks, reindexing, copying and
// moving, garbage collection, and the doctor's examination. Each command works on the directory
// itself; its comment says if a process may serve the directory meanwhile.
package upkeep

import (
	"context"
	"errors"
	"os"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
	"aob.dev/writ/storage/sqlite"
)

// lockedDir is a data directory that one command has locked: no node uses it meanwhile.
type lockedDir struct {
	lock    *os.File
	records *sqlite.Records
	state   *state.State // as of the whole journal
}

// hold locks a directory that has a journal.
func hold(ctx context.Context, dir string) (h *lockedDir, err error) {
	h = &lockedDir{}
	if h.records, err = sqlite.OpenRecords(ctx, datadir.Journal(dir)); err != nil {
		return nil, err
	}
	if h.lock, err = datadir.Lock(dir); err != nil {
		return nil, errors.Join(err, h.records.Close())
	}
	if h.state, err = datadir.RebuildState(ctx, h.records); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Close unlocks the directory.
func (h *lockedDir) Close() error { return errors.Join(h.lock.Close(), h.records.Close()) }

// rebuildState rebuilds the state from the journal of a directory.
func rebuildState(ctx context.Context, dir string) (*state.State, error) {
	records, err := unwritten(ctx, dir)
	if err != nil {
		return nil, err
	}
	rebuilt, err := datadir.RebuildState(ctx, records)
	return rebuilt, errors.Join(err, records.Close())
}

// openDocuments opens documents that must answer now, with tables and indices of the newest
// version.
func openDocuments(ctx context.Context, dir string, at datadir.DocumentsAt) (datadir.Documents, error) {
	d, err := datadir.OpenDocuments(ctx, dir, at, sqlite.DefaultCache)
	if remote, ok := d.(*opensearch.Documents); ok && err == nil {
		if err = remote.Migrate(ctx); err != nil {
			err = errors.Join(err, d.Close())
		}
	}
	return d, err
}

// pageSize is how many documents are read at a time.
const pageSize = 500

// eachPage reads an index of a tenant.
func eachPage(ctx context.Context, from storage.Documents, tenant, index string, do func([]storage.Document) error) error {
	for q := (storage.Query{Limit: pageSize}); ; {
		page, err := from.Search(ctx, tenant, index, q)
		if err != nil {
			return err
		}
		if err := do(page.Documents); err != nil {
			return err
		}
		if q.After = page.Cursor; q.After == "" {
			return nil
		}
	}
}
