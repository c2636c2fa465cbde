package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
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

// store measures the documents: durable writes of many callers beside one; text
// search as documents grow tenfold to the size asked for, beside bare FTS5;
// neighbours beside a linear scan; and the same of an OpenSearch, if there is one,
// beside SQLite.
func store(ctx context.Context, o Options) ([]Row, error) {
	return within(func(dir string) ([]Row, error) { return storeIn(ctx, dir, o) })
}

func storeIn(ctx context.Context, dir string, o Options) (rows []Row, err error) {
	if rows, err = growingText(ctx, dir, o); err != nil {
		return rows, err
	}
	embedded, err := sqlite.OpenDocuments(ctx, filepath.Join(dir, "documents.db"), storage.NewCheck(storeDimension), 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, embedded.Close()) }()
	s := &filledStore{store: embedded, document: note}
	one, many := s.puts(1), s.puts(storeCallers)
	if err := race(ctx, o.Time, one, many); err != nil {
		return nil, err
	}
	if err := s.fill(ctx, o.Documents); err != nil {
		return nil, err
	}
	text, _, err := s.searches(ctx, o.Time, textQuery, nil)
	if err != nil {
		return nil, err
	}
	near, n, err := s.searches(ctx, o.Time, vectorQuery, nil)
	if err != nil {
		return nil, err
	}
	linear, err := scanned(ctx, o.Time, o.Documents/users)
	if err != nil {
		return nil, err
	}
	rows = append(rows,
		newRow(fmt.Sprintf("sqlite writes, %d callers / 1", storeCallers), many.rate(), one.rate(), "per second", many.n),
		newRow(fmt.Sprintf("sqlite neighbours, %d documents / linear scan of the user's", o.Documents), near[0], linear, "ms", n))
	if o.OpenSearch == "" {
		return rows, nil
	}
	more, err := remote(ctx, o, many.rate(), text[0], near[0])
	return append(rows, more...), err
}

// growingText fills two files with the same documents, without embeddings, and asks
// both for the same words in turns.
func growingText(ctx context.Context, dir string, o Options) (rows []Row, err error) {
	ours, err := sqlite.OpenDocuments(ctx, filepath.Join(dir, "words.db"), storage.NewCheck(storeDimension), 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	beside, err := openBare(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, beside.db.Close()) }()
	s := &filledStore{store: ours, document: words}
	var smallest float64
	all := sizes(o.Documents)
	for i, size := range all {
		if err := errors.Join(s.fill(ctx, size), beside.fill(ctx, size, words)); err != nil {
			return nil, err
		}
		both, n, err := s.searches(ctx, 2*o.Time, textQuery, beside)
		if err != nil {
			return nil, err
		}
		text := both[0]
		rows = append(rows, newRow(fmt.Sprintf("sqlite text search, %d documents / bare FTS5", size), text, both[1], "ms", n))
		if i == 0 {
			smallest = text
		} else {
			rows = append(rows, newRow(fmt.Sprintf("sqlite text search, %d documents / %d", size, all[0]), text, smallest, "ms", n))
		}
	}
	return rows, nil
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
	prefix := fmt.Sprintf("bench%d-", time.Now().Unix())
	d, err := opensearch.Open(opensearch.Config{
		URL: o.OpenSearch, Prefix: prefix, Dimension: storeDimension,
		Check: storage.NewCheck(storeDimension), Timeout: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := d.Migrate(ctx); err != nil {
		return nil, err
	}
	s := &filledStore{store: d, document: note}
	l := s.puts(storeCallers)
	if err := race(ctx, o.Time, l); err != nil {
		return nil, err
	}
	rows := []Row{newRow(fmt.Sprintf("opensearch writes / sqlite, %d callers", storeCallers), l.rate(), puts, "per second", l.n)}
	if err := errors.Join(s.fill(ctx, o.Documents), d.Refresh(ctx, storage.IndexMemory)); err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name  string
		query func(*rand.Rand) storage.Query
		base  float64
	}{{"text search", textQuery, text}, {"neighbours", vectorQuery, near}} {
		ms, n, err := s.searches(ctx, o.Time, m.query, nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, newRow(fmt.Sprintf("opensearch %s / sqlite, %d documents", m.name, o.Documents), ms[0], m.base, "ms", n))
	}
	return rows, nil
}

// filledStore is a store and how many documents it was given.
type filledStore struct {
	store    storage.Documents
	document func(n int64) storage.Document
	next     atomic.Int64
}

// puts are durable writes.
func (s *filledStore) puts(callers int) *lane {
	return &lane{callers: callers, do: func(ctx context.Context, _ int) error {
		return s.store.Put(ctx, storeTenant, storage.IndexMemory, s.document(s.next.Add(1)))
	}}
}

// fill creates documents until there are so many.
func (s *filledStore) fill(ctx context.Context, size int64) error {
	for s.next.Load() < size {
		var batch []storage.Document
		for range min(storeBatch, size-s.next.Load()) {
			batch = append(batch, s.document(s.next.Add(1)))
		}
		if _, err := s.store.Create(ctx, storeTenant, storage.IndexMemory, batch...); err != nil {
			return err
		}
	}
	return nil
}

// searches reports the median of one caller's searches in milliseconds, and if there is a
// bare store, that of the same searches in it.
func (s *filledStore) searches(ctx context.Context, d time.Duration, query func(*rand.Rand) storage.Query, beside *bare) (ms []float64, n int64, err error) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // G404: the same queries each time
	var q storage.Query
	stores := []func() (float64, error){func() (float64, error) {
		q = query(random)
		return timed(func() error { _, err := s.store.Search(ctx, storeTenant, storage.IndexMemory, q); return err })()
	}}
	if beside != nil {
		stores = append(stores, timed(func() error { return beside.search(ctx, q) }))
	}
	took, err := inTurns(ctx, d, stores...)
	for _, t := range took {
		ms, n = append(ms, median(t)), int64(len(t))
	}
	return ms, n, err
}

// vocabulary is how many words the texts are made of: each is in about one text of thirty.
const vocabulary = 1000

func textQuery(r *rand.Rand) storage.Query {
	return storage.Query{
		Text: fmt.Sprintf("word%d word%d", r.IntN(vocabulary), r.IntN(vocabulary)), Limit: 10,
		Terms: map[string][]string{"scope": {"user"}, "user_id": {fmt.Sprint("u", r.IntN(users))}},
	}
}

func vectorQuery(r *rand.Rand) storage.Query {
	return storage.Query{
		Vector: &storage.Vector{Member: "embedding", Values: embedding(r)}, Limit: 10,
		Terms: map[string][]string{"scope": {"user"}, "user_id": {fmt.Sprint("u", r.IntN(users))}},
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

// users that have the notes between them.
const users = 10

// note is a memory of thirty words with an embedding.
func note(n int64) storage.Document { return memory(n, true) }

// words is note without the embedding.
func words(n int64) storage.Document { return memory(n, false) }

func memory(n int64, embedded bool) storage.Document {
	r := rand.New(rand.NewPCG(uint64(n), 7)) //nolint:gosec // G404, G115: the same notes each time
	var text []byte
	for range 30 {
		text = fmt.Appendf(text, "word%d ", r.IntN(vocabulary))
	}
	id := fmt.Sprint("n", n)
	members := map[string]any{
		"id": id, "tenant_id": storeTenant, "scope": "user", "user_id": fmt.Sprint("u", n%users), "key": id, "text": string(text),
		"created_at": "2026-11-20T10:00:00Z",
	}
	if embedded {
		members["embedding"] = embedding(r)
	}
	body, err := json.Marshal(members)
	if err != nil {
		panic(err) // strings and finite numbers
	}
	return storage.Document{ID: id, Position: n, Body: body}
}
