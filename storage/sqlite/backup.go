package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"modernc.org/sqlite"
)

// Snapshot is a database as it was at one moment, read beside the process that
// writes it or when none does. While it is open the write-ahead log of the
// database only grows, so it is not to be kept.
type Snapshot struct {
	db   *sql.DB
	conn *sql.Conn
}

// OpenSnapshot opens a file that OpenJournal or OpenDocuments made, as it is at
// this moment.
func OpenSnapshot(ctx context.Context, path string) (*Snapshot, error) {
	s := &Snapshot{}
	var err error
	if s.db, err = readOnly(path, ""); err != nil {
		return nil, err
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", filepath.Base(path), errors.Join(err, s.db.Close()))
	}
	// A transaction sees nothing before it reads, and the moment is that of its
	// first reading.
	_, err = s.conn.ExecContext(ctx, "BEGIN")
	if err == nil {
		_, err = s.number(ctx, "SELECT count(*) FROM sqlite_schema")
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", filepath.Base(path), errors.Join(err, s.Close()))
	}
	return s, nil
}

// Records is the position that the next record of a journal would have.
func (s *Snapshot) Records(ctx context.Context) (int64, error) {
	return s.number(ctx, "SELECT coalesce(max(position)+1, 0) FROM records")
}

// Newest is the highest position that wrote any of the documents; Nobody's where
// there are none.
func (s *Snapshot) Newest(ctx context.Context) (int64, error) {
	return s.number(ctx, "SELECT coalesce(max((SELECT max(position) FROM documents WHERE space = number)), -1) FROM spaces")
}

func (s *Snapshot) number(ctx context.Context, query string) (n int64, err error) {
	err = s.conn.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// backupPages is how many pages are copied between two looks at the context.
const backupPages = 1024

// CopyTo writes the database as of the moment to a new file, page by page, without
// holding up who writes to the database. On an error the file is of no use.
func (s *Snapshot) CopyTo(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := create(path); err != nil {
		return err
	}
	return s.conn.Raw(func(driver any) error {
		source, ok := driver.(interface {
			NewBackup(dst string) (*sqlite.Backup, error)
		})
		if !ok {
			return errors.New("backup: the driver of SQLite makes none")
		}
		b, err := source.NewBackup(dsn(path))
		if err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		for more := true; more && err == nil; {
			if err = ctx.Err(); err == nil {
				more, err = b.Step(backupPages)
			}
		}
		return errors.Join(err, b.Finish())
	})
}

// Close releases the moment.
func (s *Snapshot) Close() error { return errors.Join(s.conn.Close(), s.db.Close()) }

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
func (s *Snapshot) Spaces(ctx context.Context) ([]Space, error) {
	return collect(ctx, s.conn, func(rows *sql.Rows) (at Space, err error) {
		var name string
		if err := rows.Scan(&name, &at.Documents, &at.Newest); err != nil {
			return at, err
		}
		var ok bool
		if at.Index, ok = indexOf(name); !ok {
			err = fmt.Errorf("space %q", name)
		}
		return at, err
	}, `SELECT name, (SELECT count(*) FROM documents WHERE space = number),
		coalesce((SELECT max(position) FROM documents WHERE space = number), -1) FROM spaces ORDER BY name`)
}
