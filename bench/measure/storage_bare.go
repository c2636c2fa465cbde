package measure

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"aob.dev/writ/storage"
)

// bare is a SQLite file with bodies and an FTS5 index of their words, and nothing
// else: no schema, tenants, fences or filters.
type bare struct {
	db   *sql.DB
	next int64
}

func openBare(ctx context.Context, dir string) (*bare, error) {
	path := filepath.Join(dir, "bare.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-65536)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `CREATE TABLE documents(row INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
		CREATE VIRTUAL TABLE text USING fts5(words, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 0")`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &bare{db: db}, nil
}

// fill writes batches of documents, each in one transaction, until there are so many.
func (b *bare) fill(ctx context.Context, size int64, of func(int64) storage.Document) error {
	for b.next < size {
		tx, err := b.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		for range min(storeBatch, size-b.next) {
			b.next++
			doc := of(b.next)
			var words struct{ Text string }
			err := json.Unmarshal(doc.Body, &words)
			if err == nil {
				_, err = tx.ExecContext(ctx, "INSERT INTO documents(row, body) VALUES (?, ?)", b.next, string(doc.Body))
			}
			if err == nil {
				_, err = tx.ExecContext(ctx, "INSERT INTO text(rowid, words) VALUES (?, ?)", b.next, words.Text)
			}
			if err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// search asks for the best ten of two words, whosever they are.
func (b *bare) search(ctx context.Context, q storage.Query) error {
	rows, err := b.db.QueryContext(ctx, "SELECT rowid, rank FROM text WHERE text MATCH ? ORDER BY rank LIMIT 10", strings.Join(storage.Words(q.Text), " OR "))
	if err != nil {
		return err
	}
	for rows.Next() {
		var row int64
		var rank float64
		err = errors.Join(err, rows.Scan(&row, &rank))
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// scanned is the median of comparing a vector with so many others in memory, in
// milliseconds: the linear scan that neighbours are measured beside.
func scanned(ctx context.Context, d time.Duration, vectors int64) (float64, error) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // G404: the same vectors each time
	some := make([][]float32, min(vectors, 10_000))
	for i := range some {
		some[i] = embedding(random)
	}
	var best float32
	took, err := inTurns(ctx, d, timed(func() error {
		asked := embedding(random)
		for n := range vectors {
			var dot, norm float32
			for i, v := range some[n%int64(len(some))] {
				dot += v * asked[i]
				norm += v * v
			}
			best = max(best, dot/norm)
		}
		return nil
	}))
	if err != nil || best < 0 {
		return 0, err // best is used, so that the loop is not left out
	}
	return median(took[0]), nil
}
