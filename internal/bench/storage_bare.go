package bench

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"aob.dev/writ/internal/egress"
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

// bulk sends documents of the stored form to an index of the same mapping, a batch
// a request, for so long, and reports how many a second were taken.
func bulk(ctx context.Context, url, index string, d time.Duration) (float64, error) {
	client := egress.Client(egress.Transport(url))
	began, n := time.Now(), int64(0)
	for n == 0 || time.Since(began) < d {
		var body bytes.Buffer
		for range storeBatch {
			n++
			doc := note(n)
			fmt.Fprintf(&body, "{\"create\":{\"_index\":%q,\"_id\":%q}}\n", index, doc.ID)
			fmt.Fprintf(&body, "{\"writ\":{\"position\":%d,\"id\":%q},%s\n", n, doc.ID, doc.Body[1:])
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(url, "/")+"/_bulk", &body)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		raw, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return 0, err
		}
		if resp.StatusCode != http.StatusOK || bytes.Contains(raw[:min(len(raw), 200)], []byte(`"errors":true`)) {
			return 0, fmt.Errorf("bulk: %s: %.200s", resp.Status, raw)
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
