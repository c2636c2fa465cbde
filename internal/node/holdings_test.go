package node

import (
	"strings"
	"testing"
	"time"

	"aob.dev/writ/storage"
)

// A memory that names a blob holds it, for its own tenant and until its time is
// over; one that has the digest in other words does not.
func TestRememberedBlobs(t *testing.T) {
	n := open(t, config(t.TempDir()))
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	put := func(id, text string, age time.Duration) {
		t.Helper()
		ttl := n.cfg.Now().Add(age).UTC().Format(time.RFC3339)
		err := n.documents.Put(t.Context(), "default", storage.IndexMemory, storage.Document{ID: id, Position: 1, Body: []byte(`{"id":"` + id + `","key":"` + id +
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
		if got, err := n.remembered(t.Context(), c.tenant, c.digest); got != c.want || err != nil {
			t.Errorf("%s of %s: %v %v", c.digest[:9], c.tenant, got, err)
		}
	}
}
