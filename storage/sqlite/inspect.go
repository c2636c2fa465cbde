package sqlite

import (
	"context"
	"errors"
	"fmt"
)

// Versions of the tables that this program makes.
var (
	JournalVersion   = int64(len(journalSchema))
	DocumentsVersion = int64(len(documentSchema))
)

// Space is what an index holds of one tenant.
type Space struct {
	Index     string
	Documents int64
	Newest    int64 // highest position; Nobody's without documents
}

// Version of the tables.
func (s *Snapshot) Version(ctx context.Context) (int64, error) {
	return s.number(ctx, "PRAGMA user_version")
}

// Bytes of the database, without what is still in its write-ahead log alone.
func (s *Snapshot) Bytes(ctx context.Context) (int64, error) {
	pages, err := s.number(ctx, "PRAGMA page_count")
	return pages * pageSize, err
}

// Spaces lists what a file of documents holds.
func (s *Snapshot) Spaces(ctx context.Context) (out []Space, err error) {
	rows, err := s.conn.QueryContext(ctx, `SELECT name, (SELECT count(*) FROM documents WHERE space = number),
		coalesce((SELECT max(position) FROM documents WHERE space = number), -1) FROM spaces ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		var at Space
		if err := rows.Scan(&name, &at.Documents, &at.Newest); err != nil {
			return nil, err
		}
		var ok bool
		if at.Index, ok = indexOf(name); !ok {
			return nil, fmt.Errorf("space %q", name)
		}
		out = append(out, at)
	}
	return out, rows.Err()
}
