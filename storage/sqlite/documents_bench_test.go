package sqlite_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

var benchWords = []string{"earthquake", "magnitude", "outlet", "order", "menu", "strong", "place", "list", "region", "count"}

// benchDocument is a memory of about half a kilobyte. One in a thousand has a rare word.
func benchDocument(n int) storage.Document {
	text := fmt.Sprintf("note %d about %s and %s of %s", n, benchWords[n%10], benchWords[n/10%10], benchWords[n/100%10])
	if n%1000 == 0 {
		text += " volcano"
	}
	body, err := json.Marshal(map[string]any{
		"id": fmt.Sprint(n), "tenant_id": "acme", "scope": "session", "session_id": fmt.Sprint("s", n/20), "user_id": fmt.Sprint("u", n%50),
		"key": fmt.Sprint("acme:s:", n), "text": text, "step_index": n % 10,
		"created_at": fmt.Sprintf("2026-11-%02dT%02d:%02d:00Z", 1+n%28, n/28%24, n%60),
	})
	if err != nil {
		panic(err)
	}
	return storage.Document{ID: fmt.Sprint(n), Position: int64(n), Body: body}
}

// BenchmarkSearch asks one tenant's hundred thousand documents.
func BenchmarkSearch(b *testing.B) {
	d := openDocuments(b, filepath.Join(b.TempDir(), "documents.db"))
	const documents, batch = 100_000, 500
	for n := 0; n < documents; n += batch {
		docs := make([]storage.Document, batch)
		for i := range docs {
			docs[i] = benchDocument(n + i)
		}
		if _, err := d.Create(b.Context(), "acme", storage.IndexMemory, docs...); err != nil {
			b.Fatal(err)
		}
	}
	for name, q := range map[string]storage.Query{
		"session":             {Terms: map[string][]string{"session_id": {"s77"}}, Sort: "-created_at"},
		"user by time":        {Terms: map[string][]string{"user_id": {"u7"}}, Sort: "-created_at"},
		"all by time":         {Terms: map[string][]string{"scope": {"session"}}, Sort: "-created_at"},
		"all by position":     {Sort: "-_position"},
		"two terms":           {Terms: map[string][]string{"scope": {"session"}, "user_id": {"u7"}, "step_index": {"7"}}, Sort: "created_at"},
		"rare word":           {Text: "volcano", Limit: 10},
		"common words":        {Text: "earthquake magnitude", Limit: 10},
		"common word of user": {Text: "earthquake", Terms: map[string][]string{"user_id": {"u0"}}, Limit: 10},
		"expiring":            {Now: "2026-11-20T10:00:00Z", Terms: map[string][]string{"session_id": {"s5"}}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				page, err := d.Search(b.Context(), "acme", storage.IndexMemory, q)
				if err != nil || len(page.Documents) == 0 {
					b.Fatalf("%d documents, %v", len(page.Documents), err)
				}
			}
		})
	}
}

// BenchmarkPut reports durable writes per second of 64 callers.
func BenchmarkPut(b *testing.B) {
	d := openDocuments(b, filepath.Join(b.TempDir(), "documents.db"))
	var next atomic.Int64
	var running sync.WaitGroup
	b.ResetTimer()
	for range 64 {
		running.Go(func() { putUntil(b, d, &next) })
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "per_s")
}

func putUntil(b *testing.B, d *sqlite.Documents, next *atomic.Int64) {
	b.Helper()
	for {
		n := int(next.Add(1))
		if n > b.N {
			return
		}
		if err := d.Put(b.Context(), "acme", storage.IndexMemory, benchDocument(n)); err != nil {
			b.Error(err)
			return
		}
	}
}
