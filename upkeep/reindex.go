package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// ErrNoProjection says that an index is not made from the journal.
var ErrNoProjection = errors.New("is not made from the journal, so nothing could make it again: one of " + strings.Join(projections, ", ") + "; or --search for what searches go by")

// Reindex drops the documents of a projection and makes them again from the journal, while no node
// uses the directory. It returns how many were removed and made. What a retention has removed stays
// removed.
//
// Crash: some documents are missing, and running the command again makes them.
func Reindex(ctx context.Context, dir string, at datadir.DocumentsAt, index string) (removed, made int, err error) {
	if !slices.Contains(projections, index) {
		return 0, 0, fmt.Errorf("%s %w", index, ErrNoProjection)
	}
	h, err := hold(ctx, dir)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	docs, err := openDocuments(ctx, dir, at)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, docs.Close()) }()
	ours, err := project(ctx, dir, h.records)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	for _, tenant := range h.state.Tenants() {
		gone, err := docs.Purge(ctx, tenant, index, storage.Query{})
		if removed += gone; err != nil {
			return removed, made, err
		}
		again, err := documentsOf(ctx, ours, tenant, index)
		if err != nil {
			return removed, made, err
		}
		list := storage.Younger(index, inOrder(again), h.state.RemovedBefore(tenant, index, time.Now()))
		if err := put(ctx, docs, tenant, index, list); err != nil {
			return removed, made, err
		}
		made += len(list)
	}
	return removed, made, nil
}

// ReindexReport counts the documents whose search entries were rebuilt.
type ReindexReport struct {
	Index     string `json:"index"` // empty: all of the store, which has them together
	Documents int64  `json:"documents"`
}

// ReindexSearch rebuilds the search entries from the documents themselves, while no node uses the
// directory: in SQLite the entries of all indices; in an OpenSearch an index with the mapping of
// this program behind the alias, for the named index or for each that has an alias. See the drivers
// for what a crash leaves.
func ReindexSearch(ctx context.Context, dir string, at datadir.DocumentsAt, index string) (out []ReindexReport, err error) {
	if index != "" && !slices.Contains(storage.Indices, index) {
		return nil, fmt.Errorf("%s %w", index, ErrNoIndex)
	}
	lock, err := datadir.Lock(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if at.URL == "" {
		if _, err := os.Stat(datadir.DocumentsFile(dir)); err != nil {
			return nil, err
		}
		n, err := sqlite.ReindexDocuments(ctx, datadir.DocumentsFile(dir))
		if err != nil {
			return nil, err
		}
		return []ReindexReport{{"", n}}, nil
	}
	d, err := datadir.RemoteDocuments(at)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for _, name := range storage.Indices {
		if _, months := storage.Appended[name]; index != "" && name != index || index == "" && months {
			continue
		}
		n, err := d.Reindex(ctx, name)
		if err != nil {
			return out, err
		}
		out = append(out, ReindexReport{name, n})
	}
	return out, nil
}

// ErrNoIndex says that there is no such index.
var ErrNoIndex = errors.New("is no index: one of " + strings.Join(storage.Indices, ", "))

// inOrder sorts documents by position, so that a crash leaves the first ones.
func inOrder(docs map[string]storage.Document) []storage.Document {
	return slices.SortedFunc(maps.Values(docs), func(a, b storage.Document) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), strings.Compare(a.ID, b.ID))
	})
}

// put writes documents unchanged; those that exist already stay.
func put(ctx context.Context, to storage.Documents, tenant, index string, docs []storage.Document) error {
	if len(docs) == 0 {
		return nil
	}
	if _, appended := storage.Appended[index]; appended {
		_, err := to.Create(ctx, tenant, index, docs...)
		return err
	}
	for _, doc := range docs {
		if err := to.Put(ctx, tenant, index, doc); err != nil {
			return fmt.Errorf("%s of %s: document %s: %w", index, tenant, doc.ID, err)
		}
	}
	return nil
}
