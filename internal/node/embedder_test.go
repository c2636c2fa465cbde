package node

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/embed"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// vectorService answers every text with one answer.
func vectorService(t *testing.T, status int, answer string) embed.Embedder {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	e, err := embed.NewOpenAI(embed.OpenAIConfig{BaseURL: s.URL, Model: "m", Dimension: storage.DefaultDimension})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func hashed(t *testing.T, dimension int) embed.Embedder {
	t.Helper()
	h, err := embed.NewHashed(dimension)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestEmbedderRefused: vectors that the store does not take are found at the
// start, as is a service that refuses us.
func TestEmbedderRefused(t *testing.T) {
	three := `{"data":[{"index":0,"embedding":[1,2,3]}]}`
	for name, tt := range map[string]struct {
		embedder embed.Embedder
		mismatch bool
	}{
		"made for less":   {hashed(t, 8), true},
		"gives less":      {vectorService(t, http.StatusOK, three), true},
		"refuses the key": {vectorService(t, http.StatusUnauthorized, ""), false},
		"is none":         {vectorService(t, http.StatusOK, "<html>"), false},
	} {
		cfg := config(t.TempDir())
		cfg.Embedder = tt.embedder
		n, err := Open(t.Context(), cfg)
		if err == nil {
			_ = n.Close()
		}
		var mismatch *embed.DimensionError
		if err == nil || !strings.HasPrefix(err.Error(), "embedder: ") || errors.As(err, &mismatch) != tt.mismatch {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEmbedderDown: what does not answer for now keeps nothing from starting.
func TestEmbedderDown(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Embedder = vectorService(t, http.StatusServiceUnavailable, "")
	once(t, cfg)
}

// TestEmbeddingsAreMade: memories from before there was an embedder get their
// vectors; a store that has them takes no other dimension any more.
func TestEmbeddingsAreMade(t *testing.T) {
	cfg := config(t.TempDir())
	once(t, cfg)
	file := filepath.Join(cfg.Dir, "documents.db")
	d, err := sqlite.OpenDocuments(t.Context(), file, storage.NewCheck(storage.DefaultDimension), 0)
	if err != nil {
		t.Fatal(err)
	}
	const id = "default:s:t:liked"
	memory := storage.Document{ID: id, Position: 1, Body: []byte(`{"id":"` + id + `","key":"` + id +
		`","tenant_id":"default","scope":"tenant","text":"[\"tea\"]","embedder":"none","created_at":"2026-11-20T10:00:00Z"}`)}
	if err := errors.Join(d.Put(t.Context(), "default", storage.IndexMemory, memory), d.Close()); err != nil {
		t.Fatal(err)
	}
	cfg.Embedder = hashed(t, storage.DefaultDimension)
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, n)
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		got, err := n.documents.Get(t.Context(), "default", storage.IndexMemory, id)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(got.Body, []byte(`"embedding":[`)) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no vector: %s", got.Body)
		}
	}
	if err := errors.Join(stop(), n.Close()); err != nil {
		t.Fatal(err)
	}
	cfg.Embedder = hashed(t, 8)
	cfg.Documents.Dimension = 8
	if n, err = Open(t.Context(), cfg); err == nil || !strings.HasPrefix(err.Error(), "vector_dimension: is 8, and the store holds vectors of 1536 numbers") {
		t.Errorf("%v", err)
	}
	if err == nil {
		_ = n.Close()
	}
}
