package opensearch_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// answering is a store whose server gives these answers to lookups, one after the other,
// refuses every write with a conflict, and counts the lookups.
func answering(t *testing.T, lookups *int, answers ...string) *opensearch.Documents {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_alias"):
			_, _ = io.WriteString(w, `{"agent_events-2026.10": {}, "agent_events-2026.11": {}}`)
		case r.URL.Path == "/_mget":
			_, _ = io.WriteString(w, answers[min(*lookups, len(answers)-1)])
			*lookups++
		default:
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"error": {"type": "version_conflict_engine_exception"}}`)
		}
	}))
	t.Cleanup(s.Close)
	d, err := opensearch.Open(opensearch.Config{URL: s.URL, Check: func(string, []byte, any) (string, string, bool) { return "", "", true }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

const (
	indexMissing = `{"error": {"type": "index_not_found_exception"}}`
	failed       = `{"error": {"type": "no_shard_available_action_exception"}}`
	absent       = `{"found": false}`
	fifth        = `{"found": true, "_seq_no": 1, "_primary_term": 1, "_source": {"writ": {"position": 5, "id": "a"}}}`
)

// TestGetLooksIntoEveryMonth: a document of a month is found in the others' absence; a lookup that failed is repeated.
func TestGetLooksIntoEveryMonth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string
		lookups int
		err     error
	}{
		"a month was removed":   {[]string{`{"docs": [` + indexMissing + `, ` + absent + `]}`}, 1, storage.ErrNotFound},
		"beside a removed one":  {[]string{`{"docs": [` + indexMissing + `, ` + fifth + `]}`}, 1, nil},
		"before one that fails": {[]string{`{"docs": [` + fifth + `, ` + failed + `]}`}, 1, nil},
		"fails once":            {[]string{`{"docs": [` + failed + `, ` + absent + `]}`, `{"docs": [` + absent + `, ` + fifth + `]}`}, 2, nil},
		"fails":                 {[]string{`{"docs": [` + failed + `, ` + absent + `]}`}, 3, storage.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lookups := 0
			d := answering(t, &lookups, c.answers...)
			doc, err := d.Get(t.Context(), "acme", storage.IndexEvents, "a")
			if !errors.Is(err, c.err) || c.err == nil && (err != nil || doc.Position != 5) || lookups != c.lookups {
				t.Errorf("%+v, %v after %d lookups", doc, err, lookups)
			}
		})
	}
}

// TestPutChecksServersAgain: a write with a wrong guess uses what is stored, also where the first lookup of it fails.
func TestPutChecksServersAgain(t *testing.T) {
	lookups := 0
	d := answering(t, &lookups, `{"docs": [`+indexMissing+`]}`, `{"docs": [`+fifth+`]}`)
	doc := storage.Document{ID: "a", Position: 3, Body: json.RawMessage(`{"tenant_id": "acme"}`)}
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, doc); !errors.Is(err, storage.ErrStale) || lookups != 2 {
		t.Errorf("%v after %d lookups", err, lookups)
	}
}
