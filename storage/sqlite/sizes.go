package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
)

// Sizes report the contents of a database, while a process writes to it or when none does.
// Each is read separately, in a short time or not at all (storage.ErrSlow).
type Sizes struct{ db *sql.DB }

// OpenSizes opens a file that OpenJournal or OpenDocuments made.
func OpenSizes(ctx context.Context, path string) (*Sizes, error) {
	s := &Sizes{}
	var err error
	if s.db, err = readOnly(path, ""); err != nil {
		return nil, err
	}
	if _, err := s.Version(ctx); err != nil {
		return nil, fmt.Errorf("look at %s: %w", filepath.Base(path), errors.Join(err, s.Close()))
	}
	return s, nil
}

// Close closes the file.
func (s *Sizes) Close() error { return s.db.Close() }

func (s *Sizes) number(ctx context.Context, query string, args ...any) (int64, error) {
	return bounded(ctx, func(ctx context.Context) (n int64, err error) {
		return n, s.db.QueryRowContext(ctx, query, args...).Scan(&n)
	})
}

// Records is the position that the next record of a journal would have.
func (s *Sizes) Records(ctx context.Context) (int64, error) {
	return s.number(ctx, "SELECT coalesce(max(position)+1, 0) FROM records")
}

// Version of the tables.
func (s *Sizes) Version(ctx context.Context) (int64, error) {
	return s.number(ctx, "PRAGMA user_version")
}

// Bytes of the database, without what is still in its write-ahead log alone.
func (s *Sizes) Bytes(ctx context.Context) (int64, error) {
	pages, err := s.number(ctx, "PRAGMA page_count")
	return pages * pageSize, err
}

// Space is what an index holds of one tenant.
type Space struct {
	Index     string
	Documents int64
	Newest    int64 // highest position; Nobody's without documents
}

// Spaces lists what a file of documents holds.
func (s *Sizes) Spaces(ctx context.Context) (list []Space, err error) {
	type space struct {
		number int64
		name   string
	}
	all, err := collect(ctx, s.db, func(rows *sql.Rows) (at space, err error) { return at, rows.Scan(&at.number, &at.name) }, "SELECT number, name FROM spaces ORDER BY name")
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		_, index, ok := placeOf(one.name)
		if !ok {
			return nil, fmt.Errorf("space %q", one.name)
		}
		n, err1 := s.number(ctx, "SELECT count(*) FROM documents WHERE space = ?", one.number)
		newest, err2 := s.number(ctx, "SELECT coalesce(max(position), -1) FROM documents WHERE space = ?", one.number)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		list = append(list, Space{index, n, newest})
	}
	return list, nil
}
