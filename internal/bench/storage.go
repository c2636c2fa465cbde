package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
	"aob.dev/writ/storage/sqlite"
)

const (
	// DefaultDocuments is how many documents are searched.
	DefaultDocuments = 100_000
	storeDimension   = 384 // of the embeddings: a small model's
	storeCallers     = 64
	storeTenant      = "bench"
	storeBatch       = 500
)

// store measures the documents: durable writes of many callers beside one, text
// search as documents grow tenfold to the size asked for, neighbours beside text;
// and the same of an OpenSearch, if there is one, beside SQLite.
func store(ctx context.Context, o Options) (rows []Row, err error) {
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	embedded, err := sqlite.OpenDocuments(ctx, filepath.Join(dir, "documents.db"), storage.NewCheck(storeDimension))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, embedded.Close()) }()
	s := &stored{store: embedded}
	one, _, err := s.puts(ctx, o.Time, 1)
	if err != nil {
		return nil, err
	}
	many, n, err := s.puts(ctx, o.Time, storeCallers)
	if err != nil {
		return nil, err
	}
	rows = append(rows, newRow(fmt.Sprintf("sqlite writes, %d callers / 1", storeCallers), many, one, "per second", n))
	var smallest, text float64
	for _, size := range sizes(o.Documents) {
		if err := s.fill(ctx, size); err != nil {
			return nil, err
		}
		if text, n, err = s.searches(ctx, o.Time, textQuery); err != nil {
			return nil, err
		}
		if smallest == 0 {
			smallest = text
		}
		rows = append(rows, newRow(fmt.Sprintf("sqlite text search, %d documents / %d", size, sizes(o.Documents)[0]), text, smallest, "ms", n))
	}
	near, n, err := s.searches(ctx, o.Time, vectorQuery)
	if err != nil {
		return nil, err
	}
	rows = append(rows, newRow(fmt.Sprintf("sqlite neighbours / text, %d documents", o.Documents), near, text, "ms", n))
	if o.OpenSearch == "" {
		return rows, nil
	}
	more, err := remote(ctx, o, many, text, near)
	return append(rows, more...), err
}

// sizes grow tenfold up to the last.
func sizes(last int64) []int64 {
	list := []int64{last}
	for n := last / 10; n >= 10_000 || len(list) == 1; n /= 10 {
		list = append(list, max(n, 1))
	}
	slices.Reverse(list)
	return list
}

// remote measures an OpenSearch in indices of its own, which stay.
func remote(ctx context.Context, o Options, puts, text, near float64) ([]Row, error) {
	d, err := opensearch.Open(opensearch.Config{
		URL: o.OpenSearch, Prefix: fmt.Sprintf("bench%d-", time.Now().Unix()), Dimension: storeDimension,
		Check: storage.NewCheck(storeDimension), Timeout: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := d.Migrate(ctx); err != nil {
		return nil, err
	}
	s := &stored{store: d}
	rate, n, err := s.puts(ctx, o.Time, storeCallers)
	if err != nil {
		return nil, err
	}
	rows := []Row{newRow(fmt.Sprintf("opensearch writes / sqlite, %d callers", storeCallers), rate, puts, "per second", n)}
	if err := s.fill(ctx, o.Documents); err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name  string
		query func(*rand.Rand) storage.Query
		base  float64
	}{{"text search", textQuery, text}, {"neighbours", vectorQuery, near}} {
		ms, n, err := s.searches(ctx, o.Time, m.query)
		if err != nil {
			return nil, err
		}
		rows = append(rows, newRow(fmt.Sprintf("opensearch %s / sqlite, %d documents", m.name, o.Documents), ms, m.base, "ms", n))
	}
	return rows, nil
}

// stored is a store and how many documents it was given.
type stored struct {
	store storage.Documents
	next  atomic.Int64
}

// puts reports durable writes a second.
func (s *stored) puts(ctx context.Context, d time.Duration, callers int) (float64, int64, error) {
	began, first := time.Now(), s.next.Load()
	var running sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		running.Go(func() {
			for time.Since(began) < d && errs[i] == nil {
				errs[i] = s.store.Put(ctx, storeTenant, storage.IndexMemory, note(s.next.Add(1)))
			}
		})
	}
	running.Wait()
	n := s.next.Load() - first
	return float64(n) / time.Since(began).Seconds(), n, errors.Join(errs...)
}

// fill creates documents until there are so many.
func (s *stored) fill(ctx context.Context, size int64) error {
	for s.next.Load() < size {
		var batch []storage.Document
		for range min(storeBatch, size-s.next.Load()) {
			batch = append(batch, note(s.next.Add(1)))
		}
		if _, err := s.store.Create(ctx, storeTenant, storage.IndexMemory, batch...); err != nil {
			return err
		}
	}
	return nil
}

// searches reports the median of one caller's searches in milliseconds.
func (s *stored) searches(ctx context.Context, d time.Duration, query func(*rand.Rand) storage.Query) (float64, int64, error) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // G404: the same queries each time
	var took []time.Duration
	for began := time.Now(); len(took) == 0 || time.Since(began) < d; {
		q, start := query(random), time.Now()
		if _, err := s.store.Search(ctx, storeTenant, storage.IndexMemory, q); err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000, int64(len(took)), nil
}

// vocabulary of the notes: a word is in about one of thirty.
const vocabulary = 1000

func textQuery(r *rand.Rand) storage.Query {
	return storage.Query{
		Text: fmt.Sprintf("word%d word%d", r.IntN(vocabulary), r.IntN(vocabulary)), Limit: 10,
		Terms: map[string][]string{"scope": {"user"}, "user_id": {fmt.Sprint("u", r.IntN(10))}},
	}
}

func vectorQuery(r *rand.Rand) storage.Query {
	return storage.Query{
		Vector: &storage.Vector{Member: "embedding", Values: embedding(r)}, Limit: 10,
		Terms: map[string][]string{"scope": {"user"}, "user_id": {fmt.Sprint("u", r.IntN(10))}},
	}
}

func embedding(r *rand.Rand) []float32 {
	v := make([]float32, storeDimension)
	for i := range v {
		v[i] = float32(int(r.NormFloat64()*1000)) / 1000 // short in JSON
	}
	v[0]++
	return v
}

// note is a memory of thirty words with an embedding.
func note(n int64) storage.Document {
	r := rand.New(rand.NewPCG(uint64(n), 7)) //nolint:gosec // G404, G115: the same notes each time
	var text []byte
	for range 30 {
		text = fmt.Appendf(text, "word%d ", r.IntN(vocabulary))
	}
	id := fmt.Sprint("n", n)
	body, err := json.Marshal(map[string]any{
		"id": id, "tenant_id": storeTenant, "scope": "user", "user_id": fmt.Sprint("u", n%10), "key": id, "text": string(text),
		"embedding": embedding(r), "created_at": "2026-11-20T10:00:00Z",
	})
	if err != nil {
		panic(err) // strings and finite numbers
	}
	return storage.Document{ID: id, Position: n, Body: body}
}
