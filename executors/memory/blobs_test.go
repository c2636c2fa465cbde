package memory_test

import (
	"strings"
	"testing"
	"time"

	"aob.dev/writ/executors/memory"
	"aob.dev/writ/storage"
)

// TestRememberedBlobs: a memory that names a blob holds it, for its own tenant and until its time is
// over; one that has the digest in other words does not.
func TestRememberedBlobs(t *testing.T) {
	docs, now := embedded(t), time.Now()
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	put := func(id, text string, age time.Duration) {
		t.Helper()
		ttl := now.Add(age).UTC().Format(time.RFC3339)
		err := docs.Put(t.Context(), "default", storage.IndexMemory, storage.Document{ID: id, Position: 1, Body: []byte(`{"id":"` + id + `","key":"` + id +
			`","tenant_id":"default","scope":"user","user_id":"ana","text":"` + text + `","created_at":"2026-11-20T10:00:00Z","ttl_at":"` + ttl + `"}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("held", `{\"artifact\":\"cas://`+digest("a")+`\"}`, time.Hour)
	put("expired", `[\"cas://`+digest("b")+`\"]`, -time.Hour)
	put("mentioned", `[\"`+digest("c")+`\"]`, time.Hour)
	for _, c := range []struct {
		tenant, digest string
		want           bool
	}{
		{"default", digest("a"), true},
		{"system", digest("a"), false},
		{"default", digest("b"), false},
		{"default", digest("c"), false},
		{"default", digest("d"), false},
	} {
		if got, err := memory.NamesBlob(t.Context(), docs, c.tenant, c.digest, now); got != c.want || err != nil {
			t.Errorf("%s of %s: %v %v", c.digest[:9], c.tenant, got, err)
		}
	}
}
