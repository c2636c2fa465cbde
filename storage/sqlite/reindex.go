package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"aob.dev/writ/storage"
)

// entriesVersion grows when the same fields give other entries.
const entriesVersion = 3

// madeBy names what entries are made by: the fields of all indices.
func madeBy() (string, error) {
	all := make(map[string][]storage.Field)
	for _, index := range storage.Indices {
		var err error
		if all[index], err = storage.Fields(index); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%x", entriesVersion, sha256.Sum256(b)), nil
}

// reindexBatch is how many documents are read at a time.
const reindexBatch = 500

// ReindexDocuments rebuilds terms, text and vectors of a file from the bodies,
// whatever their present content, and returns the number of documents. Nobody else may use
// the file. It is one transaction: a crash leaves the old ones.
func ReindexDocuments(ctx context.Context, path string) (documents int64, err error) {
	by, err := madeBy()
	if err != nil {
		return 0, err
	}
	d, err := connectDocuments(ctx, path, nil, DefaultCache) // nothing is written that was not there
	if err != nil {
		return 0, fmt.Errorf("reindex: %w", err)
	}
	defer func() { err = errors.Join(err, d.db.close()) }()
	if err := d.makeAll(ctx, by); err != nil {
		return 0, err
	}
	err = d.db.writer.QueryRowContext(ctx, "SELECT count(*) FROM documents").Scan(&documents)
	return documents, err
}

// reindex makes terms, text and vectors again from the bodies, if they were made
// by the fields of another version. It is one transaction: a crash leaves the old
// ones, and the next opening begins again.
func (d *Documents) reindex(ctx context.Context) error {
	by, err := madeBy()
	if err != nil {
		return err
	}
	var made string
	err = d.db.writer.QueryRowContext(ctx, "SELECT by FROM made WHERE what = 'entries'").Scan(&made)
	if err == nil && made == by {
		return nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("reindex: %w", err)
	}
	return d.makeAll(ctx, by)
}

func (d *Documents) makeAll(ctx context.Context, by string) error {
	if err := d.db.transact(ctx, func() error { return d.makeEntries(ctx, by) }); err != nil {
		return fmt.Errorf("reindex: %w", err)
	}
	return nil
}

func (d *Documents) makeEntries(ctx context.Context, by string) error {
	_, err := d.db.writer.ExecContext(ctx, `DELETE FROM terms; DELETE FROM vectors; INSERT INTO text(text) VALUES ('delete-all')`)
	if err != nil {
		return err
	}
	for after := int64(0); ; {
		batch, err := d.bodies(ctx, after)
		if err != nil {
			return err
		}
		for _, b := range batch {
			_, index, ok := placeOf(b.name)
			if !ok {
				return fmt.Errorf("space %q", b.name)
			}
			e, err := entriesOfBody(index, b.body)
			if err != nil {
				return err
			}
			if err := d.index(ctx, b.space, b.number, entries{}, e); err != nil {
				return err
			}
			after = b.number
		}
		if len(batch) < reindexBatch {
			break
		}
	}
	_, err = d.db.writer.ExecContext(ctx, "INSERT INTO made(what, by) VALUES ('entries', ?) ON CONFLICT(what) DO UPDATE SET by = excluded.by", by)
	return err
}

// body is a stored document with the name of its space.
type body struct {
	number, space int64
	name          string
	body          []byte
}

func (d *Documents) bodies(ctx context.Context, after int64) ([]body, error) {
	return collect(ctx, d.db.writer, func(rows *sql.Rows) (b body, err error) {
		return b, rows.Scan(&b.number, &b.space, &b.name, &b.body)
	}, `SELECT d.row, d.space, s.name, d.body FROM documents d JOIN spaces s ON s.number = d.space
		WHERE d.row > ? ORDER BY d.row LIMIT ?`, after, reindexBatch)
}

// placeOf is the tenant and the index of a spaceName.
func placeOf(name string) (tenant, index string, ok bool) {
	size, rest, ok := strings.Cut(name, ":")
	n, err := strconv.Atoi(size)
	if !ok || err != nil || n < 0 || n >= len(rest) || rest[n] != '/' {
		return "", "", false
	}
	return rest[:n], rest[n+1:], true
}
