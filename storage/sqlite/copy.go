package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
)

// copyRows is how many rows are read in one transaction.
const copyRows = 256

// Copy is a new file that becomes what a database is at one moment, beside the process that
// writes to it. Reading all of it in one transaction would prevent the restart of its write-ahead log
// for as long as the copy takes. So Approach copies what exists, copyRows at a
// time, until little remains, and one transaction, from Begin to Finish, reads the rest: what
// was added or has changed since it was copied, and what was removed.
//
// A copied document is never older than its version, since both are read in one statement. So no
// change is left out at the end. A record never changes; its keys are not copied.
type Copy struct {
	db    *sql.DB
	conn  *sql.Conn
	begun bool
	step  func(*Copy, context.Context) (copied int64, err error) // copyRows at most, 0: nothing is left
	last  string                                                 // statements that complete the copy
	next  string                                                 // what Begin returns

	rows       func(*Copy, context.Context, string) error // copies the documents that a query of the table differ names
	encryption *encryption                                // nil: the documents are in the clear
	archive    bool                                       // no process opens the copy to write
}

// CopyJournal begins the copy of a file that OpenJournal made. Begin returns the position that
// the next record would have.
func CopyJournal(ctx context.Context, from, to string) (*Copy, error) {
	return newCopy(ctx, from, to, len(journalSchema), journalSchema, &Copy{
		step: (*Copy).records,
		last: `INSERT OR REPLACE INTO commits SELECT * FROM source.commits WHERE first > (SELECT coalesce(max(first), -1) FROM main.commits)`,
		next: "SELECT coalesce(max(position)+1, 0) FROM source.records",
	})
}

// CopyDocuments begins the copy of a file that OpenDocuments made. Begin returns the highest
// position that wrote any of them, Nobody's where there are none. Their search indexes are
// not copied: opening the copy rebuilds them.
func CopyDocuments(ctx context.Context, from, to string) (*Copy, error) {
	return newCopy(ctx, from, to, len(documentSchema), documentSchema, &Copy{
		step: (*Copy).documents, rows: (*Copy).copyRows,
		last: `DELETE FROM documents WHERE row NOT IN (SELECT row FROM source.documents);
			INSERT OR REPLACE INTO spaces SELECT * FROM source.spaces`,
		next: newestDocument,
	})
}

// newestDocument is the highest position that wrote a document.
const newestDocument = "SELECT coalesce(max((SELECT max(position) FROM source.documents WHERE space = number)), -1) FROM source.spaces"

// newCopy makes a file with a schema of its own, beside one that has a version.
func newCopy(ctx context.Context, from, to string, version int, steps []string, c *Copy) (_ *Copy, err error) {
	if from, err = filepath.Abs(from); err != nil {
		return nil, err
	}
	if to, err = filepath.Abs(to); err != nil {
		return nil, err
	}
	if err := create(to); err != nil {
		return nil, err
	}
	if c.db, err = sql.Open("sqlite", dsn(to, "busy_timeout(5000)", "journal_mode(memory)", "synchronous(off)", "secure_delete(on)")); err != nil {
		return nil, err
	}
	if c.conn, err = c.db.Conn(ctx); err == nil {
		err = c.attach(ctx, from, version, steps)
	}
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", filepath.Base(from), errors.Join(err, c.Close()))
	}
	return c, nil
}

func (c *Copy) attach(ctx context.Context, from string, want int, steps []string) error {
	if err := c.exec(ctx, fmt.Sprintf("PRAGMA page_size=%d", pageSize)); err != nil {
		return err
	}
	if err := migrate(ctx, c.conn, steps); err != nil {
		return err
	}
	if _, err := c.conn.ExecContext(ctx, "ATTACH ? AS source", (&url.URL{Scheme: "file", Path: from, RawQuery: "mode=ro"}).String()); err != nil {
		return err
	}
	version, err := c.number(ctx, "PRAGMA source.user_version")
	if err == nil && version != int64(want) {
		err = fmt.Errorf("it has schema version %d, this program copies %d: start this program on it once, or copy it with the one that wrote it", version, want)
	}
	return err
}

// Approach copies until little is left to copy. The source changes meanwhile; who writes to it
// faster than this copies has the rest copied at the end.
func (c *Copy) Approach(ctx context.Context) error {
	const rounds = 8
	for range rounds {
		n, err := c.all(ctx)
		if err != nil || n <= copyRows {
			return err
		}
	}
	return nil
}

// all copies what differs, and returns the number of rows.
func (c *Copy) all(ctx context.Context) (n int64, err error) {
	for {
		copied, err := c.step(c, ctx)
		if n += copied; err != nil || copied == 0 {
			return n, err
		}
	}
}

// Begin is the moment that the copy will be of.
func (c *Copy) Begin(ctx context.Context) (next int64, err error) {
	if err := c.exec(ctx, "BEGIN"); err != nil {
		return 0, err
	}
	c.begun = true
	return c.number(ctx, c.next)
}

// Leave ends the moment, for another one. Nothing was copied in it.
func (c *Copy) Leave(ctx context.Context) error {
	if !c.begun {
		return nil
	}
	c.begun = false
	return c.exec(ctx, "ROLLBACK")
}

// Finish copies the rest as of the moment, and closes the files. The caller syncs the copy.
func (c *Copy) Finish(ctx context.Context) error {
	_, err := c.all(ctx)
	for _, text := range []string{c.last, "COMMIT", "DETACH source"} {
		if err == nil {
			err = c.exec(ctx, text)
		}
	}
	if err == nil && !c.archive {
		err = c.exec(ctx, "PRAGMA journal_mode=wal")
	}
	if x := c.encryption; x != nil && err == nil {
		err = x.keys.Sync()
	}
	return errors.Join(err, c.Close())
}

// Close closes the files. What is not finished is of no use.
func (c *Copy) Close() (err error) {
	if c.conn != nil {
		err = c.conn.Close()
	}
	c.conn = nil
	return errors.Join(err, c.db.Close())
}

// together runs statements in one transaction: the moment's, if that has begun. It returns how
// many rows the last one wrote.
func (c *Copy) together(ctx context.Context, texts ...string) (n int64, err error) {
	if !c.begun {
		texts = append(append([]string{"BEGIN"}, texts...), "COMMIT")
	}
	for _, text := range texts {
		r, err := c.conn.ExecContext(ctx, text)
		if err != nil {
			return 0, fmt.Errorf("copy: %w", err)
		}
		if text != "COMMIT" {
			if n, err = r.RowsAffected(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// records copies the next ones, with the IDs of their commits.
func (c *Copy) records(ctx context.Context) (int64, error) {
	return c.together(ctx,
		`INSERT OR REPLACE INTO main.commits SELECT * FROM source.commits WHERE first > (SELECT coalesce(max(first), -1) FROM main.commits)
			AND first <= (SELECT coalesce(max(position), -1) FROM main.records)`,
		fmt.Sprintf(`INSERT INTO main.records SELECT * FROM source.records WHERE position > (SELECT coalesce(max(position), -1) FROM main.records)
			ORDER BY position LIMIT %d`, copyRows))
}

// documents copies the next ones that differ. Which they are is read of an index that holds no
// bodies, once for all of them.
func (c *Copy) documents(ctx context.Context) (int64, error) {
	left, err := c.number(ctx, "SELECT count(*) FROM temp.sqlite_schema WHERE name = 'differ'")
	if err != nil {
		return 0, err
	}
	if left == 0 {
		if _, err := c.together(ctx, `CREATE TEMP TABLE differ AS SELECT s.row FROM source.documents s INDEXED BY documents_position
			LEFT JOIN main.documents d ON d.row = s.row WHERE d.version IS NOT s.version`); err != nil {
			return 0, err
		}
	}
	some := fmt.Sprintf("SELECT rowid FROM differ ORDER BY rowid LIMIT %d", copyRows)
	if err := c.rows(c, ctx, some); err != nil {
		return 0, err
	}
	n, err := c.together(ctx, "DELETE FROM differ WHERE rowid IN ("+some+")")
	if err == nil && n == 0 {
		err = c.exec(ctx, "DROP TABLE differ")
	}
	return n, err
}

// copyRows copies some rows of the table differ.
func (c *Copy) copyRows(ctx context.Context, some string) error {
	_, err := c.together(ctx, "INSERT OR REPLACE INTO main.documents SELECT s.* FROM differ t CROSS JOIN source.documents s ON s.row = t.row WHERE t.rowid IN ("+some+")")
	return err
}

// transact calls a function in one transaction: the moment's, if that has begun.
func (c *Copy) transact(ctx context.Context, do func() error) (err error) {
	if !c.begun {
		if err := c.exec(ctx, "BEGIN"); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	if !c.begun {
		return c.exec(ctx, "COMMIT")
	}
	return nil
}

func (c *Copy) exec(ctx context.Context, text string) error {
	if _, err := c.conn.ExecContext(ctx, text); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}

func (c *Copy) number(ctx context.Context, query string) (n int64, err error) {
	err = c.conn.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}
