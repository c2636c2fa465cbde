package upkeep

import (
	"context"
	"errors"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage/sqlite"
)

// Migrated says which version tables have and which this program makes. Remote
// documents have none: their indices are migrated together.
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
func Migrate(ctx context.Context, dir string, at datadir.DocumentsAt, check bool) (m Migrated, err error) {
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
	h, err := hold(ctx, dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	docs, err := openDocuments(ctx, dir, at)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, docs.Close()) }()
	j, err := sqlite.OpenJournal(ctx, datadir.Journal(dir), sqlite.JournalOptions{})
	if err != nil {
		return m, err
	}
	return m, j.Close()
}
