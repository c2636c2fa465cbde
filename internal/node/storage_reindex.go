package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// ErrNoProjection says that an index is not made from the journal.
var ErrNoProjection = errors.New("is not made from the journal, so nothing could make it again: one of " + strings.Join(projections, ", ") + "; or --search for what searches go by")

// Reindex drops the documents of a projection and makes them again from the
// journal, while no node uses the directory. It says how many were removed and
// made. What a retention has removed stays removed.
//
// Crash: some of them are missing, and the command run again makes them.
func Reindex(ctx context.Context, dir string, at Documents, index string) (removed, made int, err error) {
	if !slices.Contains(projections, index) {
		return 0, 0, fmt.Errorf("%s %w", index, ErrNoProjection)
	}
	u, err := openUpkeep(ctx, dir, at)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	temp, err := os.MkdirTemp("", "writ-reindex-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	ours, err := sqlite.OpenDocuments(ctx, filepath.Join(temp, "ours"), storage.NewCheck(cmp.Or(at.Dimension, storage.DefaultDimension)))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	if _, err := rebuild(ctx, u.records, ours); err != nil {
		return 0, 0, fmt.Errorf("the journal cannot be projected: %w", err)
	}
	for _, tenant := range u.tenants {
		gone, err := u.documents.Purge(ctx, tenant, index, storage.Query{})
		if removed += gone; err != nil {
			return removed, made, err
		}
		docs, err := documentsOf(ctx, ours, tenant, index)
		if err != nil {
			return removed, made, err
		}
		list := younger(index, inOrder(docs), u.directory.Removed(tenant, index, time.Now()))
		if err := put(ctx, u.documents, tenant, index, list); err != nil {
			return removed, made, err
		}
		made += len(list)
	}
	return removed, made, nil
}

// Renewed says of how many documents what searches go by was made again.
type Renewed struct {
	Index     string `json:"index"` // empty: all of the store, which has them together
	Documents int64  `json:"documents"`
}

// ReindexSearch makes again what searches go by, of the documents themselves, while
// no node uses the directory: in SQLite the entries of all indices; in an OpenSearch
// an index with the mapping of this program behind the alias, for the one that is
// named or for each that has an alias. See the drivers for what a crash leaves.
func ReindexSearch(ctx context.Context, dir string, at Documents, index string) (out []Renewed, err error) {
	if index != "" && !slices.Contains(storage.Indices, index) {
		return nil, fmt.Errorf("%s %w", index, ErrNoIndex)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if at.URL == "" {
		if _, err := os.Stat(filepath.Join(dir, "documents.db")); err != nil {
			return nil, err
		}
		n, err := sqlite.ReindexDocuments(ctx, filepath.Join(dir, "documents.db"))
		if err != nil {
			return nil, err
		}
		return []Renewed{{"", n}}, nil
	}
	d, err := lookAt(at)
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
		out = append(out, Renewed{name, n})
	}
	return out, nil
}

// ErrNoIndex says that there is no such index.
var ErrNoIndex = errors.New("is no index: one of " + strings.Join(storage.Indices, ", "))

// inOrder of positions, so that what a crash leaves is the beginning.
func inOrder(docs map[string]storage.Document) []storage.Document {
	return slices.SortedFunc(maps.Values(docs), func(a, b storage.Document) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), strings.Compare(a.ID, b.ID))
	})
}

// put writes documents as they are; those that are there already stay.
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

// Migrated says which version tables have and which this program makes. Remote
// documents have none: their indices are brought in order as a whole.
type Migrated struct {
	Journal   Version `json:"journal"`
	Documents Version `json:"documents"`
	Pending   bool    `json:"pending"` // found older, or newer than this program
}

// Version of tables, found and known.
type Version struct {
	Found int64 `json:"found"`
	Known int64 `json:"known"`
}

// Migrate brings tables and indices to the newest version, while no node uses the
// directory; with check it only looks, also beside a node. A newer version than
// this program knows is an error of migrating.
func Migrate(ctx context.Context, dir string, at Documents, check bool) (m Migrated, err error) {
	s := StorageStatus{}
	if s.Journal, err = journalSize(ctx, dir); err != nil {
		return m, err
	}
	m.Journal = Version{s.Journal.Version, sqlite.JournalVersion}
	if at.URL == "" {
		if _, err = s.spaces(ctx, dir, at, nil); err != nil {
			return m, err
		}
		m.Documents = Version{s.Documents.Version, sqlite.DocumentsVersion}
	}
	m.Pending = m.Journal.Found != m.Journal.Known || m.Documents.Found != m.Documents.Known
	if check {
		return m, nil
	}
	u, err := openUpkeep(ctx, dir, at) // which migrates the documents
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	j, err := sqlite.OpenJournal(ctx, filepath.Join(dir, "journal"), sqlite.JournalOptions{})
	if err != nil {
		return m, err
	}
	return m, j.Close()
}
